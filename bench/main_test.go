package bench

import (
	"context"
	"encoding/json"
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
	if launch.IsReaper() {
		os.Exit(launch.RunReaper())
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

// serverCommand returns the command line of an MCP server with the tool echo.
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

// programs creates a directory in which each name is this test binary, which acts as that
// program of the fabric.
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

// play acts as a program of the fabric until SIGTERM. The endpoint for callers is ready
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
	mux.HandleFunc("POST /mcp", echoMCP)
	server := &http.Server{Addr: *text["listen"], Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// echoMCP is echo over MCP, where the headers must match the body.
func echoMCP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string            `json:"name"`
			Arguments map[string]string `json:"arguments"`
			Meta      map[string]any    `json:"_meta"`
		} `json:"params"`
	}
	err := json.NewDecoder(r.Body).Decode(&m)
	h := r.Header
	if err != nil || m.Method != "tools/call" || h.Get("Mcp-Method") != m.Method || h.Get("Mcp-Name") != m.Params.Name || h.Get("Mcp-Protocol-Version") != m.Params.Meta["io.modelcontextprotocol/protocolVersion"] {
		http.Error(w, "not a message", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"Echo: %s"}]}}`, m.ID, m.Params.Arguments["message"])
}

// echo returns the request body inside a result.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text := body[len(argumentsHead) : len(body)-len(argumentsTail)]
	fmt.Fprintf(w, `{"content":[{"type":"text","text":"Echo: %s"}]}`, text)
}
