package mcptest

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// lookEvery is how often [Versions] looks at its version.
const lookEvery = 10 * time.Millisecond

// versionIn reads the version of a server with that folder.
func versionIn(folder string) string {
	text, err := os.ReadFile(filepath.Join(folder, "version"))
	if err != nil {
		return ""
	}
	return string(text)
}

// followVersion tells the client when the version is another than it was told, until ctx ends.
func (s *server) followVersion(ctx context.Context, told string) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := versionIn(s.opts.Folder); now != told {
			told = now
			s.out.line(`{"jsonrpc":"2.0","method":"` + mcpwire.NotifyToolsChanged + `"}`)
		}
	}
}

// versionedTool makes the tool the version that the file has now, and defines it.
func (s *server) versionedTool() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = versionIn(s.opts.Folder)
	return `{"name":"pay","description":` + quote(s.version) + `,"inputSchema":{"type":"object"}}`
}

// addRun notes a call of a version.
func addRun(folder, version string) error {
	f, err := os.OpenFile(filepath.Join(folder, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(version + "\n"); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Runs returns how many calls each version received of all servers of [Versions] with that
// folder, by version.
func Runs(folder string) (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(folder, "runs"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	runs := map[string]int{}
	for from, i := 0, 0; i < len(text); i++ {
		if text[i] == '\n' {
			runs[string(text[from:i])]++
			from = i + 1
		}
	}
	return runs, nil
}
