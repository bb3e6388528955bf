package bom_test

import (
	"testing"

	"github.com/callyard/callyard/internal/kit/bom"
)

func TestOnlyLeadingByteOrderMarkIsRemoved(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"{}":                       "{}",
		"\xef\xbb\xbf{}":           "{}",
		"\xef\xbb":                 "\xef\xbb",
		"\xef\xbb\xbf\xef\xbb\xbf": "\xef\xbb\xbf",
		" \xef\xbb\xbf{}":          " \xef\xbb\xbf{}",
	} {
		if got := string(bom.Trim([]byte(text))); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
