package jsonlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenRemovesOnlyAnIncompleteLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{}\n": "{}\n", "{}\n{\"a\":": "{}\n", "{}\n{\"a\":1}": "{}\n{\"a\":1}\n", "{\"a": "",
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, lines, err := Open(path, 0, 0)
		if err != nil || string(lines) != want {
			t.Fatalf("%q: %q, %v", text, lines, err)
		}
		if _, _, err := Open(path, 0, 0); !errors.Is(err, ErrInUse) {
			t.Errorf("the file is open twice: %v", err)
		}
		if err := errors.Join(f.Append(map[string]string{"b": "<é>"}), f.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want+"{\"b\":\"<é>\"}\n" {
			t.Errorf("%q: after an append %q, %v", text, got, err)
		}
	}
}
