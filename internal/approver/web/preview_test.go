package web

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzPeek(f *testing.F) {
	for _, text := range []string{"", "{}", `{"a":"` + strings.Repeat("ä", 200) + `"}`, strings.Repeat("\n", 50), strings.Repeat("[", 300), "\xff\xfe" + strings.Repeat("\x80", 300)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		p := previewOf(args)
		if len(p.Lines) > peekLines || p.Rest < 0 || p.Size != len(args) {
			t.Errorf("%d lines, %d more, of %d bytes", len(p.Lines), p.Rest, p.Size)
		}
		for _, line := range p.Lines {
			if len(line.Text) > peekWidth {
				t.Errorf("a line of %d bytes", len(line.Text))
			}
			if utf8.Valid(args) && !utf8.Valid(line.Text) {
				t.Errorf("a character was cut in two: %q", line.Text)
			}
		}
	})
}
