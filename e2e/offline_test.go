package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/mcptest"
)

// TestToolsOfAStoppedServerAreNotOffered kills a server whose program is missing for a while, until
// it runs again. In the meantime models are not offered its tools, and its calls are refused at
// once. The log of the test has the times.
func TestToolsOfAStoppedServerAreNotOffered(t *testing.T) {
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
	changed := make(chan time.Time, 100)
	note := func() {
		select {
		case changed <- time.Now():
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

	// told waits until the client is notified of a change after which the tools are offered, or not,
	// and returns the time.
	told := func(tools bool) time.Time {
		t.Helper()
		for end := time.After(startWithin); ; {
			select {
			case at := <-changed:
				if a, b := offered(); (a > 0) == tools && (b > 0) == tools {
					return at
				}
			case <-end:
				a, b := offered()
				t.Fatalf("no client is told that the tools are offered: %v; %d and %d are", tools, a, b)
			}
		}
	}
	// logged waits for a line of the log and returns its time.
	logged := func(pattern string) time.Time {
		t.Helper()
		at, err := time.Parse(time.RFC3339Nano, up.says(t, `(?s)`+pattern)[1])
		if err != nil {
			t.Fatal(err)
		}
		return at
	}

	if err := os.Rename(mortal, parked); err != nil {
		t.Fatal(err)
	}
	if _, err := up.tryCall("mortal", "crash", `{}`); err != nil {
		t.Fatal(err)
	}
	gone := told(false)
	died := logged(`"time":"([^"]+)"[^\n]*"server process ended","server":"mortal"`)
	var item serverItem
	if up.read(t, "/servers/mortal", &item); item.State != "error" {
		t.Errorf("its state is %s", item.State)
	}
	begun := time.Now()
	a, err := up.tryCall("mortal", "echo", `{"text":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	refused := time.Since(begun)
	if p := a.problem(t, http.StatusServiceUnavailable, "unavailable"); !p.Retryable || !strings.Contains(string(a.body), "is offline") || !strings.Contains(string(a.body), "did not start: ") {
		t.Errorf("%s", a.body)
	}
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mortal__echo", Arguments: map[string]any{"text": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if said, _ := json.Marshal(res.Content); !res.IsError || !strings.Contains(string(said), "is offline") { // content can always be encoded
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

	if err := os.Rename(parked, mortal); err != nil {
		t.Fatal(err)
	}
	back := told(true)
	ready := logged(`"server process ended","server":"mortal".*"time":"([^"]+)"[^\n]*"session ready","server":"mortal"`)
	if err := up.echo("mortal", "back"); err != nil {
		t.Error(err)
	}
	if up.read(t, "/servers/mortal", &item); !item.Connected || item.State == "error" {
		t.Errorf("after its return its state is %s, connected %v", item.State, item.Connected)
	}
	t.Logf("clients were told %v after its end that the tools went, and %v after it was ready again that they came back; a call was refused in %v",
		gone.Sub(died).Round(time.Millisecond), back.Sub(ready).Round(time.Millisecond), refused.Round(10*time.Microsecond))
}
