package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// The log level of a client without a session is in the _meta of each request.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

func TestClientWithoutSessionGetsRequestedLogMessages(t *testing.T) {
	address := porttest.Address(t)
	everything := filepath.Join(programs.test, "everything-server")
	start(t, program{name: "stateless", path: everything, args: []string{"-http", address, "-stateless=true"}})
	_, older := startListening(t)
	servers := map[string]entry{
		"stdio":  {Command: everything},
		"asks":   {Command: everything, Asks: true},
		"remote": {Type: "http", URL: fmt.Sprintf("http://%s/mcp", address)},
		"older":  {Type: "http", URL: older, Asks: true},
	}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	three := []string{"Tool execution started", "Tool processing data", "Tool execution completed"}
	for _, c := range []struct {
		server, tool string
		says         []string
	}{
		{"stdio", "test_tool_with_logging", three},
		{"asks", "test_tool_with_logging", three},
		{"remote", "test_tool_with_logging", three},
		{"older", "tell", []string{"half of it is done"}},
	} {
		for _, forms := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asked %v", c.server, forms), func(t *testing.T) {
				logged := make(chan string, 100)
				o := &mcp.ClientOptions{
					LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // deprecated in 2026-07-28, and there for another year
						text, _ := r.Params.Data.(string)
						logged <- text
					},
				}
				if forms {
					o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "decline"}, nil
					}
				}
				s := up.mcpClient(t, "/mcp/"+c.server, modern, o)
				if s.InitializeResult().Capabilities.Logging == nil { //nolint:staticcheck // as above
					t.Error("the capability logging is not declared")
				}
				call := func(level string) {
					t.Helper()
					params := &mcp.CallToolParams{Name: c.tool, Arguments: map[string]any{}}
					if level != "" {
						params.Meta = mcp.Meta{metaLogLevel: level}
					}
					if res, err := s.CallTool(t.Context(), params); err != nil || res.IsError {
						t.Fatalf("level %q: %v %v", level, resultTextOrEmpty(res), err)
					}
				}
				call("info")
				got := make([]string, len(c.says))
				for i := range got {
					got[i] = receive(t, logged)
				}
				if !slices.Equal(got, c.says) {
					t.Errorf("it heard %q, want %q", got, c.says)
				}
				call("")
				call("error")
				if len(logged) != 0 {
					t.Errorf("it heard %q unasked", <-logged)
				}
				if res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: map[string]any{}, Meta: mcp.Meta{metaLogLevel: "loud"}}); err == nil {
					t.Errorf("a level that MCP does not have was taken: %v", resultTextOrEmpty(res))
				}
			})
		}
	}
}
