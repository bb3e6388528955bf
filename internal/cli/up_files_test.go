package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
)

func TestUpNamesTheDamagedFileOfItsDataFolderAndTheFix(t *testing.T) {
	for _, name := range []string{"warrant.pem", "webhooks.secret"} {
		data := filepath.Join(t.TempDir(), "data")
		start := func() error {
			cfg := &setup.Config{File: settings.Defaults()}
			cfg.Data = data
			return ownFiles(cfg)
		}
		if err := start(); err != nil {
			t.Fatal(err)
		}
		for _, content := range []string{"", "damaged"} {
			if err := os.WriteFile(filepath.Join(data, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := start(); err == nil || !strings.Contains(err.Error(), filepath.Join(data, name)) || !strings.Contains(err.Error(), "remove it and start once with --accept-loss") {
				t.Errorf("%s with %q: %v", name, content, err)
			}
		}
		if err := os.Remove(filepath.Join(data, name)); err != nil {
			t.Fatal(err)
		}
		if err := start(); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
