package mcp

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

func FuzzRequestState(f *testing.F) {
	f.Add([]byte(quote(requestState{Call: "call_1", Token: "cyt_x"}.String())), "=?base64?ZWNobw==?=")
	f.Add([]byte(`"callyard:e30"`), "=?base64??=")
	f.Add([]byte(`"callyard:\u0041"`), "echo")
	f.Add([]byte(`7`), "=?base64?!?=")
	f.Fuzz(func(t *testing.T, state []byte, name string) {
		if s, ours := readState(state); !ours && s != (requestState{}) {
			t.Errorf("%q is not ours and says %+v", state, s)
		} else if ours {
			if again, ok := readState(quote(s.String())); !ok || again.Call != s.Call && utf8.ValidString(string(s.Call)) {
				t.Errorf("%q is %+v, and the second time %+v", state, s, again)
			}
		}
		if text, ok := mcpwire.DecodeHeader(name); !ok && text != "" && len(text) > len(name) {
			t.Errorf("%q is decoded to %q", name, text)
		}
		if quoted := quote(name); !json.Valid(quoted) {
			t.Errorf("%q is quoted as %q", name, quoted)
		}
	})
}
