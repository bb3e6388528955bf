package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch"
)

func TestMain(m *testing.M) {
	if launch.IsGuard() {
		os.Exit(launch.RunGuard())
	}
	if len(os.Args) == 2 && os.Args[1] == "serve-stdio" {
		os.Exit(serveStdio())
	}
	switch program := filepath.Base(os.Args[0]); program {
	case "callyard", "frontdoor", "worker", "nats-server":
		os.Exit(play(program))
	}
	goleak.VerifyTestMain(m)
}

// serverCommand is the command line of an MCP server with the tool echo.
func serverCommand(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "serve-stdio"}
}

func serveStdio() int {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench-test", Version: "0"}, nil)
	type in struct {
		Message string `json:"message"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Echo: " + a.Message}}}, nil, nil
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// programs makes a directory in which the names are this test binary, playing
// those parts of the fabric.
func programs(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// play plays a program of the fabric until SIGTERM: what faces callers is ready
// at once and echoes.
func play(program string) int {
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	text := make(map[string]*string)
	for _, name := range []string{"listen", "servers", "nats", "config", "approver-listen", "data", "log-level"} {
		text[name] = flags.String(name, "", "")
	}
	args := os.Args[1:]
	if program == "callyard" {
		if len(args) == 0 || args[0] != "up" {
			return 2
		}
		args = args[1:]
	}
	if flags.Parse(args) != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch program {
	case "nats-server":
		settings, err := os.ReadFile(*text["config"])
		_, rest, ok := strings.Cut(string(settings), `listen: "`)
		address, _, _ := strings.Cut(rest, `"`)
		if err != nil || !ok {
			return 2
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return 1
		}
		defer l.Close()
		<-ctx.Done()
		return 0
	case "worker", "frontdoor":
		conn, err := net.Dial("tcp", strings.TrimPrefix(*text["nats"], "nats://"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "there is no NATS:", err)
			return 2
		}
		_ = conn.Close()
	}
	if program != "frontdoor" {
		if _, err := os.Stat(*text["servers"]); err != nil {
			fmt.Fprintln(os.Stderr, "there is no servers file")
			return 2
		}
	}
	if program == "worker" {
		<-ctx.Done()
		return 0
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /servers/everything/tools/echo", echo)
	server := &http.Server{Addr: *text["listen"], Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// echo answers with what came, inside a result.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text := body[len(argumentsHead) : len(body)-len(argumentsTail)]
	fmt.Fprintf(w, `{"content":[{"type":"text","text":"Echo: %s"}]}`, text)
}
