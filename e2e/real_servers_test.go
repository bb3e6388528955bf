package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/mcptest"
)

// realServers returns the npm servers and one of the Go SDK with the modern protocol version, with
// a folder that the filesystem server may read.
func realServers(t testing.TB) (servers map[string]entry, folder string) {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	memory := fromNPM("memory")
	memory.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(folder, "memory.jsonl")}
	return map[string]entry{
		"everything":  fromNPM("everything", "stdio"),
		"filesystem":  fromNPM("filesystem", folder),
		"memory":      memory,
		"thinking":    fromNPM("sequential-thinking"),
		"conformance": {Command: filepath.Join(programs.test, "everything-server")},
	}, folder
}

// list returns the items of one of a server's lists, each as its bytes.
func (d *door) list(t testing.TB, server, key string) []json.RawMessage {
	t.Helper()
	var page map[string][]json.RawMessage
	d.read(t, "/servers/"+server+"/"+key, &page)
	return page[key]
}

func sameItems(t testing.TB, what string, want, got []json.RawMessage) {
	t.Helper()
	toText := func(items []json.RawMessage) []string {
		var all []string
		for _, item := range items {
			all = append(all, string(item))
		}
		return all
	}
	if diff := cmp.Diff(toText(want), toText(got)); diff != "" {
		t.Errorf("%s (-server +callyard):\n%s", what, diff)
	}
}

