package demo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryDemoToolWorks(t *testing.T) {
	ctx := context.Background()
	near, clientEnd := mcp.NewInMemoryTransports()
	server, err := demo.New("test").Connect(ctx, clientEnd, nil)
	if err != nil {
		t.Fatal(err)
	}
	progress := make(chan float64, 64)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
	})
	cs, err := client.Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cs.Close()
		_ = server.Wait()
	}()
	call := func(tool string, args map[string]any) *mcp.CallToolResult {
		t.Helper()
		p := &mcp.CallToolParams{Name: tool, Arguments: args}
		p.SetProgressToken("p")
		r, err := cs.CallTool(ctx, p)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return r
	}
	said := func(r *mcp.CallToolResult) string { return r.Content[0].(*mcp.TextContent).Text }
	if got := said(call("echo", map[string]any{"message": "hi"})); got != "Echo: hi" {
		t.Errorf("echo said %q", got)
	}
	if got := said(call("add", map[string]any{"a": 2, "b": 40})); got != "42" {
		t.Errorf("add said %q", got)
	}
	if got := said(call("big", map[string]any{"bytes": 100000})); got != strings.Repeat("x", 100000) {
		t.Errorf("big said %d bytes", len(got))
	}
	if r := call("fail", map[string]any{"reason": "because"}); !r.IsError || said(r) != "because" {
		t.Errorf("fail said %+v", r)
	}
	if r := call("big", map[string]any{"bytes": -1}); !r.IsError {
		t.Error("a negative size must be refused")
	}
	if got := said(call("sleep", map[string]any{"seconds": 0.05})); got != "slept 50ms" {
		t.Errorf("sleep said %q", got)
	}
	if first := <-progress; first != 1 {
		t.Errorf("the first progress is %v", first)
	}
}
