package episode

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Tool is a tool as shown to trainers.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// environmentTool is a tool of an environment, with its server.
type environmentTool struct {
	Tool
	server schema.ServerID
	tool   string
	risk   int
}

// table holds the tools of an environment at one point in time.
type table struct {
	list    []environmentTool
	names   map[string]*environmentTool
	tools   []Tool      // including the finish tool
	graded  []eval.Tool // for rewards
	known   *eval.Names // the names in graded
	servers []schema.ServerID
	version string // differs after each change of a definition
	made    time.Time
}

// tableTTL is the time for which a table is cached.
const tableTTL = time.Second

// reservedTools lists the tool names that OpenEnv rejects.
var reservedTools = []string{"reset", "step", "state", "close"}

// table returns the tools of the environment. The error is of KindUnavailable if there are none.
func (m *Manager) table(e *Environment) (*table, error) {
	m.mu.Lock()
	known := m.tables[e.name]
	fresh := known != nil && time.Since(known.made) < tableTTL
	m.mu.Unlock()
	if fresh {
		return known, nil
	}
	t, err := m.makeTable(e)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known != nil && known.version == t.version {
		known.made = t.made
		return known, nil
	}
	m.tables[e.name] = t
	return t, nil
}

func (m *Manager) makeTable(e *Environment) (*table, error) {
	t := &table{names: make(map[string]*environmentTool), made: time.Now()}
	var digests []string
	for _, s := range m.o.Catalog.Servers() {
		all, err := m.o.Catalog.Tools(s.ID)
		if err != nil {
			continue // the tools of this server are not known yet
		}
		for i := range all {
			if tool := &all[i]; e.offers(tool) {
				t.list = append(t.list, offer(tool))
				digests = append(digests, string(s.ID), tool.Digest)
			}
		}
	}
	if len(t.list) == 0 {
		why := ""
		if e.Isolation == IsolationShared {
			why = " With isolation shared, only read-only tools of servers whose annotations are trusted are offered."
		}
		return nil, schema.Errorf(schema.KindUnavailable, "The environment %q has no tool now.%s", e.name, why)
	}
	t.assignNames(e)
	t.version = strings.Join(digests, " ")
	return t, nil
}

// offers reports whether an episode may use the tool. Patterns match as those of policies do.
func (e *Environment) offers(tool *catalog.Tool) bool {
	if !tool.Switch.Enabled || e.Isolation == IsolationShared && !(tool.ReadOnly && tool.TrustAnnotations || tool.Safe) {
		return false
	}
	return slices.ContainsFunc(e.Tools, func(pattern string) bool {
		server, name, _ := strings.Cut(pattern, "/")
		return risk.MatchPattern(server, string(tool.Server)) && risk.MatchPattern(name, tool.Name)
	})
}

func offer(tool *catalog.Tool) environmentTool {
	var said struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(tool.Raw, &said) // remains "" if there is none
	input := tool.Input
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	return environmentTool{Tool: Tool{Name: tool.Name, Description: said.Description, InputSchema: input}, server: tool.Server, tool: tool.Name, risk: tool.Risk}
}

// assignNames gives each tool a unique name and adds the finish tool. A name that several servers have,
// or that is reserved, gets its server as a prefix.
func (t *table) assignNames(e *Environment) {
	count := make(map[string]int)
	for i := range t.list {
		count[t.list[i].Name]++
	}
	for i := range t.list {
		o := &t.list[i]
		if count[o.tool] > 1 || slices.Contains(reservedTools, o.tool) || o.tool == e.FinishTool {
			o.Name = string(o.server) + "__" + o.tool
		}
		t.names[o.Name] = o
		if !slices.Contains(t.servers, o.server) {
			t.servers = append(t.servers, o.server)
		}
		t.tools = append(t.tools, o.Tool)
		t.graded = append(t.graded, eval.Tool{Name: o.Name, Server: string(o.server), Schema: o.InputSchema})
	}
	t.known = eval.NewNames(t.graded)
	t.tools = append(t.tools, Tool{
		Name: e.FinishTool, Description: "Ends the task with an answer.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"answer":{"description":"The answer to the task."}}}`),
	})
}

// Tools returns the tools of the environment. The finish tool is last.
func (m *Manager) Tools(e *Environment) ([]Tool, error) {
	t, err := m.table(e)
	if err != nil {
		return nil, err
	}
	return t.tools, nil
}
