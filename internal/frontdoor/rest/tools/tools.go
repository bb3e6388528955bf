package tools

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// maxSwitchBytes is the maximum size of the body of a switch, and maxReasonBytes that of its reason, in
// bytes.
const (
	maxSwitchBytes = 16 << 10
	maxReasonBytes = 1000
)

// ToolItem is one tool of GET /tools.
type ToolItem struct {
	Server     schema.ServerID   `json:"server" doc:"The id of the server." example:"everything"`
	Name       string            `json:"name" doc:"The name of the tool." example:"echo"`
	NameInSet  string            `json:"name_in_set,omitempty" doc:"With set: the name of the tool in the set." example:"demo__echo"`
	Enabled    bool              `json:"enabled" doc:"False if an operator disabled the tool; its calls then return 403."`
	Reason     string            `json:"reason,omitempty" doc:"The reason that the tool is disabled."`
	Offline    string            `json:"offline,omitempty" doc:"The reason that no worker can run the tool now: its server is in state error on all workers. Calls return 503 with this reason, and lists for models omit the tool."`
	Changed    string            `json:"changed,omitempty" doc:"The reason that the definition is not the accepted one, for a server with pin: warn."`
	Definition openapi.AnyObject `json:"definition" doc:"The tool, exactly as the server sent it."`
}

// QuarantinedTool is a tool that GET /tools omits.
type QuarantinedTool struct {
	Server schema.ServerID `json:"server" doc:"The id of the server." example:"everything"`
	Name   string          `json:"name" doc:"The name of the tool." example:"echo"`
}

// ToolList is the answer to GET /tools.
type ToolList struct {
	Tools      []ToolItem `json:"tools" nullable:"false" doc:"The tools of this page, by server and name."`
	NextCursor string     `json:"next_cursor,omitempty" doc:"The cursor of the next page; absent on the last page."`
	Unknown    []string   `json:"unknown,omitempty" nullable:"false" doc:"Servers whose tools are currently unknown and therefore missing."`
	// Quarantined lists tools within the range of servers and names of this page.
	Quarantined []QuarantinedTool `json:"quarantined,omitempty" nullable:"false" doc:"Tools that are missing from this page because nobody has accepted their definition; see GET /servers/{id}/pins."`
}

// ToolSwitch is the answer to PATCH /servers/{id}/tools/{tool}.
type ToolSwitch struct {
	Server  schema.ServerID `json:"server" doc:"The id of the server." example:"everything"`
	Name    string          `json:"name" doc:"The name of the tool." example:"echo"`
	Enabled bool            `json:"enabled" doc:"Whether the tool can be called." example:"false"`
	Reason  string          `json:"reason,omitempty" doc:"The reason that it is disabled; callers see it." example:"Deletes files; use archive instead."`
	By      string          `json:"by,omitempty" doc:"The principal that changed it." example:"ops"`
	At      time.Time       `json:"at" doc:"When it was changed."`
}

// SwitchRequest is the body of PATCH /servers/{id}/tools/{tool}.
type SwitchRequest struct {
	Enabled bool   `json:"enabled" doc:"Whether the tool can be called." example:"false"`
	Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"The reason that it is disabled; callers see it." example:"Deletes files; use archive instead."`
}

type toolListInput struct {
	Format       string          `query:"format" enum:"mcp,openai,openai-responses,anthropic,gemini" default:"mcp" doc:"The format of the tools. mcp returns the servers' definitions in pages; the others return all callable tools in the format of a model provider in one answer."`
	Server       schema.ServerID `query:"server" doc:"Only the tools of this server." example:"everything"`
	Set          string          `query:"set" doc:"Only the tools of this set, in its order and under its names, in one answer." example:"research"`
	Include      string          `query:"include" enum:"offline" doc:"With the value offline, a list in the format of a model provider, of a set or for a query also has tools that no worker can run now."`
	Limit        int             `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"The maximum number of tools on a page, if the list has pages."`
	Cursor       string          `query:"cursor" maxLength:"2048" doc:"The next_cursor of the previous page."`
	Query        string          `query:"query" maxLength:"2048" doc:"Only tools that match these words, best match first." example:"read a file"`
	MaxTools     int             `query:"max_tools" minimum:"0" maximum:"100000" doc:"The maximum number of tools in the answer; 0 means no limit."`
	BudgetTokens int             `query:"budget_tokens" minimum:"0" maximum:"100000000" doc:"The maximum estimated number of tokens of all tools; 0 means no limit."`
	DeferLoading bool            `query:"defer_loading" doc:"For Anthropic's tool search: mark each tool with defer_loading, so that it is loaded once the model finds it. Add Anthropic's search tool to the request yourself."`
	Strict       bool            `query:"strict" doc:"Use OpenAI's strict mode for each tool whose schema supports it."`
}

type toolListOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\"; absent on the last page."`
	Body toolListBody
}

