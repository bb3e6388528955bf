package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/warrant"
)

func TestUpNamesTheDamagedFileOfItsDataFolderAndTheFix(t *testing.T) {
	for _, name := range []string{"warrant.pem", "webhooks.secret"} {
		data := filepath.Join(t.TempDir(), "data")
		start := func() error {
			cfg := &setup.Config{File: settings.Defaults()}
			cfg.Data = data
			return ownFiles(cfg, false)
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

func TestUpReportsALostFileOfItsDataFolderInsteadOfCreatingAnother(t *testing.T) {
	for _, name := range []string{"warrant.pem", "webhooks.secret"} {
		data := t.TempDir()
		start := func(acceptLoss bool) error {
			cfg := &setup.Config{File: settings.Defaults()}
			cfg.Data = data
			if err := ownFiles(cfg, acceptLoss); err != nil {
				return err
			}
			s, err := embedded.Start(embedded.Options{Dir: data, AcceptLoss: acceptLoss, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			return s.Close()
		}
		if err := start(false); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(data, name)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first start must not create the file
			if err := start(false); err == nil || !strings.Contains(err.Error(), name+" is missing") {
				t.Errorf("without %s: %v", name, err)
			}
		}
		if err := start(true); err != nil {
			t.Errorf("without %s, and the loss is accepted: %v", name, err)
		}
		if err := start(false); err != nil {
			t.Errorf("after the loss of %s was accepted: %v", name, err)
		}
	}
}

func TestUpNamesTheFixForADataFolderThatItCannotUse(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "approver.pem")
	if err := warrant.Write(warrant.Generate(), own, filepath.Join(dir, "approver.pub.pem")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", own} {
		start := func(data string) error {
			cfg := &setup.Config{File: settings.Defaults()}
			cfg.Data, cfg.Warrants.KeyFile = data, key
			return ownFiles(cfg, false)
		}
		// A file in the place of a folder fails for every user, also for root.
		if err := start(filepath.Join(own, "data")); err == nil || !strings.Contains(err.Error(), "set another one with --data") {
			t.Errorf("in a file: %v", err)
		}
		if err := start(filepath.Join(t.TempDir(), "new")); err != nil {
			t.Errorf("in a new folder, with the key %q: %v", key, err)
		}
	}
}
