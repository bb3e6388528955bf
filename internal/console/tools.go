package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// toolRows is the number of tools per page. One preflight request returns that many decisions.
const toolRows = 50

// toolPages serves the pages of tools, and the form to try one.
type toolPages struct{ *Console }

// toolFilter selects the tools of a list.
type toolFilter struct{ Query, Server, Set, Cursor string }

// toolRow is a tool in a list.
type toolRow struct {
	Server, Name, Text string
	Signature          string
	Risk, Decision     string // for a call without arguments; empty if not known
	Why                string // the reason why a call would not run
	State              string // disabled, offline or changed; empty for others
}

// toolRowsPage is one page of tools.
type toolRowsPage struct {
	Rows        []toolRow
	Next        string
	Unknown     []string // servers whose tools are not known
	Unmatched   []string // words of the query that match no tool
	Quarantined []callyard.QuarantinedTool
}

// toolPage returns a page of the tools that match a filter, with the policy decision on each.
func (c toolPages) toolPage(ctx context.Context, v Visit, f toolFilter) (*toolRowsPage, error) {
	if f.Query != "" {
		return c.searchPage(ctx, v, f)
	}
	limit, offline := int64(toolRows), callyard.ListToolsParamsInclude("offline")
	params := callyard.ListToolsParams{Server: optional(f.Server), Set: optional(f.Set), Cursor: optional(f.Cursor)}
	if f.Set == "" {
		params.Limit = &limit // all tools of a set come in one response
	} else {
		params.Include, params.Cursor = &offline, nil
	}
	list, err := get[callyard.ToolList](ctx, c.Console, v, with(api.ListTools, &params))
	if err != nil {
		return nil, err
	}
	page := &toolRowsPage{Next: text(list.NextCursor), Unknown: list.Unknown, Quarantined: list.Quarantined}
	for _, t := range list.Tools[:min(len(list.Tools), 10*toolRows)] {
		page.Rows = append(page.Rows, rowOf(t))
	}
	c.decide(ctx, v, page.Rows)
	return page, nil
}

func rowOf(t callyard.ToolItem) toolRow {
	row := toolRow{Server: t.Server, Name: t.Name}
	row.Text, _ = rawjson.Text(rawjson.Get(t.Definition, "description"))
	switch {
	case !t.Enabled:
		row.State, row.Why = "disabled", text(t.Reason)
	case t.Offline != nil:
		row.State, row.Why = "offline", *t.Offline
	case t.Changed != nil:
		row.State, row.Why = "changed", *t.Changed
	}
	return row
}

func (c toolPages) searchPage(ctx context.Context, v Visit, f toolFilter) (*toolRowsPage, error) {
	limit := toolRows
	found, err := get[callyard.ToolSearch](ctx, c.Console, v, with(api.SearchTools, &callyard.SearchToolsParams{Q: f.Query, Server: optional(f.Server), Set: optional(f.Set), Limit: &limit}))
	if err != nil {
		return nil, err
	}
	page := &toolRowsPage{Unknown: found.Unknown, Unmatched: found.Unmatched}
	for _, t := range found.Tools {
		page.Rows = append(page.Rows, toolRow{Server: t.Server, Name: t.Tool, Signature: t.Signature, Text: text(t.Summary), Risk: string(t.Risk), Decision: string(t.Decision)})
	}
	return page, nil
}

// decide adds the policy decision for each of the tools. A decision that is not available remains
// unknown.
func (c toolPages) decide(ctx context.Context, v Visit, rows []toolRow) {
	for from := 0; from < len(rows); from += toolRows {
		some := rows[from:min(from+toolRows, len(rows))]
		var names []string
		for _, row := range some {
			names = append(names, row.Server+"/"+row.Name)
		}
		all, err := get[callyard.Preflight](ctx, c.Console, v, with(api.Preflight, &callyard.PreflightParams{Tool: names}))
		if err != nil || len(all.Tools) != len(some) {
			return
		}
		for i, t := range all.Tools {
			if t.Risk != nil {
				some[i].Risk = string(*t.Risk)
			}
			if t.Decision != nil {
				some[i].Decision = string(*t.Decision)
			}
			if some[i].Why == "" && !t.Ready {
				some[i].State, some[i].Why = string(t.State), text(t.Reason)
			}
		}
	}
}

// optional returns a parameter, or nil if it is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// text returns the text behind a pointer, or "" for nil.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

type toolsPage struct {
	toolFilter
	List *toolRowsPage
	Sets []string
	More string // the address of the next page
}

// tools serves the page that searches for tools.
func (c toolPages) tools(w http.ResponseWriter, r *http.Request, v Visit) error {
	q := r.URL.Query()
	page := toolsPage{toolFilter: toolFilter{Query: strings.TrimSpace(q.Get("q")), Server: strings.TrimSpace(q.Get("server")), Set: q.Get("set"), Cursor: q.Get("cursor")}}
	var err error
	if page.List, err = c.toolPage(r.Context(), v, page.toolFilter); err != nil {
		return c.orKey(w, r, err)
	}
	sets, err := c.sets(r.Context(), v)
	if err != nil {
		return err
	}
	for _, s := range sets {
		page.Sets = append(page.Sets, s.Name)
	}
	if page.List.Next != "" {
		page.More = at(Root+"/tools", "server", page.Server, "set", page.Set, "cursor", page.List.Next)
	}
	return c.render(w, v, http.StatusOK, "tools", view{Title: "Tools", Here: Root + "/tools", Page: page})
}

func (c *Console) sets(ctx context.Context, v Visit) ([]callyard.SetItem, error) {
	list, err := current[callyard.SetList](ctx, c, v, api.ListSets)
	return list.Sets, err
}

// maxNesting limits the nesting of indented JSON. Each level indents everything within it, so that
// a few kilobytes of brackets would become hundreds of megabytes.
const maxNesting = 64

// pretty returns indented JSON, or raw unchanged if it is not JSON or nests too deep.
func pretty(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if len(raw) == 0 || rawjson.ExceedsDepth(raw, maxNesting) || json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return bytes.TrimSpace(b.Bytes())
}
