package ui

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLongTextIsFoldedAfterItsFirstLines(t *testing.T) {
	for what, c := range map[string]struct {
		text, preview, extent string
	}{
		"short":              {"{\n}", "", ""},
		"as many as fit":     {strings.Repeat("x\n", previewLines-1) + "x", "", ""},
		"many lines":         {strings.Repeat("x\n", 1999) + "x", strings.Repeat("x\n", previewLines-1) + "x", "2,000 lines"},
		"one long line":      {strings.Repeat("x", 5000), strings.Repeat("x", previewBytes), "5,000 bytes"},
		"several long lines": {strings.Repeat("x", 5000) + "\nx", strings.Repeat("x", previewBytes), "5,002 bytes"},
		"a cut character":    {strings.Repeat("x", previewBytes-1) + strings.Repeat("é", 100), strings.Repeat("x", previewBytes-1), "799 bytes"},
	} {
		f := fold("Arguments", []byte(c.text))
		if string(f.Preview) != c.preview || f.Extent != c.extent || string(f.Text) != c.text {
			t.Errorf("%s: the preview has %d bytes, the extent is %q", what, len(f.Preview), f.Extent)
		}
	}
}

func FuzzFold(f *testing.F) {
	for _, text := range []string{"", "{}", strings.Repeat("ä", 700), strings.Repeat("\n", 50), "\xff" + strings.Repeat("\x80", 700)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := fold("", text)
		if !bytes.Equal(got.Text, text) || !bytes.HasPrefix(text, got.Preview) || len(got.Preview) > previewBytes || bytes.Count(got.Preview, []byte("\n")) >= previewLines {
			t.Errorf("%d bytes become a preview of %d", len(text), len(got.Preview))
		}
		if (len(got.Preview) == 0) != (got.Extent == "") {
			t.Errorf("the preview has %d bytes, the extent is %q", len(got.Preview), got.Extent)
		}
		if utf8.Valid(text) && !utf8.Valid(got.Preview) {
			t.Error("a character was cut in two")
		}
	})
}
