package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/visible"
)

func TestATableIsColouredOnlyAtATerminal(t *testing.T) {
	rows := func() [][]cell {
		return [][]cell{{{text: "é漢"}, {"on", green}, {text: "a long text that goes\non and on"}}, {{text: "second"}, {}, {}}}
	}
	for name, s := range map[string]screen{
		"table-piped":    {},
		"table-terminal": {terminal: true, colour: true, width: 40},
		"table-narrow":   {terminal: true, width: 5},
	} {
		var b bytes.Buffer
		s.w = &b
		if err := s.table([]string{"NAME", "STATE", "TEXT"}, rows()); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
}

func TestEmptyListPrintsOnlyItsHeader(t *testing.T) {
	var b bytes.Buffer
	s := screen{w: &b}
	if err := s.table([]string{"A", "B"}, nil); err != nil || b.String() != "A  B\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s := screenOf(f); s.terminal || s.colour || s.width != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSizesAndAgesAreFormatted(t *testing.T) {
	for n, want := range map[int]string{0: "0 B", 999: "999 B", 1000: "1 kB", 12345: "12 kB", 999_499: "999 kB", 999_500: "1.0 MB", 2_340_000: "2.3 MB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
	for text, want := range map[string]int{"": 0, "eA==": 1, "eHk=": 2, "eHl6": 3, "eHl6MQ==": 4} {
		if got := decodedSize(text); got != want {
			t.Errorf("decodedSize(%q) = %d, want %d", text, got, want)
		}
	}
}

// A tool chooses the text of its result, and JSON allows control characters beyond ASCII in it.
func TestDocumentsDoNotControlATerminal(t *testing.T) {
	const sent = "{\"text\":\"a\u009b2Jb\u007f\u202ec\u0085\",\r \"more\":\"é\"}\n"
	for _, f := range []format{formatJSON, formatYAML} {
		var b bytes.Buffer
		s := screen{w: &b, terminal: true, format: f}
		if err := s.document([]byte(sent)); err != nil || strings.ContainsFunc(b.String(), visible.ControlsTerminal) || !strings.Contains(b.String(), "é") {
			t.Errorf("%s: %v, %q", f, err, b.String())
		}
		if f != formatJSON {
			continue
		}
		var want, got any
		if json.Unmarshal([]byte(sent), &want) != nil || json.Unmarshal(b.Bytes(), &got) != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%q has another value", b.String())
		}
	}
	var b bytes.Buffer
	if err := (screen{w: &b, format: formatJSON}).document([]byte(sent)); err != nil || b.String() != sent {
		t.Errorf("a pipe gets %q, %v", b.String(), err)
	}
}
