package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// startListening starts the server of e2e/servers/listening.mjs and returns its process
// and its URL. env is added to its environment.
func startListening(t *testing.T, env ...string) (*process, string) {
	t.Helper()
	folder := filepath.Join(programs.root, "e2e", "servers")
	installedPath(t, "e2e", "servers", "node_modules", "@modelcontextprotocol", "sdk")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, program{name: "listening", path: node, args: []string{"listening.mjs"}, dir: folder, env: env})
	return p, p.says(t, `listening on (http://\S+)`)[1]
}

func TestMessagesOfTypeScriptServerArriveOnSessionStream(t *testing.T) {
	_, url := startListening(t)
	servers := map[string]entry{"listening": {Type: "http", URL: url, Asks: true}}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)

	logged := make(chan string, 100)
	progress := make(chan float64, 100)
	c := &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "good evening"}}, nil //nolint:staticcheck // as above
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // as above
			text, _ := r.Params.Data.(string)
			logged <- text
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Progress
		},
	}
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			s := up.mcpClient(t, "/mcp/listening", era, c, &mcp.Root{URI: "file:///srv/a"}, &mcp.Root{URI: "file:///srv/b"}) //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
			if era == legacy {
				if err := s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil { //nolint:staticcheck // as above
					t.Fatal(err)
				}
			}
			for _, c := range []struct{ tool, want string }{
				{"elicit", "accept Ada"},
				{"sample", "good evening"},
				{"roots", "file:///srv/a file:///srv/b"},
			} {
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: map[string]any{}})
				if err != nil || res.IsError || resultText(res) != c.want {
					t.Errorf("%s answered %v %v, want %q", c.tool, resultTextOrEmpty(res), err, c.want)
				}
			}
			if era != legacy {
				return
			}
			params := &mcp.CallToolParams{Name: "tell", Arguments: map[string]any{}}
			params.SetProgressToken("p")
			if res, err := s.CallTool(t.Context(), params); err != nil || resultText(res) != "told" {
				t.Fatalf("%v %v", res, err)
			}
			if got := receive(t, logged); got != "half of it is done" {
				t.Errorf("it logged %q", got)
			}
			if got := receive(t, progress); got != 1 {
				t.Errorf("the progress is %v", got)
			}
		})
	}
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	select {
	case v := <-from:
		return v
	case <-ctx.Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func resultTextOrEmpty(res *mcp.CallToolResult) string {
	if res == nil {
		return ""
	}
	return resultText(res)
}

func TestARestartedHTTPServerFailsNoCall(t *testing.T) {
	node, url := startListening(t)
	port := url[strings.LastIndex(url, ":")+1 : strings.LastIndex(url, "/")]
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"listening": {Type: "http", URL: url}}), env: []string{quickStop}})
	up.waitServers(t, 1, "listening")
	up.call(t, "listening", "tell", "{}")
	node.stop(t)
	startListening(t, "PORT="+port)
	if err := up.callRestarted("listening", "tell"); err != nil {
		t.Error(err)
	}
}

// callRestarted calls a tool of a server that was restarted. It calls again if the call was written
// before the worker noticed the closed connection: that one may have run.
func (d *door) callRestarted(server, tool string) error {
	a, err := d.tryCall(server, tool, "{}")
	if err == nil && a.status == 504 && strings.Contains(string(a.body), "broke while the call was running") {
		a, err = d.tryCall(server, tool, "{}")
	}
	if err == nil && a.status != 200 {
		err = &refusal{a}
	}
	return err
}

func TestCallWaitsForARestartingHTTPServer(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", porttest.Port(t))
	begin := func() *process {
		return start(t, program{name: "restarted", path: filepath.Join(programs.test, "everything-server"), args: []string{"-http", address}})
	}
	server := begin()
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"restarted": {Type: "http", URL: "http://" + address + "/mcp"}}), env: []string{quickStop}})
	up.waitServers(t, 1, "restarted")
	up.call(t, "restarted", "test_simple_text", "{}")
	server.signal(t, syscall.SIGKILL)
	server.wait(t, stopWithin)
	answered := make(chan error, 1)
	go func() { answered <- up.callRestarted("restarted", "test_simple_text") }()
	up.eventually(t, soon, "the loss of the server", func() error {
		if s := up.server(t, "restarted"); s.State == "initialized" {
			return errors.New("nobody has noticed that it is away")
		}
		return nil
	})
	begin()
	if err := receive(t, answered); err != nil {
		t.Error(err)
	}
}
