package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func wideRows() [][]cell {
	return [][]cell{
		{{text: "call_06b2t8m3c0w3v2q5n7k9a1d4fz"}, {"succeeded", green}, {text: "filesystem-of-the-build"}, {text: "read_text_file"}, {text: "agent"}, {text: "3s"}, {text: "12ms"}, {}},
		{{text: "call_06b2t8m3c0w3v2q5n7k9a1d500"}, {"failed", red}, {text: "漢字漢字漢字"}, {text: "write"}, {}, {text: "1h20m"}, {text: "1.2s"}, {text: "the process ended with exit status 3 before it answered, and nothing is known of the call"}},
	}
}

func TestARowOfATableIsOneRowOfTheTerminal(t *testing.T) {
	header := []string{"CALL", "STATE", "SERVER", "TOOL", "REQUESTED BY", "AGE", "TOOK", "WHY"}
	for _, width := range []int{0, 160, 80, 60, 30} {
		var b bytes.Buffer
		s := screen{w: &b, terminal: width > 0, width: width}
		if err := s.table(header, wideRows()); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("table-width-%d", width), b.String())
	}
	for width := 1; width < 200; width++ {
		var b bytes.Buffer
		s := screen{w: &b, terminal: true, width: width}
		if err := s.table(header, wideRows()); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > max(width, 7) {
				t.Errorf("a line of %d columns on a terminal of %d:\n%s", n, width, b.String())
			}
		}
	}
}

func TestTextIsMeasuredAsTheTerminalDrawsIt(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "漢字": 4, "ａ": 2, "한": 2, "🚀": 2, "a\u200bb": 2, "…": 1, "█": 1} {
		if got := columnsOf(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"abcdef", 6, "abcdef"}, {"abcdef", 4, "abc…"}, {"漢字漢", 5, "漢字…"}, {"漢字漢", 4, "漢…"}, {"ab", 1, "…"}, {"", 0, ""}} {
		if got := shorten(c.text, c.n); got != c.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestColoursFollowTheConventions(t *testing.T) {
	for _, c := range []struct {
		env      string
		terminal bool
		want     bool
	}{
		{"", true, true}, {"", false, false},
		{"NO_COLOR=1", true, false}, {"TERM=dumb", true, false}, {"CLICOLOR=0", true, false},
		{"CLICOLOR_FORCE=1", false, true}, {"CLICOLOR_FORCE=0", false, false}, {"CLICOLOR_FORCE=1 CLICOLOR=0", false, true},
		{"NO_COLOR=1 CLICOLOR_FORCE=1", true, false},
	} {
		got := wantsColour(c.terminal, func(name string) string {
			for pair := range strings.FieldsSeq(c.env) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if got != c.want {
			t.Errorf("%q at a terminal %t: %t", c.env, c.terminal, got)
		}
	}
}

func TestAnEmptyLastColumnIsLeftOutFirst(t *testing.T) {
	header := []string{"CALL", "STATE", "WHY"}
	row := func(why string) [][]cell { return [][]cell{cells("call_06b2t8m3c0w3v2q5n7k9a1d4fz", "succeeded", why)} }
	for _, c := range []struct {
		width   int
		why     string
		columns int
	}{{42, "", 2}, {42, "x", 3}, {80, "", 3}, {0, "", 3}} {
		got, rows := screen{width: c.width}.withoutEmptyText(header, row(c.why))
		if len(got) != c.columns || len(rows[0]) != c.columns {
			t.Errorf("%d wide with %q: %q", c.width, c.why, got)
		}
	}
}
