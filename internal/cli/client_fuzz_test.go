package cli

import (
	"net/http"
	"strings"
	"testing"
	"unicode"
)

func FuzzRefusalIsOneReadableLine(f *testing.F) {
	f.Add(404, []byte(`{"title":"x","detail":"y","call_id":"call_1","retryable":true,"errors":[{"pointer":"/a","message":"z"}],"rpc":{"code":-1,"message":"m"}}`), "5")
	f.Add(500, []byte(`{"detail":"\u001b[31mred\u202e","errors":[{"parameter":"\u0007"}]}`), "-1")
	f.Add(200, []byte(`null`), "")
	f.Add(0, []byte(`<html>`), "soon")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		c := &client{base: "http://127.0.0.1:1"}
		h := http.Header{"Content-Type": {"application/problem+json"}, "Retry-After": {after}}
		err := c.refused(status, h, body)
		if err == nil {
			t.Fatal("a refusal is no error")
		}
		if bad := strings.IndexFunc(err.Error(), func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == '\u202e') }); bad >= 0 {
			t.Fatalf("%q reaches the terminal: %q", body, err.Error())
		}
	})
}
