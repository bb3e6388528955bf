package mcp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

var legalName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func TestNamesAreLegalStableAndDistinct(t *testing.T) {
	seen := make(map[string]target)
	parts := []string{"a", "a_", "_a", "a__b", "b", "_", "__", "wärme", "two words", "", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("y", 500), "a.b", "a/b", "-"}
	for _, server := range parts {
		for _, tool := range parts {
			name := exposed(server, tool)
			if !legalName.MatchString(name) {
				t.Errorf("%q of %q is %q", tool, server, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%q stands for %v and for %q of %q", name, other, tool, server)
			}
			seen[name] = target{server, tool}
			if name != exposed(server, tool) {
				t.Errorf("%q changes", name)
			}
		}
	}
	if got := exposed("files", "read_text"); got != "files__read_text" {
		t.Error(got)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a", "b")
	f.Add("a_", "_b")
	f.Fuzz(func(t *testing.T, server, tool string) {
		if name := exposed(server, tool); !legalName.MatchString(name) {
			t.Errorf("%q", name)
		}
	})
}

func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1,"b":[{"c":"\""}]}`, `{"a"`, `{"a":"\`, `[1]`, ` { "a" : true } `, `{"":{}}`, `{"a":tru}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := make(map[string]json.RawMessage)
		ok := each(text, func(key string, value []byte) { got[key] = value })
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return // only what was checked before is taken apart; nothing may break
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
	f.Fuzz(func(t *testing.T, text []byte) {
		m, bad := readMessage(text, 1<<16, 64)
		if bad != nil {
			return
		}
		if m.method == "" && m.id == nil {
			t.Errorf("%q is taken and is nothing", text)
		}
		about := readMeta(m.params)
		if raw := about.forwarded(about.capabilities, "info"); raw != nil && !json.Valid(raw) {
			t.Errorf("%q is forwarded as %q", text, raw)
		}
	})
}
