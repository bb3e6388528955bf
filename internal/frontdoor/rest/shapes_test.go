package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestResponsesMatchTheGoldenFiles(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, row := range []struct{ name, method, path, body string }{
		{"health", "GET", "/health", ""},
		{"livez", "GET", "/livez", ""},
		{"readyz", "GET", "/readyz", ""},
		{"version", "GET", "/version", ""},
		{"root", "GET", "/", ""},
		{"servers", "GET", "/servers", ""},
		{"server", "GET", "/servers/demo", ""},
		{"server-with-a-space", "GET", "/servers/two%20words", ""},
		{"workers", "GET", "/workers", ""},
		{"tools-page", "GET", "/tools?limit=2", ""},
		{"server-resources", "GET", "/servers/demo/resources", ""},
		{"server-templates", "GET", "/servers/demo/resources/templates", ""},
		{"server-prompts", "GET", "/servers/demo/prompts", ""},
		{"read-resource", "GET", "/servers/demo/resources/demo%3A%2F%2Fone", ""},
		{"get-prompt", "POST", "/servers/demo/prompts/greet", `{"who":"you"}`},
		{"call", "POST", "/servers/demo/tools/echo", `{"message":"hello"}`},
		{"tool-error", "POST", "/servers/demo/tools/fail", ``},
		{"switch-off", "PATCH", "/servers/demo/tools/echo", `{"enabled":false,"reason":"It deletes files."}`},
		{"call-switched-off", "POST", "/servers/demo/tools/echo", ``},
		{"tools-switched-off", "GET", "/tools?limit=5&server=demo", ""},
		{"switch-on", "PATCH", "/servers/demo/tools/echo", `{"enabled":true}`},
		{"rpc-error", "POST", "/servers/demo/tools/rpc", ``},
		{"problem-page", "GET", "/problems/outcome-unknown", ""},
		{"add-server-forbidden", "POST", "/servers", `{"id":"x","command":"true"}`},
		{"remove-server-forbidden", "DELETE", "/servers/demo", ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := f.do(row.method, row.path, row.body)
			if a.header.Get("X-Request-Id") == "" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers: %v", a.header)
			}
			golden(t, row.name, a)
		})
	}
}

func TestServerListsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	want := make([]string, 0, len(definitions.Tools))
	for _, d := range definitions.Tools {
		want = append(want, string(d))
	}
	a := f.do("GET", "/servers/demo/tools", "")
	if got := string(a.body); got != `{"tools":[`+strings.Join(want, ",")+`]}` {
		t.Errorf("got %s", got)
	}
}

func TestPagesOfToolsJoinToTheWholeList(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	var names []string
	path := "/tools?limit=3"
	for pages := 0; path != ""; pages++ {
		if pages > len(definitions.Tools) {
			t.Fatal("the pages do not end")
		}
		a := f.do("GET", path, "")
		var list struct {
			Tools []struct{ Server, Name string }
			Next  string `json:"next_cursor"`
		}
		if err := json.Unmarshal(a.body, &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			names = append(names, tool.Server+"."+tool.Name)
		}
		link := a.header.Get("Link")
		if (list.Next == "") != (link == "") {
			t.Errorf("next_cursor %q, Link %q", list.Next, link)
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	if len(names) != len(definitions.Tools) {
		t.Errorf("%d tools: %v", len(names), names)
	}
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			t.Errorf("%s stands before %s", names[i-1], names[i])
		}
	}
}

func TestAServerIsAddedAndRemovedWhereTheOperatorAllowsIt(t *testing.T) {
	t.Parallel()
	f := openFabric(t, func(o *Options) { o.AllowAddServers = true })
	a := f.do("POST", "/servers", `{"id":"new one","command":"cat","riskLevel":2}`)
	golden(t, "add-server", a)
	if at := a.header.Get("Location"); at != "/servers/new%20one" {
		t.Errorf("Location %q", at)
	}
	golden(t, "add-server-again", f.do("POST", "/servers", `{"id":"new one","command":"cat"}`))
	golden(t, "remove-server", f.do("DELETE", "/servers/new%20one", ""))
	golden(t, "remove-server-of-a-file", f.do("DELETE", "/servers/demo", ""))
	golden(t, "remove-server-unknown", f.do("DELETE", "/servers/nope", ""))
	for _, row := range []struct{ body, says string }{
		{`{"id":"h","command":"cat","riskLevel":3}`, "docker.image"},
		{`{"id":"h","command":"cat","riskLevel":4}`, "`/riskLevel`"},
		{`{"id":"h","command":"cat","risklevel":3}`, "did you mean `riskLevel`"},
		{`{"id":"h","command":"cat","args":{"a":1}}`, "`/args"},
		{`{"id":"h","command":"cat"},"other":{"command":"cat"}`, "unexpected data follows"},
		{`{"id":"","command":"cat"}`, "cannot be added"},
		{`{"args":["x"]}`, "neither a command nor a url"},
		{`{"id":7}`, "must be a string"},
		{`[]`, "not a JSON object"},
		{``, "is empty"},
	} {
		got := f.do("POST", "/servers", row.body)
		if problemOf(t, got); got.status != http.StatusBadRequest || !strings.Contains(strings.NewReplacer("\\\"", "`", "\"", "`").Replace(string(got.body)), row.says) {
			t.Errorf("%s: %d %s", row.body, got.status, got.body)
		}
	}
}

func TestServerWithoutIDGetsADerivedName(t *testing.T) {
	t.Parallel()
	f := openFabric(t, func(o *Options) { o.AllowAddServers = true })
	add := func(body string) (id string, status int) {
		t.Helper()
		a := f.do("POST", "/servers", body)
		var added struct{ ID string }
		if err := json.Unmarshal(a.body, &added); err != nil {
			t.Fatalf("%s: %s", body, a.body)
		}
		if a.status == http.StatusCreated && a.header.Get("Location") != "/servers/"+added.ID {
			t.Errorf("%s: Location %q", body, a.header.Get("Location"))
		}
		return added.ID, a.status
	}
	for _, row := range []struct{ body, id string }{
		{`{"command":"npx","args":["-y","@org/notes@1"],"env":{"TOKEN":"a"}}`, "notes"},
		{`{"command":"npx","args":["-y","@org/notes@2"]}`, "notes-2"},
		{`{"command":"demo"}`, "demo-2"}, // in the format of a servers file
	} {
		if id, status := add(row.body); status != http.StatusCreated || id != row.id {
			t.Errorf("%s: %d %q", row.body, status, id)
		}
	}
	if _, status := add(`{"args":["-y","@org/notes@1"],"command":"npx","env":{"TOKEN":"a"}}`); status != http.StatusConflict {
		t.Errorf("the same entry again: %d", status)
	}
}
