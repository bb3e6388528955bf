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
		p := peekOf(args)
		lines := strings.Split(string(p.Text), "\n")
		if len(lines) > peekLines || p.Rest < 0 || p.Size != len(args) {
			t.Errorf("%d lines, %d more, of %d bytes", len(lines), p.Rest, p.Size)
		}
		for _, line := range lines {
			if len(line) > peekWidth+len(" …") {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
		if utf8.Valid(args) && !utf8.Valid(p.Text) {
			t.Errorf("a character was cut in two: %q", p.Text)
		}
	})
}
