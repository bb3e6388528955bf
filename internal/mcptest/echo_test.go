package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/mcptest"
)

var eras = []struct {
	name    string
	opts    []mcptest.Option
	version string
}{
	{"legacy", nil, "2025-11-25"},
	{"modern", []mcptest.Option{mcptest.Modern()}, "2026-07-28"},
	{"both", []mcptest.Option{mcptest.BothEras()}, "2026-07-28"},
}

func connect(t *testing.T, mode string, client *mcp.ClientOptions, opts ...mcptest.Option) *mcp.ClientSession {
	t.Helper()
	cmd := command(t, mode, opts...)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, client).
		Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func callTool(t *testing.T, s *mcp.ClientSession, name string, args any) (*mcp.CallToolResult, error) {
	t.Helper()
	return s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
}

func textOf(t *testing.T, res *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is %T, want text", res.Content[0])
	}
	return text.Text
}

func TestAnMCPClientCanUseTheEchoServerInEveryEra(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			session := connect(t, mcptest.Echo, nil, era.opts...)
			if got := session.InitializeResult().ProtocolVersion; got != era.version {
				t.Errorf("protocol version %q, want %q", got, era.version)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			want := []string{"echo", "add", "sleep", "big", "fail", "refuse", "crash", "env", "effect", "ask"}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			res, err := callTool(t, session, "echo", map[string]any{"text": "hé\n"})
			if got := textOf(t, res, err); got != "hé\n" {
				t.Errorf("echo answered %q", got)
			}
			res, err = callTool(t, session, "add", map[string]any{"a": 1000000, "b": 0.5})
			if got := textOf(t, res, err); got != "1000000.5" {
				t.Errorf("add answered %q", got)
			}
			if diff := cmp.Diff(map[string]any{"sum": 1000000.5}, res.StructuredContent); diff != "" {
				t.Errorf("structured content (-want +got):\n%s", diff)
			}
			res, err = callTool(t, session, "big", map[string]any{"bytes": 70_000})
			if got := len(textOf(t, res, err)); got != 70_000 {
				t.Errorf("big answered %d bytes", got)
			}
			res, err = callTool(t, session, "fail", nil)
			if got := textOf(t, res, err); got != mcptest.FailText || !res.IsError {
				t.Errorf("fail answered %q, isError %t", got, res.IsError)
			}
			_, err = callTool(t, session, "refuse", nil)
			var rpc *jsonrpc.Error
			if !errors.As(err, &rpc) || rpc.Code != mcptest.RefuseCode {
				t.Errorf("refuse answered %v, want code %d", err, mcptest.RefuseCode)
			}
		})
	}
}

func TestResourcesAndPromptsAnswerInEveryEra(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			session := connect(t, mcptest.Echo, nil, era.opts...)
			resources, err := session.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(resources.Resources) != 1 || resources.Resources[0].URI != mcptest.ResourceURI {
				t.Errorf("resources are %+v", resources.Resources)
			}
			read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: mcptest.ResourceURI})
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Contents[0].Text; got != "good morning" {
				t.Errorf("the resource reads %q", got)
			}
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcptest://none"}); err == nil {
				t.Error("a resource that is not there can be read")
			}
			prompts, err := session.ListPrompts(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "greet" {
				t.Errorf("prompts are %+v", prompts.Prompts)
			}
			prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := prompt.Messages[0].Content.(*mcp.TextContent).Text; got != "Say good morning to Ada" {
				t.Errorf("the prompt says %q", got)
			}
		})
	}
}

func TestSleepReportsProgressInEveryEra(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			progress := make(chan float64, 4)
			session := connect(t, mcptest.Echo, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
					progress <- req.Params.Progress
				},
			}, era.opts...)
			params := &mcp.CallToolParams{Name: "sleep", Arguments: map[string]any{"ms": 8}}
			params.SetProgressToken("token")
			res, err := session.CallTool(t.Context(), params)
			if got := textOf(t, res, err); got != "slept 8 ms" {
				t.Errorf("sleep answered %q", got)
			}
			for want := 1.0; want <= 4; want++ {
				if got := <-progress; got != want {
					t.Errorf("progress %v, want %v", got, want)
				}
			}
		})
	}
}

