package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/hub"
)

func startedServers(n int) (servers []startServer) {
	servers = append(servers, startServer{id: "broken", state: failedState, fault: "the process ended with exit status 3 before it answered the first request", stderr: []string{"cannot open the database", "giving up"}})
	servers = append(servers, startServer{id: "slow", state: startingState})
	for i := range n - 2 {
		servers = append(servers, startServer{id: fmt.Sprintf("server-%02d", i+1), state: readyState, tools: i})
	}
	return servers
}

// startScreenOf returns the start screen without the parts that need a running fabric.
func startScreenOf(s screen, version string, servers []startServer, rows int) string {
	const base = "http://127.0.0.1:8080"
	return s.addressSheet(version, [][2]string{{"REST API", base}, {"MCP", base + "/mcp"}, {"reference", base + "/docs"}, {"approvals", "http://127.0.0.1:8081"}, {"console", "http://127.0.0.1:8081/console"}, {"NATS", ""}, {"data", "callyard-data"}}) +
		s.serverTable(servers, rows) + stderrOf(servers) + "\nTry it in another terminal:\n" +
		s.commandLine("curl", "--json '"+helloArguments+"'", base+"/servers/demo/tools/echo") + "\nPress Ctrl-C to stop.\n"
}

func TestTheStartScreenFitsTheTerminal(t *testing.T) {
	two := []startServer{{id: "demo", state: readyState, tools: 5}, {id: "files", state: readyState, tools: 14}}
	for _, c := range []struct {
		name          string
		servers       []startServer
		width, height int
	}{
		{"two-80", two, 80, 24}, {"two-160", two, 160, 50}, {"two-60", two, 60, 24},
		{"failed-80", startedServers(2), 80, 24}, {"twenty-80", startedServers(22)[2:], 80, 24}, {"piped", startedServers(4), 0, 0},
	} {
		s := screen{terminal: c.width > 0, width: c.width, height: c.height}
		rows := 0
		if c.height > 0 {
			rows = 7
		}
		text := startScreenOf(s, "1.2.3", c.servers, rows)
		golden(t, "start-"+c.name, text)
		if c.height == 0 {
			continue
		}
		if n := strings.Count(text, "\n") + 1; n > c.height {
			t.Errorf("%s: %d rows on a terminal of %d", c.name, n, c.height)
		}
		for line := range strings.Lines(text) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > c.width {
				t.Errorf("%s: %d columns on a terminal of %d: %s", c.name, n, c.width, line)
			}
		}
	}
}

func TestAServerThatFailsAfterTheStartScreenShowsItsStderr(t *testing.T) {
	out := screen{}
	broken := startServer{id: "broken", state: failedState, fault: "the process exited with code 1", stderr: []string{"cannot open the database"}}
	if got, want := out.lateServer(&broken), "Server broken failed: the process exited with code 1\n\n  broken wrote to stderr:\n    cannot open the database\n\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := out.lateServer(&startServer{id: "slow", state: readyState, tools: 1}), "Server slow is ready: 1 tool.\n"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestACommandOnSeveralLinesIsOneForTheShell(t *testing.T) {
	words := []string{"curl", `-H "X-API-Key: $CALLYARD_KEY"`, "--json '" + helloArguments + "'", "http://127.0.0.1:8080/servers/demo/tools/echo"}
	for _, width := range []int{0, 200, 80, 60, 20} {
		text := (screen{width: width}).commandLine(words...)
		joined := strings.Join(strings.Fields(strings.ReplaceAll(text, "\\\n", "")), " ")
		if joined != strings.Join(words, " ") {
			t.Errorf("%d columns: %q", width, text)
		}
	}
}

func TestTheReadmeShowsTheStartScreen(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, ok := strings.Cut(string(text), "<!-- start screen -->\n```text\n")
	if !ok {
		t.Fatal("README.md has no start screen")
	}
	shown, _, _ = strings.Cut(shown, "```")
	servers := []startServer{{id: "demo", state: readyState, tools: 5}}
	for _, e := range hub.List() {
		if e.Safe {
			servers = append(servers, startServer{id: e.Name, state: readyState, tools: len(e.Tools)})
		}
	}
	slices.SortFunc(servers, func(a, b startServer) int { return strings.Compare(a.id, b.id) })
	want := startScreenOf(screen{width: 80, height: 24}, "dev", servers, 7)
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("README.md shows another start screen (-want +got):\n%s", diff)
	}
}
