package mcp

import (
	"encoding/json"
	"testing"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1,"b":[{"c":"\""}]}`, `{"a"`, `{"a":"\`, `[1]`, ` { "a" : true } `, `{"":{}}`, `{"a":tru}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := make(map[string]json.RawMessage)
		ok := rawjson.Members(text, func(key string, value []byte) { got[key] = value })
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return // only validated names are parsed; it must not panic
		}
		if !ok || len(got) != len(want) {
			t.Fatalf("%v %q: %d members, want %d", ok, text, len(got), len(want))
		}
		for key, value := range want {
			if string(got[key]) != string(value) {
				t.Errorf("%q: %q is %q, want %q", text, key, got[key], value)
			}
		}
	})
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"x"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"1","result":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params": { "a":1,"b":"x" , "c":null,"\u0064":[],"e":{},"f":6,"g":true}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, bad := readMessage(text, 1<<16, 64)
		if bad != nil {
			return
		}
		if m.method == "" && m.id == nil {
			t.Errorf("%q is taken and is nothing", text)
		}
		about := readMeta(m.param("_meta"), false)
		if raw := about.forwarded(about.capabilities, "info"); raw != nil && !json.Valid(raw) {
			t.Errorf("%q is forwarded as %q", text, raw)
		}
		var params map[string]json.RawMessage
		if m.params != nil && json.Unmarshal(m.params, &params) != nil {
			t.Fatalf("%q has the params %q", text, m.params)
		}
		for name, want := range params {
			if got := m.param(name); string(got) != string(want) {
				t.Errorf("%q: the param %q is %q, want %q", text, name, got, want)
			}
		}
		if _, there := params["absent"]; !there && m.param("absent") != nil {
			t.Errorf("%q: the param that is absent is %q", text, m.param("absent"))
		}
	})
}
