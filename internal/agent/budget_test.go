package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// bigFabric has many tools with definitions of real servers. A search ranks them in list order and
// applies the budget like Callyard.
type bigFabric struct {
	*fabric
	tools []agent.ToolName
	defs  []model.Definition
}

// realTools returns n tools on servers s0 to s3, made from recorded definitions with new names.
func realTools(t *testing.T, w model.Wire, n int) *bigFabric {
	t.Helper()
	var real []schema.Tool
	for _, server := range []string{"everything", "filesystem", "memory", "thinking"} {
		file := filepath.Join("../format/testdata/tools", server+".ndjson")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for raw := range bytes.Lines(bytes.TrimSpace(text)) {
			var d struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"inputSchema"`
			}
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			real = append(real, schema.Tool{Name: d.Name, Input: d.Input, Raw: bytes.TrimSpace(raw)})
		}
	}
	f := &bigFabric{fabric: &fabric{wire: w, ran: map[string]int{}, held: map[string]string{}}}
	for i := range n {
		tool := &real[i%len(real)]
		server := fmt.Sprintf("s%d", i%4)
		name := fmt.Sprintf("%s__%d_%s", server, i, tool.Name)
		f.defs = append(f.defs, model.Definition{Name: name, Raw: w.Format().Tool(name, tool, false).JSON})
		f.tools = append(f.tools, agent.ToolName{Name: name, Server: server, Tool: fmt.Sprintf("%d_%s", i, tool.Name)})
	}
	return f
}

func (f *bigFabric) Tools(_ context.Context, query string, budget int) (*agent.ToolList, error) {
	f.queries = append(f.queries, fmt.Sprintf("%s/%d", query, budget))
	list, all, spent := &agent.ToolList{}, []model.Definition{}, 0
	for i, d := range f.defs {
		cost := format.Tokens(d.Raw)
		if budget > 0 && spent+cost > budget {
			continue
		}
		spent += cost
		all, list.Names = append(all, d), append(list.Names, f.tools[i])
	}
	list.Tools = f.wire.Tools(all)
	return list, nil
}

// TestManyToolsFitTheBudgetOfTheFirstRequest measures the tools in the first request, of 500 tools
// with real definitions. It applies Callyard's estimate, which tends to exceed the counts of
// tokenizers, to the whole value of tools as sent. Several servers, and patterns, share one budget
// and do not spend it on omitted tools.
func TestManyToolsFitTheBudgetOfTheFirstRequest(t *testing.T) {
	const budget = 8000
	for _, spec := range specs {
		for name, tools := range map[string]*agent.Tools{
			"all":     {Budget: budget},
			"servers": {Budget: budget, Servers: []string{"s2", "s3"}},
			"pattern": {Budget: budget, Allow: []string{"s3/*"}},
		} {
			s := newTestAgent(t, spec, modeltest.Script{{Text: "Done."}})
			big := realTools(t, s.Wire, 500)
			s.Agent.Fabric, s.Agent.Tools = big, tools
			if _, err := s.Ask(t.Context(), "Read a file."); err != nil {
				t.Fatal(err)
			}
			asked := s.server.Asked()[0]
			var sent struct{ Tools json.RawMessage }
			if err := json.Unmarshal(asked.Raw, &sent); err != nil {
				t.Fatal(err)
			}
			cost := format.Tokens(sent.Tools)
			if cost > budget || cost < budget*3/4 {
				t.Errorf("%s, %s: %d tools cost %d tokens of %d", spec, name, len(asked.Tools), cost, budget)
			}
			allowed := map[string]string{"all": "s0s1s2s3", "servers": "s2s3", "pattern": "s3"}[name]
			if slices.ContainsFunc(asked.Tools, func(n string) bool { return n != "find_tools" && !strings.Contains(allowed, n[:2]) }) {
				t.Errorf("%s, %s: shown are %v", spec, name, asked.Tools)
			}
			t.Logf("%s, %s: %d of 500 tools, %d tokens, %d bytes", spec, name, len(asked.Tools), cost, len(sent.Tools))
		}
	}
}
