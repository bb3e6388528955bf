package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestLegacyServerRequestsReachItsCaller(t *testing.T) {
	servers := map[string]entry{"conformance": {Command: filepath.Join(programs.test, "everything-server"), Asks: true}}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	said, changed := make(chan string, 100), make(chan string, 100)
	s := up.mcpClient(t, "/mcp/conformance", legacy, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": r.Params.Message}}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
			text, _ := r.Params.Data.(string)
			said <- text
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { changed <- r.Params.URI },
	})
	for range 2 { // the second one in the session of the first
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_elicitation", Arguments: map[string]any{"message": "ada"}})
		if err != nil || res.IsError || !strings.Contains(resultText(res), "username:ada") {
			t.Fatalf("%v %v", res, err)
		}
	}
	if err := s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
		t.Fatal(err)
	}
	if err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://watched-resource"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_tool_with_logging"}); err != nil {
		t.Fatal(err)
	}
	late := time.After(time.Minute) // the server changes the resource every 3 s
	for _, c := range []struct {
		from <-chan string
		want string
	}{{said, "Tool execution started"}, {said, "Tool processing data"}, {changed, "test://watched-resource"}} {
		select {
		case got := <-c.from:
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		case <-late:
			t.Fatalf("%q did not come", c.want)
		}
	}
}

func TestLegacyServerRequestsReachAModernClient(t *testing.T) {
	servers := map[string]entry{"old": oldServer()}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	var asked []string
	s := up.mcpClient(t, "/mcp/old", modern, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, r.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": []string{"Ada", "Lovelace"}[len(asked)-1]}}, nil
		},
	})
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{}})
	if err != nil || res.IsError || resultText(res) != "Hello, Ada Lovelace " || len(asked) != 2 {
		t.Errorf("%v %v, asked %v", res, err, asked)
	}
	// A client without the capability gets no request.
	res, err = up.mcpClient(t, "/mcp/old", modern, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{}})
	if err == nil && !res.IsError {
		t.Errorf("%v", res)
	}
}

func TestConcurrentCallsWithServerRequestsUseFewProcesses(t *testing.T) {
	t.Parallel()
	servers := map[string]entry{"everything": fromNPM("everything", "stdio")}
	e := servers["everything"]
	e.Asks = true
	servers["everything"] = e
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			s := up.mcpClient(t, "/mcp/everything", era, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
			})
			const calls = 100
			failed := make(chan string, calls)
			var work sync.WaitGroup
			for range calls {
				work.Go(func() {
					res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
					if err != nil || res.IsError || resultText(res) != "Echo: hello" {
						failed <- fmt.Sprint(resultTextOrEmpty(res), err)
					}
				})
			}
			work.Wait()
			if n := len(failed); n > 0 {
				t.Errorf("%d of %d calls failed, one with %s", n, calls, <-failed)
			}
		})
	}
	// One process that callers share, and one for each of two callers.
	if n := len(descendants(t, up.pid())); n > 20 {
		t.Errorf("%d processes run below callyard", n)
	}
}

func TestServerWithClientRequestsShowsAllToolsAndItsIdentity(t *testing.T) {
	e := fromNPM("everything", "stdio")
	e.Asks = true
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"everything": e}), env: []string{quickStop}})
	up.waitServers(t, 1, "everything")
	for _, era := range []string{legacy, modern} {
		s := up.mcpClient(t, "/mcp/everything", era, nil)
		up.eventually(t, soon, "the tools for clients that can be asked", func() error {
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				return err
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			// Without Callyard, a client with elicitation, sampling and roots sees these 17.
			for _, want := range []string{"echo", "trigger-elicitation-request", "trigger-sampling-request", "get-roots-list"} {
				if !slices.Contains(names, want) {
					return fmt.Errorf("%s is not among the %d tools %v", want, len(names), names)
				}
			}
			if len(names) < 17 {
				return fmt.Errorf("%d tools: %v", len(names), names)
			}
			return nil
		})
		about := s.InitializeResult()
		if about.Instructions == "" || about.ServerInfo.Title == "" || about.ServerInfo.Name != "callyard/everything" {
			t.Errorf("%s: %+v, instructions of %d bytes", era, about.ServerInfo, len(about.Instructions))
		}
	}
}
