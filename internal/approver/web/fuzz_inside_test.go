package web

import (
	"net/url"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func FuzzListQueryIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{"state=pending,approved&limit=5", "state=&cursor=1764290000000000000_appr_1", "limit=99999999999", "x=1", "state=%00", "cursor=..%2f", "server=a&server=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := url.ParseQuery(raw)
		if err != nil {
			return // the handler receives the part that could be read
		}
		filter, cursor, err := filterOf(values)
		if err != nil {
			if kind := schema.KindOf(err); kind != schema.KindInvalidRequest {
				t.Fatalf("%q is refused with %s", raw, kind)
			}
			return
		}
		if filter.Limit < 1 || filter.Limit > maxPageLimit {
			t.Fatalf("%q asks for %+v from %s", raw, filter, cursor)
		}
	})
}

func FuzzSignInRedirectsToOwnPagesOnly(f *testing.F) {
	for _, seed := range []string{"/a/appr_1", "/history", "//evil.example/a/x", "/a/..%2f..", "\\\\evil", "javascript:x", "/a/x?y#z", "https:///a/x", "/\t/evil.example", "/console/tool?server=a b&tool=c#d", "/console//x", "/console/%2e%2e/x", "/console/%5cx?%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to := next(text)
		u, err := url.Parse(to)
		if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t ") {
			t.Fatalf("%q leads to %q", text, to)
		}
	})
}

func FuzzAnAnswerIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"approve","digest":"sha256:x","reason":"y"}`, `{"kind":"edit","arguments":{"a":1}}`, `{"kind":"approve","allow":{"until":"2030-01-01T00:00:00Z","uses":3,"pattern":{"kind":"same"}}}`,
		`{"kind":null}`, `{"kind":"deny","arguments":{}}`, `null`, `{"allow":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := unserved().shapes.read("Answer", body, new(Answer)); err != nil && schema.KindOf(err) != schema.KindInvalidRequest && schema.KindOf(err) != schema.KindTooLarge {
			t.Fatalf("%q is refused with %v", body, err)
		}
	})
}
