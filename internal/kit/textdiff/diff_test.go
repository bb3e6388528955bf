package textdiff_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/textdiff"
)

func TestDiffShowsChangesWithContext(t *testing.T) {
	list := func(n int) string { return strings.Repeat(`"x",`, n) }
	for what, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing": {`{"a":1}`, `{"a":1}`, nil},
		"a value": {`{"a":"delete one file","b":2}`, `{"a":"delete all files","b":2}`, []string{" {", `-  "a": "delete [one file]",`, `+  "a": "delete [all files]",`, `   "b": 2`, " }"}},
		// One line against two: no marks within lines.
		"a new line": {`{"a":1}`, `{"a":1,"b":2}`, []string{" {", `-  "a": 1`, `+  "a": 1,`, `+  "b": 2`, " }"}},
		"far apart": {`[` + list(10) + `1]`, `[` + list(10) + `2]`,
			[]string{"(8)", `   "x",`, `   "x",`, `   "x",`, "-  [1]", "+  [2]", " ]"}},
		"spacing only": {`{"a": 1}`, `{"a":1}`, []string{`-{"a":[ ]1}`, `+{"a":[]1}`}},
		"no JSON":      {"a\nb", "a\nc", []string{" a", "-b", "+c"}},
		"letters that share a byte": {`"` + strings.Repeat("a", 20) + `é"`, `"` + strings.Repeat("a", 20) + `è"`,
			[]string{`-"` + strings.Repeat("a", 20) + `[é]"`, `+"` + strings.Repeat("a", 20) + `[è]"`}},
	} {
		got := textdiff.Compared([]byte(c.before), []byte(c.after))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestLargeDiffIsShownAsAReplacement(t *testing.T) {
	a, b := bytes.Repeat([]byte("one\n"), 50_000), bytes.Repeat([]byte("two\n"), 50_000)
	x, y, _ := textdiff.Sides(a, b)
	if !bytes.Equal(x, a) || !bytes.Equal(y, b) {
		t.Error("something is lost")
	}
}

func TestManySmallChangesAreShownSeparately(t *testing.T) {
	const changes, apart = 400, 10
	var before, after, want []string
	for i := range changes * apart {
		line := fmt.Sprintf("the line of number %d", i)
		before, after = append(before, line), append(after, line)
		if i%apart == 0 {
			after[i] += ", changed"
			want = append(want, "-"+line, "+"+line+"[, changed]")
		}
	}
	var got []string
	for _, l := range textdiff.Compared([]byte(strings.Join(before, "\n")), []byte(strings.Join(after, "\n"))) {
		if l[0] == '+' || l[0] == '-' {
			got = append(got, strings.ReplaceAll(l, "[]", ""))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDiffKeepsBothTexts(f *testing.F) {
	f.Add([]byte("a\nb\nc"), []byte("a\nx\nc\n"))
	f.Add([]byte(""), []byte("\n"))
	f.Add([]byte("é\xff"), []byte("è\xff"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		a, b, valid := textdiff.Sides(before, after)
		if !bytes.Equal(a, before) || !bytes.Equal(b, after) {
			t.Fatalf("%q and %q came out as %q and %q", before, after, a, b)
		}
		if !valid {
			t.Fatalf("%q and %q are cut within a character", before, after)
		}
	})
}
