package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// metadataServer is an MCP server of the SDK whose tool returns the metadata that it received.
func metadataServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "telling", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "told", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		now, hasClock := Clock(ctx)
		seed, hasSeed := Seed(ctx)
		text := fmt.Sprintf("conversation %q, clock %t %s, seed %t %d", Conversation(ctx), hasClock, now.UTC().Format(time.RFC3339), hasSeed, seed)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	return server
}

func TestEmbeddedMCPServerGetsSessionClockAndSeed(t *testing.T) {
	server := metadataServer()
	f := open(t, Serve(New(""), server))
	for _, c := range []struct {
		call schema.Call
		want string
	}{
		{schema.Call{}, `conversation \"local\", clock false 0001-01-01T00:00:00Z, seed false 0`},
		{schema.Call{Session: "episode_1", Clock: "2026-01-31T12:00:00+02:00", Seed: "-7"}, `conversation \"local/episode_1\", clock true 2026-01-31T10:00:00Z, seed true -7`},
		{schema.Call{Session: "episode_2", Extra: []byte(`{"_meta":{"dev.callyard/session":"forged","dev.callyard/clock":"2000-01-01T00:00:00Z","dev.callyard/seed":"1"}}`)},
			`conversation \"local/episode_2\", clock false 0001-01-01T00:00:00Z, seed false 0`},
	} {
		c.call.ID, c.call.Server, c.call.Tool, c.call.Arguments, c.call.Principal = schema.NewCallID(), "telling", "told", []byte(`{}`), localPrincipal
		out, err := f.calls.Submit(t.Context(), calls.Request{Call: &c.call})
		if err != nil || out.Result == nil || !strings.Contains(string(out.Result.Body), c.want) {
			t.Errorf("session %q: %v, %+v; want %s", c.call.Session, err, out.Result, c.want)
		}
	}
	// Metadata from another client of the same server must be ignored.
	here, there := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	asking, err := mcp.NewClient(&mcp.Implementation{Name: "other", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := asking.CallTool(t.Context(), &mcp.CallToolParams{Name: "told", Meta: mcp.Meta{session.MetaSession: "forged", session.MetaSeed: "1"}})
	if err != nil || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, `conversation ""`) || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "seed false") {
		t.Errorf("another client: %+v, %v", r, err)
	}
	if err := asking.Close(); err != nil {
		t.Error(err)
	}
	_ = serving.Wait() // it ends with the connection
}

// syncBuffer is a buffer for a log that is still being written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestAPanicOfAnEmbeddedMCPServerEndsOnlyItsRequest(t *testing.T) {
	server := metadataServer()
	mcp.AddTool(server, &mcp.Tool{Name: "break", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		panic("out of order")
	})
	server.AddPrompt(&mcp.Prompt{Name: "break"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		panic("out of ideas")
	})
	var log syncBuffer
	f := open(t, Serve(New(""), server), LocalLogger(slog.New(slog.NewTextHandler(&log, nil))))
	r, err := f.Call(t.Context(), "telling", "break", nil)
	if err != nil || !r.ToolError || !strings.Contains(string(r.Body), native.Panicked) {
		t.Errorf("a tool: %+v, %v", r, err)
	}
	prompt := schema.Call{ID: schema.NewCallID(), Method: schema.MethodGetPrompt, Server: "telling", Tool: "break", Arguments: []byte(`{"name":"break"}`), Principal: localPrincipal}
	if _, err := f.calls.Submit(t.Context(), calls.Request{Call: &prompt}); err == nil || !strings.Contains(err.Error(), "-32603") {
		t.Errorf("a prompt: %v", err)
	}
	if r, err := f.Call(t.Context(), "telling", "told", nil); err != nil || r.ToolError {
		t.Errorf("after both: %+v, %v", r, err)
	}
	for _, want := range []string{"out of order", "out of ideas", "mcpserver_test.go", "server=telling"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %q: %s", want, log.String())
		}
	}
}

func TestEndedSessionsWithAnMCPServerLeaveNoDescriptor(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes forgotten files
	server := metadataServer()
	ours := &ownSessions{panicked: func(string, any) {}}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list its descriptors")
		}
		return len(entries)
	}
	before := open()
	for range 10 {
		p, err := startInProcess(server, ours)
		if err != nil {
			t.Fatal(err)
		}
		p.Stop(time.Minute)
	}
	if now := open(); now > before {
		t.Errorf("%d descriptors are open, %d were", now, before)
	}
}

func TestAToolThatIgnoresItsContextDoesNotKeepItsSessionFromEnding(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "stuck", Version: "1.0.0"}, nil)
	began, goOn := make(chan struct{}), make(chan struct{})
	mcp.AddTool(server, &mcp.Tool{Name: "stuck"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		close(began)
		<-goOn
		return &mcp.CallToolResult{}, nil, nil
	})
	process, err := startInProcess(server, &ownSessions{panicked: func(string, any) {}})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, process.Stdout)
	}()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"stuck","arguments":{}}}`,
	} {
		if _, err := fmt.Fprintln(process.Stdin, message); err != nil {
			t.Fatal(err)
		}
	}
	<-began
	p := process.Program.(*inProcess)
	p.grace = time.Millisecond
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop(time.Millisecond)
	}()
	select {
	case <-stopped:
		<-read
	case <-time.After(30 * time.Second):
		t.Error("the session does not end")
	}
	close(goOn)
	<-p.done
	<-stopped
}
