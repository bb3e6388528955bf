package mcptest

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// lookEvery is the interval at which [Versions] checks its version file.
const lookEvery = 10 * time.Millisecond

// versionIn reads the version in the folder of a server.
func versionIn(folder string) string {
	text, err := os.ReadFile(filepath.Join(folder, "version"))
	if err != nil {
		return ""
	}
	return string(text)
}

// followVersion notifies the client when the version differs from the last known one, until ctx
// ends.
func (s *server) followVersion(ctx context.Context, known string) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// A file that is being written is empty for a moment.
		if now := versionIn(s.opts.Folder); now != "" && now != known {
			known = now
			s.out.line(`{"jsonrpc":"2.0","method":"` + mcpwire.NotifyToolsChanged + `"}`)
		}
	}
}

// versionedTool reads the current version from the file and returns the definition of that version
// of the tool.
func (s *server) versionedTool() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = versionIn(s.opts.Folder)
	return `{"name":"pay","description":` + quote(s.version) + `,"inputSchema":{"type":"object"}}`
}

// addRun records a call of a version.
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

// Runs returns the number of calls that each version received, over all servers of [Versions] with
// that folder.
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
