package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestDefinitionsAreListedWithoutMembersThatSDKsReject(t *testing.T) {
	const object = `"inputSchema":{"type":"object"}`
	for _, c := range []struct {
		of         check
		from, want string
	}{
		{listedTool, `{"name":"x", "description":null,` + object + `}`, `{"name":"x",` + object + `}`},
		{listedTool, `{"name":"x","title":5,` + object + `,"annotations":null,"_meta":[]}`, `{"name":"x",` + object + `}`},
		{listedTool, `{"annotations":{"readOnlyHint":"yes","destructiveHint":false,"mine":null}}`, `{"annotations":{"destructiveHint":false,"mine":null}}`},
		{listedTool, `{"outputSchema":null,"execution":{"taskSupport":"maybe"}}`, `{"execution":{}}`},
		{listedTool, `{"icons":[{"src":"a","sizes":"any"},{"sizes":[]}]}`, `{"icons":[{"src":"a"}]}`},
		{listedTool, `{"icons":[ {"src":"a","sizes":["any"],"theme":"dark"} ] , "unknown":null}`, `{"icons":[ {"src":"a","sizes":["any"],"theme":"dark"} ] , "unknown":null}`},
		{listedTool, `{"outputSchema":{"type":"array"}}`, `{"outputSchema":{"type":"array"}}`},
		{listedTool, `{"inputSchema":{"type":"object","properties":null,"required":null},"outputSchema":{"type":"object","properties":{"a":true,"b":null},"required":"a"}}`, `{"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":true}}}`},
		{listedResource, `{"uri":"a:1","name":"n","mimeType":null,"size":"5"}`, `{"uri":"a:1","name":"n"}`},
		{listedResource, `{"uri":"a:1","name":"n","annotations":{"priority":9,"audience":["user","bot"],"lastModified":"yesterday"}}`, `{"uri":"a:1","name":"n","annotations":{"audience":["user"]}}`},
		{listedResource, `{"uri":"a:1","name":"n","size":5,"annotations":{"priority":0.5,"lastModified":"2026-11-27T15:00:00.5Z"}}`, `{"uri":"a:1","name":"n","size":5,"annotations":{"priority":0.5,"lastModified":"2026-11-27T15:00:00.5Z"}}`},
		{listedPrompt, `{"name":"p","arguments":null}`, `{"name":"p"}`},
		{listedPrompt, `{"name":"p","arguments":[{"name":"a","required":null},{"description":"d"}]}`, `{"name":"p","arguments":[{"name":"a"}]}`},
		{legacyTool, `{"outputSchema":{"type":"array"},` + object + `}`, `{` + object + `}`},
		{legacyTool, `{"outputSchema":{"anyOf":[]},` + object + `}`, `{` + object + `}`},
		{legacyTool, `{"inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":null,"d":{"x":true}},"required":null}}`, `{"inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}},"d":{"x":true}}}}`},
		{legacyTool, `{"outputSchema":{"type":"object", "properties":{"a":{}},"required":["a"]}}`, `{"outputSchema":{"type":"object", "properties":{"a":{}},"required":["a"]}}`},
	} {
		if got := string(c.of([]byte(c.from))); got != c.want {
			t.Errorf("%s became %s, want %s", c.from, got, c.want)
		}
	}
}

