package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// PIDs holds the ids of the processes that mode [Grandchild] leaves running.
type PIDs struct {
	Child   int // in the process group of the server
	Session int // leader of a separate session
}

// ReadPIDs reads the file of [PIDFile].
func ReadPIDs(path string) (PIDs, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return PIDs{}, fmt.Errorf("reading the pids: %w", err)
	}
	var p PIDs
	if _, err := fmt.Sscanf(string(text), "child %d session %d", &p.Child, &p.Session); err != nil {
		return PIDs{}, fmt.Errorf("reading the pids in %s: %w", path, err)
	}
	return p, nil
}

// startGrandchildren starts the two sleepers and writes their pids. They hold stdout and stderr, so
// that a reader that waits for the end of the stream waits for them.
func startGrandchildren(s *server) {
	child := startSleeper(&syscall.SysProcAttr{})
	session := startSleeper(&syscall.SysProcAttr{Setsid: true})
	if s.opts.PIDFile == "" {
		return
	}
	text := fmt.Sprintf("child %d session %d\n", child, session)
	unfinished := filepath.Join(filepath.Dir(s.opts.PIDFile), "."+filepath.Base(s.opts.PIDFile)+".tmp")
	if err := os.WriteFile(unfinished, []byte(text), 0o600); err != nil {
		die("writing the pids", err)
	}
	if err := os.Rename(unfinished, s.opts.PIDFile); err != nil {
		die("writing the pids", err)
	}
}

func startSleeper(attr *syscall.SysProcAttr) int {
	executable, err := os.Executable()
	if err != nil {
		die("finding this executable", err)
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), EnvMode+"="+sleeper)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		die("starting a grandchild", err)
	}
	return cmd.Process.Pid // not waited for, because it must outlive the server
}

func die(doing string, err error) {
	fmt.Fprintf(os.Stderr, "mcptest: %s: %v\n", doing, err)
	os.Exit(2)
}

// appendEffect adds one line to the file and returns when it is on disk. A single write of a short
// line to a file opened with O_APPEND does not interleave with those of other processes.
func appendEffect(path, id string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the effects file: %w", err)
	}
	if _, err := f.WriteString(id + "\n"); err != nil {
		_ = f.Close()
		return fmt.Errorf("writing the effects file: %w", err)
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return fmt.Errorf("syncing the effects file: %w", err)
	}
	return f.Close()
}

// ReadEffects returns the number of times that the tool effect wrote each id. A missing file has
// none.
func ReadEffects(path string) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading the effects file: %w", err)
	}
	effects := map[string]int{}
	for id := range strings.Lines(string(text)) {
		effects[strings.TrimSuffix(id, "\n")]++
	}
	return effects, nil
}
