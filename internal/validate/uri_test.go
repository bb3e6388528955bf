package validate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestInvalidURIsAreRefusedWithTheReason(t *testing.T) {
	for _, uri := range []string{"demo://one", "file:///a b.txt", "é://☃/😀", "x", strings.Repeat("u", MostURI), "%00", "\\\"{}"} {
		if err := URI(uri); err != nil {
			t.Errorf("%.20q is refused: %v", uri, err)
		}
	}
	for uri, says := range map[string]string{
		"": "this one has 0", strings.Repeat("u", MostURI+1): "this one has 8193", "dem\x00o://one": "U+0000 at byte 3", "a\x7f": "U+007F", "a\u0085": "U+0085", "\xff": "not valid UTF-8 at byte 0",
		"a\ufffd\xc3": "not valid UTF-8 at byte 4", "\U000e0001": "U+E0001", "\u2028": "U+2028", "a\nb": "U+000A",
	} {
		err := URI(uri)
		if err == nil || !strings.Contains(err.Error(), says) || schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("%.20q: %v", uri, err)
		}
	}
}

// The Go SDK for MCP writes the URI of an unknown resource like this, and ends when
// the result is not JSON.
func FuzzAcceptedURIIsSafeForGoSDKServers(f *testing.F) {
	for _, seed := range []string{"demo://one", "dem\x00o", "\a", "\x7f", "\U000e0001", "\xff", "\u00a0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if URI(uri) == nil && !json.Valid(fmt.Appendf(nil, "%q", uri)) {
			t.Fatalf("%q passes", uri)
		}
	})
}