func TestOneFaultyDefinitionLeavesTheOthersReadable(t *testing.T) {
	f := openFabric(t, nil)
	f.define("demo", schema.Definitions{
		Tools: frontdoortest.Tools(
			`{"name":"array","description":null,"inputSchema":{"type":"object","properties":{"any":true}},"outputSchema":{"type":"array"}}`,
			`{"name":"plain", "inputSchema":{"type":"object"}}`,
		),
		Resources: []json.RawMessage{raw(`{"uri":"demo://one"}`), raw(`{"uri":"demo://two","name":"Two","mimeType":null}`)},
		Prompts:   []json.RawMessage{raw(`{"name":"greet","description":5}`)},
	})
	list := func(path, of string) string { return f.ask(path, of+"/list", "", "").result(t) }
	f.WaitFor("the new definitions", func() bool { return strings.Contains(list("/mcp", "tools"), "demo__array") })

	for path, prefix := range map[string]string{"/mcp": "demo__", "/mcp/demo": ""} {
		tools := list(path, "tools")
		for _, want := range []string{
			`{"name":"` + prefix + `array","inputSchema":{"type":"object","properties":{"any":true}},"outputSchema":{"type":"array"}}`,
			`{"name":"` + prefix + `plain", "inputSchema":{"type":"object"}}`,
		} {
			if !strings.Contains(tools, want) {
				t.Errorf("%s: no %s in %s", path, want, tools)
			}
		}
		legacy := f.enter(path, `{}`).send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if want := `{"name":"` + prefix + `array","inputSchema":{"type":"object","properties":{"any":{}}}}`; !strings.Contains(string(legacy.body), want) {
			t.Errorf("%s: no %s in %s", path, want, legacy.body)
		}
		if got := list(path, "resources"); !strings.Contains(got, `demo://one","name":"demo://one"}`) || !strings.Contains(got, `{"uri":"demo://two","name":"Two"}`) {
			t.Errorf("%s: %s", path, got)
		}
		if got := list(path, "prompts"); !strings.Contains(got, `{"name":"`+prefix+`greet"}`) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if !strings.Contains(f.Logged.String(), "definitions=3") {
		t.Error("the log does not say how many definitions were changed")
	}
}

func TestLegacyClientsGetOtherStructuredContentAsText(t *testing.T) {
	for _, c := range []struct{ from, want string }{
		{`{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`, `{"content":[{"type":"text","text":"[1]"}]}`},
		{`{"structuredContent":["a"],"content":[ ],"isError":false}`, `{"isError":false,"content":[{"type":"text","text":"[\"a\"]"}]}`},
		{`{"structuredContent":null}`, `{"content":[{"type":"text","text":"null"}]}`},
		{`{"content":[], "structuredContent":{"a":[1]}}`, `{"content":[], "structuredContent":{"a":[1]}}`},
	} {
		if got := string((&exchange{}).fitted([]byte(c.from))); got != c.want {
			t.Errorf("%s became %s, want %s", c.from, got, c.want)
		}
		if got := string((&exchange{modern: true}).fitted([]byte(c.from))); got != c.from {
			t.Errorf("%s became %s for a modern client", c.from, got)
		}
	}
}

// An SDK that gets 404 or 400 reports a failed connection in place of the server's error.
func TestForwardedErrorsDoNotUseTheHTTPStatusOfThisEndpoint(t *testing.T) {
	answer := func(w *frontdoortest.Worker, f *bus.CallFrame, to bus.ReplyTo) bool {
		e := schema.Errorf(schema.KindProtocol, "The server answered with an error")
		e.RPC = &schema.RPCError{Message: "theirs"}
		if _, err := fmt.Sscanf(string(f.Payload), `{"code":%d}`, &e.RPC.Code); err != nil {
			t.Error(err)
		}
		w.Listener.Error(to, f.Seq, e, true, 0)
		return true
	}
	of := script
	of.Call = answer
	f := openScripted(t, frontdoortest.Options{Script: of}, nil)
	legacy := f.enter("/mcp/demo", `{}`)
	for _, code := range []int64{-32700, -32600, -32601, -32602, -32020, -32022, 7} {
		arguments := fmt.Sprintf(`{"code":%d}`, code)
		modern := f.call("/mcp/demo", "echo", arguments)
		if e := modern.fault(t); e.Code != code || modern.status != 200 {
			t.Errorf("modern, %d: %d %s", code, modern.status, modern.body)
		}
		a := legacy.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":` + arguments + `}}`)
		if e := a.fault(t); e.Code != code || a.status != 200 {
			t.Errorf("legacy, %d: %d %s", code, a.status, a.body)
		}
	}
	if a := f.call("/mcp/demo", "echo", `{"code":-32021}`); a.status != 400 {
		t.Errorf("a missing capability: %d %s", a.status, a.body)
	}
}
