package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// ToolList is the response of GET /tools?format=.
type ToolList struct {
	Tools   json.RawMessage // in the format of the provider
	Names   []ToolName
	Omitted int
}

// ToolName maps a name in the tool list to the tool.
type ToolName struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Tokens int    `json:"tokens"`
}

// Selection defines which tools the model is shown.
type Selection int

// The selections.
const (
	SelectAuto   Selection = iota // all if they fit, otherwise by search
	SelectAll                     // all
	SelectSearch                  // by search
)

// Tools holds the tools that the model of a session is shown. Definitions are only appended,
// never removed or reordered, so that the provider's prompt cache remains valid. It must be
// used by one goroutine at a time.
type Tools struct {
	Servers     []string // only tools of these servers; if empty, of all
	Allow, Deny []string // patterns of SERVER/TOOL or of the name for the model, as in [path.Match]
	Select      Selection
	Budget      int // tokens of definitions in the first request

	list   []model.Definition
	known  map[string]ToolName
	search bool // find_tools is offered
	ready  bool
}

// ErrNoTools means that no tool matches the patterns of the session.
var ErrNoTools = errors.New("no tool fits the patterns of the session")

// findTools is the tool that a model calls to find more tools.
const findTools = "find_tools"

const (
	foundMost   = 5    // number of tools that one search adds
	foundTokens = 4000 // tokens of their definitions
)

// prepareTools selects the first tools, once. A resumed session uses the tools of its transcript. A
// model without tool calls gets no find_tools.
func (a *Agent) prepareTools(ctx context.Context) error {
	t, log := a.Tools, a.Transcript
	if t.ready {
		return nil
	}
	t.known = make(map[string]ToolName)
	all, err := a.fetchTools(ctx, "", 0)
	if err != nil {
		return err
	}
	if len(all) == 0 && len(t.Allow) > 0 {
		return ErrNoTools // without tools the model would answer as if none existed
	}
	t.ready, t.search = true, log.search
	if len(log.tools) > 0 || log.search {
		t.add(named(all, log.tools))
		return nil
	}
	most := a.Wire.Format().MaxTools()
	fits := (t.Budget == 0 || tokensOf(all) <= t.Budget) && (most == 0 || len(all) <= most)
	t.search = t.Select == SelectSearch || t.Select == SelectAuto && !fits
	if t.search {
		if all, err = a.fetchTools(ctx, log.user, max(t.Budget-tokensOf([]model.Definition{findDefinition(a.Wire)}), 1)); err != nil {
			return err
		}
		if most > 0 && len(all) >= most-foundReserve {
			all = all[:most-foundReserve]
		}
	}
	t.search = t.search && !a.Plain
	return log.append(entry{Type: entryTools, Tools: t.add(all), Search: t.search})
}

// foundReserve is the number of tools reserved for searches if the provider limits the number of
// tools.
const foundReserve = 64

// named returns the definitions with the names, in the order of the names.
func named(all []model.Definition, names []string) (kept []model.Definition) {
	for _, n := range names {
		for _, d := range all {
			if d.Name == n {
				kept = append(kept, d)
			}
		}
	}
	return kept
}

// fetchTools returns the matching tools that the session may use. Their definitions cost at most
// budget tokens; 0 means no limit.
func (a *Agent) fetchTools(ctx context.Context, query string, budget int) ([]model.Definition, error) {
	t, asked := a.Tools, budget
	if len(t.Servers) > 1 || len(t.Allow) > 0 || len(t.Deny) > 0 {
		asked = 0 // tools that are filtered out below must not use up the budget
	}
	list, err := a.Fabric.Tools(ctx, query, asked)
	if err != nil {
		return nil, err
	}
	names := make(map[string]ToolName, len(list.Names))
	for _, n := range list.Names {
		names[n.Name] = n
	}
	all, err := a.Wire.Split(list.Tools)
	if err != nil {
		return nil, err
	}
	kept, spent := all[:0], 0
	for _, d := range all {
		n := names[d.Name]
		if !t.allows(n) {
			continue
		}
		cost := tokensOf([]model.Definition{d})
		if budget > 0 && spent+cost > budget {
			continue // a smaller tool may still fit
		}
		spent += cost
		t.known[d.Name] = n
		kept = append(kept, d)
	}
	return kept, nil
}

func (t *Tools) allows(n ToolName) bool {
	return (len(t.Servers) == 0 || slices.Contains(t.Servers, n.Server)) && (len(t.Allow) == 0 || matches(t.Allow, n)) && !matches(t.Deny, n)
}

func matches(patterns []string, n ToolName) bool {
	for _, p := range patterns {
		for _, text := range []string{n.Name, n.Server + "/" + n.Tool} {
			if ok, err := path.Match(p, text); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// add appends tools that are not shown yet and returns their names.
func (t *Tools) add(more []model.Definition) (names []string) {
	for _, d := range more {
		if t.isShown(d.Name) || d.Name == findTools {
			continue
		}
		t.list = append(t.list, d)
		names = append(names, d.Name)
	}
	return names
}

func (t *Tools) isShown(name string) bool {
	return slices.ContainsFunc(t.list, func(d model.Definition) bool { return d.Name == name })
}

// definitions returns the tools for a request, in the format of the wire.
func (t *Tools) definitions(w model.Wire) json.RawMessage {
	list := t.list
	if t.search {
		list = append([]model.Definition{findDefinition(w)}, list...)
	}
	return w.Tools(list)
}

// searchTools runs a call of find_tools and returns the text for the model.
func (a *Agent) searchTools(ctx context.Context, arguments json.RawMessage) (text string, failed bool, err error) {
	var in struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(arguments, &in) != nil || strings.TrimSpace(in.Query) == "" {
		return `find_tools needs {"query": "words that describe the task"}.`, true, nil
	}
	found, err := a.fetchTools(ctx, in.Query, foundTokens)
	if err != nil {
		return "", false, err
	}
	found = found[:min(len(found), foundMost)]
	fresh := a.Tools.add(found)
	if len(fresh) > 0 {
		if err := a.Transcript.append(entry{Type: entryTools, Tools: fresh, Search: true}); err != nil {
			return "", false, err
		}
	}
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintf(&b, "- %s\n", d.Name)
	}
	switch {
	case len(found) == 0:
		return "No tool matches. Try other words.", false, nil
	case len(fresh) == 0:
		return "These tools match, and you have them already:\n" + b.String(), false, nil
	}
	return "You can use these tools now:\n" + b.String(), false, nil
}

// findDefinition is the definition of find_tools.
func findDefinition(w model.Wire) model.Definition {
	const input = `{"type":"object","properties":{"query":{"type":"string","description":"Words that describe the task."}},"required":["query"]}`
	const about = "Finds more tools. Use it when none of your tools fits the task."
	tool := &schema.Tool{Name: findTools, Input: json.RawMessage(input), Raw: json.RawMessage(`{"name":"` + findTools + `","description":"` + about + `","inputSchema":` + input + `}`)}
	return model.Definition{Name: findTools, Raw: w.Format().Tool(findTools, tool, false).JSON}
}

func tokensOf(list []model.Definition) (n int) {
	for _, d := range list {
		n += format.Tokens(d.Raw)
	}
	return n
}
