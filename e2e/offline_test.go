package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/mcptest"
)

// TestAServerThatDoesNotRunIsNotOffered has a server die while its program is gone, and
// run again: models are not offered its tools meanwhile, and its calls are refused at once.
func TestAServerThatDoesNotRunIsNotOffered(t *testing.T) {
	mortal, parked := filepath.Join(t.TempDir(), "mortal"), filepath.Join(t.TempDir(), "parked")
	e := scripted(mcptest.Echo)
	program, err := os.ReadFile(e.Command)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mortal, program, 0o700); err != nil {
		t.Fatal(err)
	}
	e.Command = mortal
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"mortal": e, "steady": scripted(mcptest.Echo)}), env: []string{quickStop}})
	up.waitServers(t, 1, "mortal", "steady")
	changed := make(chan struct{}, 100)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	s := up.mcpClient(t, "/mcp", legacy, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { note() }})
	offered := func() (mcpTools, formatted int) {
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			if strings.HasPrefix(tool.Name, "mortal") {
				mcpTools++
			}
		}
		return mcpTools, strings.Count(string(up.get(t, "/tools?format=openai")), `"mortal`)
	}
	if a, b := offered(); a == 0 || b == 0 {
		t.Fatalf("%d and %d tools of the server are offered", a, b)
	}

	if err := os.Rename(mortal, parked); err != nil {
		t.Fatal(err)
	}
	if _, err := up.tryCall("mortal", "crash", `{}`); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the server to be in the state error", func() error {
		var item serverItem
		up.read(t, "/servers/mortal", &item)
		if item.State != "error" {
			return fmt.Errorf("its state is %s", item.State)
		}
		return nil
	})
	await := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(soon):
			t.Errorf("no client is told that the tools %s", what)
		}
	}
	await("went")
	if a, b := offered(); a != 0 || b != 0 {
		t.Errorf("%d and %d tools of a server that does not run are offered", a, b)
	}
	begun := time.Now()
	a, err := up.tryCall("mortal", "echo", `{"text":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	p := a.problem(t, http.StatusServiceUnavailable, "unavailable")
	if took := time.Since(begun); took > 2*time.Second || !p.Retryable || !strings.Contains(string(a.body), "is offline") || !strings.Contains(string(a.body), "did not start: ") {
		t.Errorf("after %v: %s", took, a.body)
	}
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mortal__echo", Arguments: map[string]any{"text": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if said, _ := json.Marshal(res.Content); !res.IsError || !strings.Contains(string(said), "is offline") { // content is always encoded
		t.Errorf("over MCP its call is answered %s", said)
	}
	var list struct {
		Tools []struct{ Server, Name, Offline string }
	}
	up.read(t, "/tools?limit=500", &list)
	shown := 0
	for _, tool := range list.Tools {
		if (tool.Server == "mortal") != (tool.Offline != "") {
			t.Errorf("%+v", tool)
		}
		if tool.Server == "mortal" {
			shown++
		}
	}
	if shown == 0 {
		t.Error("people are not shown the tools of a server that does not run")
	}
	if err := up.echo("steady", "hello"); err != nil {
		t.Error(err)
	}

	for len(changed) > 0 {
		<-changed
	}
	if err := os.Rename(parked, mortal); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the server to come back", func() error { return up.echo("mortal", "back") })
	await("came back")
	if a, b := offered(); a == 0 || b == 0 {
		t.Errorf("%d and %d tools of the server are offered after its return", a, b)
	}
}