func TestRealServersAreListedUnchangedAndAnswer(t *testing.T) {
	servers, folder := realServers(t)
	write(t, filepath.Join(folder, "note.txt"), "a note of the night\n")
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)

	revision := map[string]string{}
	for id, s := range up.servers(t) {
		revision[id] = s.Protocol
	}
	want := map[string]string{"everything": legacy, "filesystem": legacy, "memory": legacy, "thinking": legacy, "conformance": modern}
	if diff := cmp.Diff(want, revision); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}

	for id, e := range servers {
		d := connect(t, e, revision[id])
		sameItems(t, "the tools of "+id, d.list("tools/list", "tools"), up.list(t, id, "tools"))
		if id == "everything" || id == "conformance" {
			sameItems(t, "the resources of "+id, d.list("resources/list", "resources"), up.list(t, id, "resources"))
			sameItems(t, "the prompts of "+id, d.list("prompts/list", "prompts"), up.list(t, id, "prompts"))
		}
	}

	for _, c := range []struct{ server, tool, arguments, want string }{
		{"everything", "echo", `{"message":"good evening"}`, "Echo: good evening"},
		{"filesystem", "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(folder, "note.txt")), "a note of the night\n"},
		{"memory", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["writes programs"]}]}`, "writes programs"},
		{"memory", "search_nodes", `{"query":"Ada"}`, "writes programs"},
		{"thinking", "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, `"thoughtNumber": 1`},
		{"conformance", "test_simple_text", `{}`, "simple text"},
	} {
		if got := text(t, up.call(t, c.server, c.tool, c.arguments)); !strings.Contains(got, c.want) {
			t.Errorf("%s of %s answers %q, want %q in it", c.tool, c.server, got, c.want)
		}
	}
}

func TestResourcesAndPromptsOfRealServersAnswer(t *testing.T) {
	all, _ := realServers(t)
	servers := map[string]entry{"everything": all["everything"], "conformance": all["conformance"]}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)

	for _, c := range []struct{ server, uri, want string }{
		{"everything", "demo://resource/static/document/features.md", `"uri":"demo://resource/static/document/features.md"`},
		{"everything", "demo://resource/dynamic/text/7", `Resource 7`},
		{"conformance", "test://static-text", "test://static-text"},
	} {
		for _, path := range []string{"/resources/" + url.PathEscape(c.uri), "/resources?uri=" + url.QueryEscape(c.uri)} {
			if got := string(up.get(t, "/servers/"+c.server+path)); !strings.Contains(got, c.want) || !strings.Contains(got, `"contents"`) {
				t.Errorf("GET %s of %s answers %.500s, want %s in it", path, c.server, got, c.want)
			}
		}
	}
	for _, c := range []struct{ server, name, arguments, want string }{
		{"everything", "args-prompt", `{"city":"Rome"}`, "Rome"},
		{"everything", "simple-prompt", ``, `"messages"`},
		{"conformance", "test_simple_prompt", `{}`, `"messages"`},
	} {
		a := up.ask(t, "POST", "/servers/"+c.server+"/prompts/"+c.name, c.arguments)
		if a.status != 200 || !strings.Contains(string(a.body), c.want) {
			t.Errorf("the prompt %s of %s answers %d %s", c.name, c.server, a.status, a.body)
		}
	}
	// An unknown name is a fault of the request, not of the server.
	for _, server := range []string{"everything", "conformance"} {
		up.ask(t, "GET", "/servers/"+server+"/resources/"+url.PathEscape("demo://nothing"), "").problem(t, 404, "not-found")
		up.ask(t, "POST", "/servers/"+server+"/prompts/nothing", "{}").problem(t, 422, "invalid-arguments")
	}
}

func TestResultsKeepTheBytesOfTheServer(t *testing.T) {
	servers := map[string]entry{
		"old": scripted(mcptest.UnknownContent),
		"new": scripted(mcptest.UnknownContent, mcptest.Modern()),
	}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for id, isModern := range map[string]bool{"old": false, "new": true} {
		want := string(mcptest.UnknownContentResult(isModern))
		if got := string(up.call(t, id, "odd", `{"n":9007199254740993}`)); got != want {
			t.Errorf("%s: the result is\n%s\nwant\n%s", id, got, want)
		}
		body := fmt.Sprintf(`{"server":%q,"tool":"odd","arguments":{"n":9007199254740993}}`, id)
		if a := up.ask(t, "POST", "/calls", body); a.status != 200 || string(a.body) != strings.TrimSuffix(want, "}")+`,"outcome":"completed"}` {
			t.Errorf("%s over /calls: %d\n%s\nwant\n%s", id, a.status, a.body, want)
		}
		tools := up.list(t, id, "tools")
		if got := string(tools[len(tools)-1]); got != mcptest.OddTool {
			t.Errorf("%s: the tool is shown as\n%s\nwant\n%s", id, got, mcptest.OddTool)
		}
		var all struct {
			Tools []struct {
				Server     string          `json:"server"`
				Name       string          `json:"name"`
				Definition json.RawMessage `json:"definition"`
			} `json:"tools"`
		}
		up.read(t, "/tools?server="+id, &all)
		for _, tool := range all.Tools {
			if tool.Name == "odd" && string(tool.Definition) != mcptest.OddTool {
				t.Errorf("%s: GET /tools shows\n%s\nwant\n%s", id, tool.Definition, mcptest.OddTool)
			}
		}
	}
}

func TestArgumentsKeepTheBytesOfTheCaller(t *testing.T) {
	const arguments = `{"z":9007199254740993,"a":1.0,"e":1E2,"n":{"y":null,"b":[]},"_meta":{"example.org/unknown":[1.50]},"t":"<last> \u00e9 \/ é"}`
	servers := map[string]entry{"old": mirrored(legacy), "new": mirrored(modern)}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	for id := range servers {
		got := map[string]string{"tool path": text(t, up.call(t, id, "show", arguments))}
		a := up.ask(t, "POST", "/calls", fmt.Sprintf(`{"arguments": %s ,"server":%q,"tool":"show"}`, arguments, id))
		got["/calls"] = text(t, a.body)
		for way, line := range got {
			if !strings.Contains(line, `"arguments":`+arguments) {
				t.Errorf("%s over the %s: the server read\n%s\nwant in it\n%s", id, way, line, arguments)
			}
			if isModern := strings.Contains(line, modern); isModern != (id == "new") {
				t.Errorf("%s is spoken to in the wrong era: %s", id, line)
			}
		}
	}
}
