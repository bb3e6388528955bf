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

// ToolList is the answer of GET /tools?format=.
type ToolList struct {
	Tools   json.RawMessage // the value for the provider
	Names   []ToolName
	Omitted int
}

// ToolName says which tool a name stands for.
type ToolName struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Tokens int    `json:"tokens"`
}

// Selection says which tools a model is shown.
type Selection int

// The selections.
const (
	SelectAuto   Selection = iota // all if they fit, else by search
	SelectAll                     // all
	SelectSearch                  // by search
)

// Tools are the tools that the model of a session is shown. Definitions are only ever added,
// in the order in which they came, so that the provider's cache of the prompt holds. It is
// used by one goroutine.
type Tools struct {
	Servers     []string // only tools of these servers; empty: of all
	Allow, Deny []string // patterns of SERVER/TOOL or of the name for the model, as in [path.Match]
	Select      Selection
	Budget      int // tokens of definitions in the first request

	list   []model.Definition
	known  map[string]ToolName
	search bool // find_tools is offered
	ready  bool
}

// ErrNoTools says that no tool fits the patterns that select tools.
var ErrNoTools = errors.New("no tool fits the patterns of the session")

// findTools is the tool with which a model looks for more tools.
const findTools = "find_tools"

const (
	foundMost   = 5    // tools that one search adds
	foundTokens = 4000 // of their definitions
)

// prepare chooses the first tools, once: those of the transcript, where the session is
// continued. Without canSearch the model has no find_tools.
func (t *Tools) prepare(ctx context.Context, f Fabric, w model.Wire, log *Transcript, canSearch bool) error {
	if t.ready {
		return nil
	}
	t.known = make(map[string]ToolName)
	all, err := t.fetch(ctx, f, w, "", 0)
	if err != nil {
		return err
	}
	if len(all) == 0 && len(t.Allow) > 0 {
		return ErrNoTools // a model without tools would answer as if there were none
	}
	t.ready, t.search = true, log.search
	if len(log.tools) > 0 || log.search {
		t.add(named(all, log.tools))
		return nil
	}
	most := w.Format().MaxTools()
	fits := (t.Budget == 0 || tokensOf(all) <= t.Budget) && (most == 0 || len(all) <= most)
	t.search = t.Select == SelectSearch || t.Select == SelectAuto && !fits
	if t.search {
		if all, err = t.fetch(ctx, f, w, log.user, max(t.Budget-tokensOf([]model.Definition{findDefinition(w)}), 1)); err != nil {
			return err
		}
		if most > 0 && len(all) >= most-foundReserve {
			all = all[:most-foundReserve]
		}
	}
	t.search = t.search && canSearch
	return log.append(entry{Type: entryTools, Tools: t.add(all), Search: t.search})
}

// foundReserve is the number of tools that are left for searches, where a provider limits
// their number.
const foundReserve = 64

// named returns the definitions of the names, in the order of the names.
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

// fetch asks for tools, without those that the session must not use. What it returns costs at
// most budget tokens; 0 sets no limit.
func (t *Tools) fetch(ctx context.Context, f Fabric, w model.Wire, query string, budget int) ([]model.Definition, error) {
	asked := budget
	if len(t.Servers) > 1 || len(t.Allow) > 0 || len(t.Deny) > 0 {
		asked = 0 // tools that are left out below must not spend the budget
	}
	list, err := f.Tools(ctx, query, asked)
	if err != nil {
		return nil, err
	}
	names := make(map[string]ToolName, len(list.Names))
	for _, n := range list.Names {
		names[n.Name] = n
	}
	all, err := w.Split(list.Tools)
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
			continue // a smaller one may still fit
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

// add shows more tools and returns their names.
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

// shown returns the value of tools for a request.
func (t *Tools) shown(w model.Wire) json.RawMessage {
	list := t.list
	if t.search {
		list = append([]model.Definition{findDefinition(w)}, list...)
	}
	return w.Tools(list)
}

// find runs a call of find_tools and returns the text for the model.
func (t *Tools) find(ctx context.Context, f Fabric, w model.Wire, log *Transcript, arguments json.RawMessage) (text string, failed bool, err error) {
	var in struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(arguments, &in) != nil || strings.TrimSpace(in.Query) == "" {
		return `find_tools needs {"query": "words that describe the task"}.`, true, nil
	}
	found, err := t.fetch(ctx, f, w, in.Query, foundTokens)
	if err != nil {
		return "", false, err
	}
	if len(found) > foundMost {
		found = found[:foundMost]
	}
	fresh := t.add(found)
	if len(fresh) > 0 {
		if err := log.append(entry{Type: entryTools, Tools: fresh, Search: true}); err != nil {
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
