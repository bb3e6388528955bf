package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"
)

func FuzzARefusalIsALineForPeople(f *testing.F) {
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

func FuzzTheStateOfABatchIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"version":1,"url":"http://x","key":"k","order":{"open":true},"batch":"batch_1","lines":3,"cursor":"c","bytes":10,"tally":{"lines":1}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"bytes":-1,"lines":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s batchState
		if json.Unmarshal(text, &s) == nil && len(s.Order) > 0 && !json.Valid(s.Order) {
			t.Fatalf("%q has the order %q", text, s.Order)
		}
	})
}