// Options are the dependencies of the operations on tools. All are required.
type Options struct {
	Catalog  *catalog.Catalog
	Calls    *calls.Calls
	Runner   *submit.Runner
	Problems *httpapi.Problems
	Log      *slog.Logger
	// Heartbeat is the interval at which a comment is sent on an idle event stream.
	Heartbeat time.Duration
}

// Register registers the operations on tools and on tool calls of models. It returns the cache of
// tools in the formats of providers.
func Register(d *httpapi.Document, o Options) *Shapes {
	limits, kept := o.Calls.Limits(), newShapes()
	(&toolHandlers{catalog: o.Catalog, log: o.Log, shapes: kept, depth: limits.ArgumentDepth}).register(d)
	finder := &searchHandlers{catalog: o.Catalog, calls: o.Calls}
	httpapi.HandleValue(d, opSearchTools(), "The matching tools.", map[string]any{
		"tools":     []any{map[string]any{"server": "files", "tool": "read_text", "signature": "read_text(path: string, head?: integer)", "summary": "Reads a text file.", "score": 7.31, "risk": "low", "decision": "run"}},
		"unmatched": []any{}, "searched": 42, "ranking": "bm25f",
	}, finder.search)
	httpapi.HandleValue(d, opPreflight(), "The state of each tool.", map[string]any{
		"ready": true, "tools": []any{map[string]any{"server": "everything", "tool": "echo", "ready": true, "state": "ready", "pinned": false, "risk": "low", "decision": "run"}},
	}, finder.preflight)
	(&toolCallHandlers{runner: o.Runner, calls: o.Calls, catalog: o.Catalog, problems: o.Problems, limits: limits, log: o.Log, heartbeat: o.Heartbeat}).register(d)
	return kept
}

// toolHandlers are the operations on tools.
type toolHandlers struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	shapes  *Shapes
	depth   int // maximum nesting of bodies
}

func (h *toolHandlers) register(d *httpapi.Document) {
	d.AtLast(func(all map[string]*huma.Schema) {
		openapi.ForbidUnknownMembers(all, "SwitchRequest", "WideSwitchRequest")
	})
	httpapi.Register(d, openapi.Answers(opListTools(), "A page of tools or, with the format of a model provider, its list of tools.", exampleTools()), h.list)
	httpapi.Get(d, openapi.Answers(opListSwitches(), "The switches.", map[string]any{"switches": []any{map[string]any{"server": "files", "tool": "delete_*", "wide": true, "enabled": false, "reason": "Read-only until Monday.", "by": "ops", "at": "2026-01-02T03:04:05Z"}}}), func(ctx context.Context, _ *httpapi.NoInput) (SwitchList, error) {
		return h.switches(httpapi.Of(ctx).Operated(h.catalog)), nil
	})
	httpapi.HandleValue(d, opSwitchTools(d), "The tools that were disabled or enabled.", map[string]any{
		"server": "files", "tool": "delete_*", "enabled": false, "reason": "Read-only until Monday.", "by": "ops", "at": "2026-01-02T03:04:05Z", "tools": 3,
	}, h.switchTools)
	httpapi.HandleValue(d, opSwitchTool(d), "The state of the tool.", map[string]any{
		"server": "everything", "name": "echo", "enabled": false, "reason": "Deletes files; use archive instead.", "by": "ops", "at": "2026-01-02T03:04:05Z",
	}, h.switchTool)
}

