package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// Once, one of several servers with the same URI was read, and the others were ignored silently.
func TestSameURIsOfSeveralServersAreDistinguished(t *testing.T) {
	f := openFabric(t, nil)
	f.define("demo", schema.Definitions{
		Resources:         []json.RawMessage{raw(`{"uri":"demo://one", "name":"One"}`), raw(`{"uri":"demo://mine","name":"Mine"}`)},
		ResourceTemplates: []json.RawMessage{raw(`{"uriTemplate":"demo://any/{id}","name":"Any"}`), raw(`{"uriTemplate":"mine://{id}","name":"Mine"}`)},
	})
	f.WaitFor("the new definitions", func() bool { return len(f.endpoint.lists.view(place{}).serversOf["demo://mine"]) == 1 })
	list := f.ask("/mcp", "resources/list", "", "").result(t)
	for _, want := range []string{`{"uri":"callyard:demo:demo://one","name":"One"}`, `{"uri":"callyard:two%20words:demo://one","name":"One"}`, `{"uri":"demo://mine","name":"Mine"}`} {
		if !strings.Contains(list, want) {
			t.Errorf("%s is not in %s", want, list)
		}
	}
	if strings.Contains(list, `"uri":"demo://one"`) {
		t.Errorf("a URI that several servers have is offered as it is: %s", list)
	}
	templates := f.ask("/mcp", "resources/templates/list", "", "").result(t)
	for _, want := range []string{`"callyard:demo:demo://any/{id}"`, `"callyard:two%20words:demo://any/{id}"`, `"uriTemplate":"mine://{id}"`} {
		if !strings.Contains(templates, want) {
			t.Errorf("%s is not in %s", want, templates)
		}
	}
	if own := f.ask("/mcp/demo", "resources/list", "", "").result(t); strings.Contains(own, "callyard:") {
		t.Errorf("the mount of one server has other URIs: %s", own)
	}
	for uri, want := range map[string]string{
		"callyard:two%20words:demo://one": "two words demo://one", "callyard:demo:demo://one": "demo demo://one", "callyard:demo:demo://any/a:b": "demo demo://any/a:b",
		"demo://mine": "demo demo://mine", "mine://7": "demo mine://7", "callyard:demo:demo://mine": "demo demo://mine",
	} {
		f.ask("/mcp", "resources/read", uri, `"uri":"`+uri+`"`).result(t)
		last := f.Worker.Last()
		if got := string(last.Server) + " " + getString(last.Payload, "uri"); got != want {
			t.Errorf("%s reads %s", uri, got)
		}
	}
	for _, uri := range []string{"demo://one", "demo://any/7"} {
		e := f.ask("/mcp", "resources/read", uri, `"uri":"`+uri+`"`).fault(t)
		if e.Code != mcpwire.CodeInvalidParams || !strings.Contains(e.Message, "callyard:demo:"+uri) || !strings.Contains(string(e.Data), "callyard:two%20words:"+uri) {
			t.Errorf("%s: %+v", uri, e)
		}
	}
	for _, uri := range []string{"callyard:nobody:demo://one", "callyard:", "callyard:demo", "callyard:demo:", "callyard:%zz:demo://one"} {
		if e := f.ask("/mcp", "resources/read", uri, `"uri":"`+uri+`"`).fault(t); e.Code != mcpwire.CodeInvalidParams {
			t.Errorf("%s: %+v", uri, e)
		}
	}
}

func TestReadResultContainsTheRequestedURI(t *testing.T) {
	const read = `{"contents":[{"uri":"demo://one","text":"a","big":9007199254740993},{"uri":"demo://other","text":"b"}],"more":1.0}`
	want := `{"contents":[{"uri":"callyard:demo:demo://one","text":"a","big":9007199254740993},{"uri":"demo://other","text":"b"}],"more":1.0}`
	if got := string(readAs([]byte(read), "demo://one", "callyard:demo:demo://one")); got != want {
		t.Error(got)
	}
	for _, same := range []string{read, `{"contents":7}`, `{}`, `[]`, ``} {
		if got := string(readAs([]byte(same), "demo://one", "demo://one")); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
	if got := string(readAs([]byte(`{"contents":7}`), "a:b", "c:d")); got != `{"contents":7}` {
		t.Error(got)
	}
}

func FuzzOwnURI(f *testing.F) {
	f.Add("demo", "demo://one")
	f.Add("two words", "a:b:c")
	f.Add("a:b%", "x:")
	f.Fuzz(func(t *testing.T, name, uri string) {
		server := schema.ServerID(name)
		if server == "" || uri == "" {
			return
		}
		if to, ok := splitURI(ownURI(server, uri)); !ok || to.server != server || to.name != uri {
			t.Errorf("%q of %q became %+v, %v", uri, server, to, ok)
		}
	})
}
