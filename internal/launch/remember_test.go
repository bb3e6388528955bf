package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReaperReturnsNotesOfADeadWorker(t *testing.T) {
	list := watchlist{groups: make(map[int]struct{})}
	if err := list.read(strings.NewReader(cookieLine("c") + noteLine(`{"a":1}`) + addLine(70) + noteLine("gone") + removeNoteLine("gone") + removeNoteLine("never") + noteLine("b") + "!half a note")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"a":1}`, "b"}, list.notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestNotesOutliveTheirLauncher(t *testing.T) {
	l := testLauncher(t)
	file := filepath.Join(t.TempDir(), "note")
	l.Remember("touch " + file)
	l.Remember("two\nlines")
	taken := filepath.Join(t.TempDir(), "taken")
	l.Remember("touch " + taken)
	l.Forget("touch " + taken)
	l.Remember(strings.Repeat("x", 5000))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != "touch "+file {
		t.Errorf("the reaper left %q, %v", got, err)
	}
	if _, err := os.Stat(taken); err == nil {
		t.Error("a note that was taken back was handed over")
	}
}

// handleNote is what the reaper of these tests does with notes.
func handleNote(note string) {
	if file, ok := strings.CutPrefix(note, "touch "); ok {
		_ = os.WriteFile(file, []byte(note), 0o600)
	}
}

func TestATailHidesSecretsAndKeepsTheEnd(t *testing.T) {
	tail := NewTail(quiet(), map[string]string{"TOKEN": "very-secret"})
	if n, err := tail.Write(bytes.Repeat([]byte("line\n"), 10_000)); n != 50_000 || err != nil {
		t.Errorf("it took %d, %v", n, err)
	}
	_, _ = tail.Write([]byte("the end is very-"))
	_, _ = tail.Write([]byte("secret\n"))
	tail.End()
	tail.End()
	if got := tail.String(); len(got) > tailSize+64 || !strings.HasSuffix(got, "the end is [value of TOKEN]\n") {
		t.Errorf("%d bytes that end with %q", len(got), got[len(got)-60:])
	}
}
