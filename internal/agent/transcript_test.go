package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent"
)

func TestATranscriptMayBeginWithAByteOrderMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edited.jsonl")
	if err := os.WriteFile(path, []byte("\xef\xbb\xbf"+`{"type":"session","session":"s","model":"ollama:m"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := agent.OpenTranscript(path)
	if err != nil {
		t.Fatal(err)
	}
	if opened.ID != "s" {
		t.Errorf("the session is %q", opened.ID)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}

// TestNonTranscriptFileIsNotModified opens other files as transcripts: text without a line feed
// at its end, and lines of JSON of which the last is incomplete.
func TestNonTranscriptFileIsNotModified(t *testing.T) {
	for _, text := range []string{"", "my notes", "my notes\nthat end here", `{"id":"1"}` + "\n" + `{"id":"2","te`, `{"type":"user","text":"a"}` + "\n{"} {
		path := filepath.Join(t.TempDir(), "notes.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.OpenTranscript(path); err == nil || !strings.Contains(err.Error(), "is not a transcript") {
			t.Errorf("%q: %v", text, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q is %q now, %v", text, got, err)
		}
	}
}