func TestACancelledSleepIsNeverAnswered(t *testing.T) {
	p := start(t, mcptest.Echo)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":3600000}}}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	p.ping(2)
	if got := p.line(); decode(t, got).ID != 2.0 {
		t.Errorf("first line is %s, want the answer to the ping", got)
	}
	if rest := p.rest(); rest != "" {
		t.Errorf("the cancelled call was answered: %s", rest)
	}
}

func TestCallsRunConcurrently(t *testing.T) {
	p := start(t, mcptest.Echo)
	p.call(1, "sleep", `{"ms":3600000}`)
	p.call(2, "echo", `{"text":"quick"}`)
	if got := decode(t, p.line()); got.ID != 2.0 || got.text() != "quick" {
		t.Errorf("first answer is %+v, want the quick call", got)
	}
}

func TestAnEffectIsWrittenOncePerCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects")
	before, err := mcptest.ReadEffects(path)
	if err != nil || len(before) != 0 {
		t.Fatalf("a file that is not there holds %v, %v", before, err)
	}
	session := connect(t, mcptest.Echo, nil)
	for _, id := range []string{"a", "b", "b"} {
		res, err := callTool(t, session, "effect", map[string]any{"path": path, "id": id})
		if got := textOf(t, res, err); got != "done "+id {
			t.Errorf("effect answered %q", got)
		}
	}
	got, err := mcptest.ReadEffects(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 2}, got); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

func TestAnEffectThatCannotBeWrittenIsAToolError(t *testing.T) {
	session := connect(t, mcptest.Echo, nil)
	res, err := callTool(t, session, "effect", map[string]any{"path": filepath.Join(t.TempDir(), "no", "such", "folder"), "id": "a"})
	if err != nil || !res.IsError {
		t.Errorf("got %+v, %v; want isError", res, err)
	}
}

func TestEnvShowsTheEnvironmentOfTheServer(t *testing.T) {
	t.Setenv("MCPTEST_PROOF", "seen")
	session := connect(t, mcptest.Echo, nil)
	res, err := callTool(t, session, "env", nil)
	if err != nil {
		t.Fatal(err)
	}
	environ, ok := res.StructuredContent.(map[string]any)["environ"].([]any)
	if !ok {
		t.Fatalf("structured content is %v", res.StructuredContent)
	}
	for _, v := range environ {
		if v == "MCPTEST_PROOF=seen" {
			return
		}
	}
	t.Error("the variable is not in the environment")
}

func TestAskNeedsInputFromAModernClientAndFailsForALegacyOne(t *testing.T) {
	manual := &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}}
	res, err := callTool(t, connect(t, mcptest.Echo, manual, mcptest.Modern()), "ask", nil)
	if err != nil || !res.NeedsInput() || res.RequestState != "opaque-state" {
		t.Errorf("modern: got %+v, %v; want input_required", res, err)
	}
	res, err = callTool(t, connect(t, mcptest.Echo, manual), "ask", nil)
	if err != nil || !res.IsError {
		t.Errorf("legacy: got %+v, %v; want isError", res, err)
	}
}

func TestModernServerRequiresTheProtocolVersion(t *testing.T) {
	p := start(t, mcptest.Echo, mcptest.Modern())
	p.call(1, "echo", `{"text":"x"}`)
	if got := decode(t, p.line()); got.Error.Code != -32602 {
		t.Errorf("got %+v, want code -32602", got)
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}`)
	if got := decode(t, p.line()); got.Error.Code != -32601 {
		t.Errorf("initialize: got %+v, want code -32601", got)
	}
}

func TestToolDefinitionsAreTheListedBytes(t *testing.T) {
	p := start(t, mcptest.Echo)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var got struct {
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(p.line()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mcptest.ToolDefinitions(), got.Result.Tools); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}

func TestASlowServerReadsNothingBeforeItsDelay(t *testing.T) {
	const delay = 60 * time.Millisecond
	began := time.Now()
	p := start(t, mcptest.SlowStart, mcptest.StartDelay(delay))
	p.ping(1)
	if got := decode(t, p.line()); got.ID != 1.0 {
		t.Errorf("got %+v, want the answer to the ping", got)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("answered after %v, before the delay of %v", took, delay)
	}
}
