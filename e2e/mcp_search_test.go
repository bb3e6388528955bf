package e2e

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The client of the Go SDK finds, reads and calls a tool of a mount in the mode search. Its
// call is recorded under the name of the real tool.
func TestAnMCPClientFindsAndCallsTools(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"conformance": {Command: programs.test + "/everything-server"}}), env: []string{quickStop}})
	up.waitServers(t, 1, "conformance")
	for _, era := range []string{modern, legacy} {
		t.Run(era, func(t *testing.T) {
			s := up.mcpClient(t, "/mcp?mode=search", era, nil)
			list, err := s.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 3 {
				t.Fatalf("%+v %v", list, err)
			}
			call := func(name string, arguments map[string]any) string {
				t.Helper()
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
				if err != nil || res.IsError {
					t.Fatalf("%s: %+v %v", name, res, err)
				}
				return resultText(res)
			}
			if found := call("find_tools", map[string]any{"query": "simple text"}); !strings.Contains(found, "conformance__test_simple_text(") {
				t.Errorf("%s", found)
			}
			if about := call("describe_tools", map[string]any{"names": []string{"conformance__test_simple_text"}}); !strings.Contains(about, "inputSchema") {
				t.Errorf("%s", about)
			}
			if text := call("call_tool", map[string]any{"name": "conformance__test_simple_text"}); text == "" {
				t.Error("the tool said nothing")
			}
			up.eventually(t, soon, "the record of the call", func() error {
				a := up.ask(t, "GET", "/calls?server=conformance&tool=test_simple_text", "")
				if !strings.Contains(string(a.body), `"tool":"test_simple_text"`) {
					return &refusal{a}
				}
				return nil
			})
		})
	}
}
