package tools

import (
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

// cursorFault fails for an error that a caller would consider an internal error.
func cursorFault(t *testing.T, err error) {
	t.Helper()
	switch kind := schema.KindOf(err); kind {
	case schema.KindInvalidRequest, schema.KindTooLarge:
	default:
		t.Fatalf("refused with %s: %v", kind, err)
	}
}

func FuzzToolsCursorIsReadOrRefused(f *testing.F) {
	f.Add(cursor{"demo", "echo"}.String())
	f.Add("")
	f.Add("!")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readCursor(text)
		if err != nil {
			cursorFault(t, err)
			return
		}
		if again, err := readCursor(c.String()); err != nil || again != c {
			t.Fatalf("%q is %+v, and the second time %+v: %v", text, c, again, err)
		}
	})
}
