package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/truncate"
)

func TestTextsAreTruncatedAtCharacterBoundaries(t *testing.T) {
	for _, c := range []struct {
		text                     string
		most                     int
		head, tail, text2, inner string
	}{
		{"", 0, "", "", "", ""},
		{"abc", 3, "abc", "abc", "abc", "abc"},
		{"abcdef", 5, "abcde", "bcdef", "abcde…", "ab…"},
		{"é", 1, "", "", "…", "…"},
		{"aéé", 2, "a", "é", "a…", "…"},
		{"aéé", 4, "aé", "éé", "aé…", "a…"},
		{"漢字漢字", 7, "漢字", "漢字", "漢字…", "漢…"},
		{"😀😀", 7, "😀", "😀", "😀…", "😀…"},
		{"abc", 0, "", "", "…", "…"},
		{"abc", -1, "", "", "…", "…"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80…", "\x80\x80…"},
		{"aé", 1, "a", "", "a…", "…"},
		{"\xff\xff\xff", 2, "\xff\xff", "\xff\xff", "\xff\xff…", "…"},
	} {
		if got := truncate.Head(c.text, c.most); got != c.head {
			t.Errorf("Head(%q, %d) is %q", c.text, c.most, got)
		}
		if got := string(truncate.Head([]byte(c.text), c.most)); got != c.head {
			t.Errorf("Head of bytes (%q, %d) is %q", c.text, c.most, got)
		}
		if got := truncate.Tail(c.text, c.most); got != c.tail {
			t.Errorf("Tail(%q, %d) is %q", c.text, c.most, got)
		}
		if got := truncate.Text(c.text, c.most); got != c.text2 {
			t.Errorf("Text(%q, %d) is %q", c.text, c.most, got)
		}
		if got := truncate.Within(c.text, c.most); got != c.inner {
			t.Errorf("Within(%q, %d) is %q", c.text, c.most, got)
		}
	}
}

func FuzzNoCharacterIsSplit(f *testing.F) {
	f.Add("aé漢😀", 5)
	f.Add("\xe6\xbc", 1)
	f.Fuzz(func(t *testing.T, text string, most int) {
		head, tail, within := truncate.Head(text, most), truncate.Tail(text, most), truncate.Within(text, most)
		bound := max(most, 0)
		if len(head) > bound || len(tail) > bound || len(text) > most && len(within) > max(bound, len(truncate.Mark)) {
			t.Errorf("%q, %q and %q have more than %d bytes", head, tail, within, most)
		}
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
			t.Errorf("%q and %q are no ends of %q", head, tail, text)
		}
		if utf8.ValidString(text) {
			for _, got := range []string{head, tail, within, truncate.Text(text, most)} {
				if !utf8.ValidString(got) {
					t.Errorf("%q of %q, %d", got, text, most)
				}
			}
			if len(text) > bound && (bound-len(head) >= utf8.UTFMax || bound-len(tail) >= utf8.UTFMax) {
				t.Errorf("%q and %q are shorter than %d allows", head, tail, most)
			}
		}
	})
}
