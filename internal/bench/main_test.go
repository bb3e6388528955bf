package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
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
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve-stdio":
		os.Exit(serveStdio())
	case filepath.Base(os.Args[0]) == "callyard":
		os.Exit(serveFabric())
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

// programs makes a directory in which "callyard" is this test binary, playing
// the one process of the fabric.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "callyard")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveFabric plays `callyard up`: it is ready at once and echoes.
func serveFabric() int {
	flags := flag.NewFlagSet("callyard", flag.ContinueOnError)
	listen := flags.String("listen", "", "")
	servers := flags.String("servers", "", "")
	for _, name := range []string{"approver-listen", "data", "log-level"} {
		flags.String(name, "", "")
	}
	if len(os.Args) < 2 || os.Args[1] != "up" || flags.Parse(os.Args[2:]) != nil {
		return 2
	}
	if _, err := os.Stat(*servers); err != nil {
		fmt.Fprintln(os.Stderr, "there is no servers file")
		return 2
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /servers/everything/tools/echo", echo)
	server := &http.Server{Addr: *listen, Handler: mux} //nolint:gosec // a test
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); err != http.ErrServerClosed { //nolint:errorlint // bare
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
