package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient returns a client of the Go SDK at a mount of the door, with one protocol version.
func (d *door) mcpClient(t *testing.T, mount, era string, o *mcp.ClientOptions, roots ...*mcp.Root) *mcp.ClientSession { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	options := &mcp.ClientSessionOptions{}
	if era == legacy {
		options.ProtocolVersion = legacy
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, o)
	c.AddRoots(roots...) //nolint:staticcheck // as above
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: d.url + mount, HTTPClient: client(t)}, options)
	if err != nil {
		t.Fatalf("connecting to %s in era %s: %v", mount, era, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if got := s.InitializeResult().ProtocolVersion; got != era {
		t.Fatalf("revision %s, want %s", got, era)
	}
	return s
}

func resultText(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func TestMCPClientOfEitherEraListsAndCallsAllServers(t *testing.T) {
	servers := map[string]entry{
		"everything":  fromNPM("everything", "stdio"),
		"conformance": {Command: filepath.Join(programs.test, "everything-server")},
	}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, era := range []string{modern, legacy} {
		t.Run(era, func(t *testing.T) {
			s := up.mcpClient(t, "/mcp", era, nil)
			names := make(map[string]bool)
			for tool, err := range s.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				names[tool.Name] = true
			}
			for _, want := range []string{"everything__echo", "conformance__test_simple_text"} {
				if !names[want] {
					t.Errorf("%s is not listed among %d", want, len(names))
				}
			}
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "everything__echo", Arguments: map[string]any{"message": "good evening"}})
			if err != nil || resultText(res) != "Echo: good evening" {
				t.Errorf("%v %v", res, err)
			}
			prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "everything__args-prompt", Arguments: map[string]string{"city": "Rome"}})
			if err != nil || len(prompt.Messages) == 0 {
				t.Errorf("%v %v", prompt, err)
			}
			read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://static-text"})
			if err != nil || len(read.Contents) == 0 {
				t.Errorf("%v %v", read, err)
			}
			read, err = s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "demo://resource/dynamic/text/7"})
			if err != nil || len(read.Contents) == 0 {
				t.Errorf("a template: %v %v", read, err)
			}
			done, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "conformance__test_prompt_with_arguments"}, Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "p"}})
			if err != nil || done == nil {
				t.Errorf("completion: %v %v", done, err)
			}
		})
	}
}

func TestAnMCPClientOfEitherEraSeesProgressAndCancels(t *testing.T) {
	servers := map[string]entry{"everything": fromNPM("everything", "stdio"), "echo": scripted("echo")}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, era := range []string{modern, legacy} {
		t.Run(era, func(t *testing.T) {
			var mu sync.Mutex
			seen := 0
			first := make(chan struct{}, 100) // progress of the call that is cancelled
			s := up.mcpClient(t, "/mcp/everything", era, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					mu.Lock()
					seen++
					mu.Unlock()
					if r.Params.ProgressToken == "cancelled" { // the SDK may deliver progress of an earlier call late
						first <- struct{}{}
					}
				},
			})
			slow := func(ctx context.Context, token string, seconds int) error {
				params := &mcp.CallToolParams{Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": seconds, "steps": 2 * seconds}}
				params.SetProgressToken(token)
				_, err := s.CallTool(ctx, params)
				return err
			}
			if err := slow(t.Context(), "whole", 1); err != nil {
				t.Fatal(err)
			}
			eventually(t, soon, "progress of a call", func() error {
				mu.Lock()
				defer mu.Unlock()
				if seen == 0 {
					return errors.New("none came")
				}
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- slow(ctx, "cancelled", 60) }()
			<-first
			cancel()
			if err := <-done; err == nil {
				t.Error("a cancelled call was answered")
			}
			eventually(t, soon, "the end of the cancelled call", func() error {
				if n := up.server(t, "everything").InFlight; n != 0 {
					return errInFlight(n)
				}
				return nil
			})
		})
	}
}

func TestServerRequestsReachAnMCPClientOfEitherEra(t *testing.T) {
	servers := map[string]entry{"conformance": {Command: filepath.Join(programs.test, "everything-server")}}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, era := range []string{modern, legacy} {
		t.Run(era, func(t *testing.T) {
			asked := make(chan string, 10)
			s := up.mcpClient(t, "/mcp/conformance", era, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- r.Params.Message
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
				},
			})
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_input_required_result_elicitation"})
			if err != nil || res.IsError || !strings.Contains(resultText(res), "Ada") {
				t.Errorf("%v %v", res, err)
			}
			if len(asked) != 1 {
				t.Errorf("asked %d times", len(asked))
			}
		})
	}
}

func TestAHeldCallIsConfirmedByTheUserOfAnMCPClient(t *testing.T) {
	risky := scripted("echo")
	risky.RiskLevel = 2
	servers := map[string]entry{"risky": risky}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, era := range []string{modern, legacy} {
		for _, confirm := range []bool{true, false} {
			s := up.mcpClient(t, "/mcp", era, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": confirm}}, nil
				},
			})
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "risky__echo", Arguments: map[string]any{"text": "it ran"}})
			if err != nil || res.IsError == confirm || (resultText(res) == "it ran") != confirm {
				t.Errorf("%s, %v: %v %v", era, confirm, res, err)
			}
		}
	}
}

func TestArgumentsKeepTheirBytesOverMCP(t *testing.T) {
	servers := map[string]entry{"old": mirrored(legacy), "new": mirrored(modern)}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	const arguments = `{"z": 1.0,  "a":9007199254740993,"text":"<&>"}`
	for id := range servers {
		name := id + "__show"
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
		a := up.ask(t, http.MethodPost, "/mcp", body, "Accept: application/json, text/event-stream",
			"MCP-Protocol-Version: "+modern, "Mcp-Method: tools/call", "Mcp-Name: "+name)
		var m struct {
			Result json.RawMessage `json:"result"`
		}
		decode(t, a.body, &m)
		if line := text(t, m.Result); a.status != 200 || !strings.Contains(line, `"arguments":`+arguments) {
			t.Errorf("%s got %s", id, line)
		}
	}
}

type errInFlight int

func (e errInFlight) Error() string { return "calls are still under way" }