// list serves GET /tools: all tools, by server and name, in pages. A page begins after a name, not
// at an index, so adding or removing tools shifts nothing.
func (h *toolHandlers) list(ctx context.Context, in *toolListInput) (*toolListOutput, error) {
	if in.Format != string(format.MCP) || in.DeferLoading || in.chosen() || in.Strict || in.Set != "" {
		return h.choose(ctx, in)
	}
	from, err := readCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	page := &ToolList{Tools: make([]ToolItem, 0, in.Limit)}
	out := &toolListOutput{Body: toolListBody{pages: page}}
	seen := httpapi.Of(ctx).Operated(h.catalog)
	servers, err := in.servers(seen)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if page.NextCursor != "" || s.ID < from.server {
			// The server is not on this page; only check whether its tools are known.
			if _, err := seen.Definitions(s.ID); err != nil {
				page.Unknown = append(page.Unknown, string(s.ID))
			}
			continue
		}
		tools, err := seen.Tools(s.ID)
		if err != nil {
			page.Unknown = append(page.Unknown, string(s.ID))
			continue
		}
		slices.SortFunc(tools, func(a, b catalog.Tool) int { return cmp.Compare(a.Name, b.Name) })
		for _, of := range tools {
			if !from.before(of.Server, of.Name) {
				continue
			}
			if of.Quarantined() {
				if of.Unaccepted() {
					page.Quarantined = append(page.Quarantined, QuarantinedTool{of.Server, of.Name})
				}
				continue
			}
			if len(page.Tools) == in.Limit {
				last := page.Tools[in.Limit-1]
				page.NextCursor = cursor{last.Server, last.Name}.String()
				out.Link = nextLink(in, page.NextCursor)
				break
			}
			page.Tools = append(page.Tools, itemOf(&of, ""))
		}
	}
	return out, nil
}

// servers returns the servers whose tools are listed.
func (in *toolListInput) servers(seen *catalog.Seen) ([]catalog.Server, error) {
	if in.Server == "" {
		return seen.Servers(), nil
	}
	s, err := seen.Server(in.Server)
	return []catalog.Server{s}, err
}

// itemOf returns the public view of a tool. setName is its name in the requested set, or "".
func itemOf(t *catalog.Tool, setName string) ToolItem {
	item := ToolItem{Server: t.Server, Name: t.Name, NameInSet: setName, Enabled: t.Switch.Enabled, Offline: t.Offline, Definition: openapi.AnyObject{RawMessage: t.Raw}}
	if !item.Enabled {
		item.Reason = t.Switch.Reason
	}
	if t.Change != nil {
		item.Changed = t.Change.Text()
	}
	return item
}

func nextLink(in *toolListInput, next string) string {
	q := url.Values{"cursor": {next}, "limit": {strconv.Itoa(in.Limit)}}
	if in.Server != "" {
		q.Set("server", string(in.Server))
	}
	return fmt.Sprintf("</tools?%s>; rel=%q", q.Encode(), "next")
}

// cursor identifies the last tool of a page.
type cursor struct {
	server schema.ServerID
	tool   string
}

func (c cursor) before(server schema.ServerID, tool string) bool {
	return c == cursor{} || cmp.Or(strings.Compare(string(c.server), string(server)), strings.Compare(c.tool, tool)) < 0
}

// String returns the opaque form of the cursor.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(c.server) + "\x00" + c.tool))
}

func readCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	server, tool, ok := strings.Cut(string(raw), "\x00")
	if err != nil || !ok {
		return cursor{}, schema.Errorf(schema.KindInvalidRequest, "The cursor is invalid; use next_cursor of the previous page, or omit it.")
	}
	return cursor{schema.ServerID(server), tool}, nil
}

// switchTool serves PATCH /servers/{id}/tools/{tool}.
func (h *toolHandlers) switchTool(x *httpapi.Exchange, r *http.Request) (now ToolSwitch, err error) {
	var in SwitchRequest
	if _, err = h.readSwitch(x, r, &in); err != nil {
		return now, err
	}
	of, err := h.catalog.Switch(r.Context(), schema.ServerID(r.PathValue("id")), r.PathValue("tool"), in.Enabled, in.Reason, x.Principal.Name)
	if err != nil {
		return now, err
	}
	h.log.Info("a tool was enabled or disabled", "server", of.Server, "tool", of.Name, "enabled", in.Enabled, "by", x.Principal.Name, "id", x.ID)
	return ToolSwitch{
		Server: of.Server, Name: of.Name, Enabled: of.Switch.Enabled, Reason: of.Switch.Reason, By: of.Switch.By, At: of.Switch.At,
	}, nil
}
