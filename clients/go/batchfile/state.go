package batchfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// stateVersion is the version of the layout of [state]. Other versions are refused.
const stateVersion = 1

// state is the data that a later run needs to continue. It never refers to data that is not
// yet on disk and at the front door: the results are synced before the cursor that
// covers them.
type state struct {
	Version int       `json:"version"`
	URL     string    `json:"url"`
	Input   inputMark `json:"input"`
	// Key is the idempotency key of the request that creates the batch, and Order its
	// body. Sending both again does not create a second batch.
	Key   string          `json:"key"`
	Order json.RawMessage `json:"order"`
	Batch string          `json:"batch,omitempty"` // "" until the front door has answered
	// Lines is the last known number of stored lines. Sealed reports that these are
	// all lines.
	Lines  uint64 `json:"lines"`
	Sealed bool   `json:"sealed,omitempty"`
	// Cursor continues reading after the first Bytes of the results file, which hold the
	// results counted in Tally.
	Cursor string `json:"cursor,omitempty"`
	Bytes  int64  `json:"bytes"`
	Tally  Tally  `json:"tally"`
	Ended  bool   `json:"ended,omitempty"`
}

// Tally counts results by their state.
type Tally struct {
	Lines      uint64 `json:"lines"`
	Succeeded  uint64 `json:"succeeded"`
	ToolErrors uint64 `json:"tool_errors"` // included in Succeeded
	Failed     uint64 `json:"failed"`      // includes denied, expired and canceled
	Unknown    uint64 `json:"unknown"`
}

func (t *Tally) add(state string, toolError bool) {
	t.Lines++
	switch state {
	case "succeeded":
		t.Succeeded++
		if toolError {
			t.ToolErrors++
		}
	case "unknown":
		t.Unknown++
	default:
		t.Failed++
	}
}

// notebook keeps the results file and the state next to it. It is safe for concurrent
// use. The process may be killed at any moment: the next one that opens the notebook finds
// a valid state and truncates the results to match it.
type notebook struct {
	path string // of the results
	// fault simulates the end of the process in tests. It is called before each step; after
	// it returns an error, nothing is written any more.
	fault func(step string) error

	mu      sync.Mutex
	results *os.File
	buf     *bufio.Writer
	now     state // as of the last line that was added
	dirty   bool
}

func statePath(results string) string { return results + ".state" }

// open locks the results file for this process and reads its state. found is false if there
// is no state.
func (n *notebook) open() (found bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := os.OpenFile(n.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, fault(BadResults, n.path, "The results cannot be written: %w", err)
	}
	if info, statErr := f.Stat(); statErr == nil && !info.Mode().IsRegular() {
		f.Close()
		return false, fault(BadResults, n.path, "%s is not a file: results are written to a file, so that a later run can continue.", n.path)
	}
	if err := lock(f); err != nil {
		f.Close()
		return false, fault(InUse, n.path, "Another process is writing to %s: wait until it has ended, or use another file.", n.path)
	}
	n.results, n.buf = f, bufio.NewWriterSize(f, 256<<10)
	text, err := os.ReadFile(statePath(n.path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n.now)
	}
	if err == nil && n.now.Version != stateVersion {
		err = fmt.Errorf("it was written by another version of callyard (%d)", n.now.Version)
	}
	if err != nil {
		f.Close()
		return false, fault(BadState, n.path, "%s, the state of the last run, cannot be read: %w.", statePath(n.path), err)
	}
	return true, nil
}

// empty reports whether there are no results.
func (n *notebook) empty() bool {
	info, err := n.results.Stat()
	return err == nil && info.Size() == 0
}

// begin sets the state of a batch that is about to be created.
func (n *notebook) begin(s state) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Version = stateVersion
	n.now = s
	if err := n.save(); err != nil { // first, so that the old results are not removed before their state
		return err
	}
	return n.cut()
}

// resume truncates the results to match the state. If the results were removed or
// shortened, they are read again from the beginning.
func (n *notebook) resume() (again bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	info, err := n.results.Stat()
	if err != nil {
		return false, n.broken(err)
	}
	if info.Size() < n.now.Bytes {
		n.now.Cursor, n.now.Bytes, n.now.Tally, n.now.Ended, again = "", 0, Tally{}, false, true
		if err := n.save(); err != nil {
			return false, err
		}
	}
	return again, n.cut()
}

func (n *notebook) cut() error {
	err := n.step("cut")
	if err == nil {
		err = n.results.Truncate(n.now.Bytes)
	}
	if err == nil {
		_, err = n.results.Seek(n.now.Bytes, io.SeekStart)
	}
	n.buf.Reset(n.results)
	return n.broken(err)
}

// state returns the current state.
func (n *notebook) state() state {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// change updates the state and writes it to disk.
func (n *notebook) change(f func(*state)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.now)
	n.dirty = true
	return n.write()
}

// add appends a line of results, including its line feed. The line is on disk after the
// next keep.
func (n *notebook) add(line []byte, cursor, state string, toolError bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.step("line"); err != nil {
		return n.broken(err)
	}
	if _, err := n.buf.Write(line); err != nil {
		return n.broken(err)
	}
	n.now.Cursor, n.now.Bytes, n.dirty = cursor, n.now.Bytes+int64(len(line)), true
	n.now.Tally.add(state, toolError)
	return nil
}

// keep syncs all added lines and the state to disk.
func (n *notebook) keep() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.write()
}

func (n *notebook) write() error {
	if !n.dirty {
		return nil
	}
	err := n.step("flush")
	if err == nil {
		err = n.buf.Flush()
	}
	if err == nil {
		err = n.step("sync")
	}
	if err == nil {
		err = n.results.Sync()
	}
	if err != nil {
		return n.broken(err)
	}
	return n.save()
}

// save replaces the state file atomically.
func (n *notebook) save() error {
	text, err := json.MarshalIndent(&n.now, "", "  ")
	if err == nil {
		err = n.step("new state")
	}
	if err == nil {
		err = writeSynced(statePath(n.path)+".new", append(text, '\n'))
	}
	if err == nil {
		err = n.step("rename")
	}
	if err == nil {
		err = os.Rename(statePath(n.path)+".new", statePath(n.path))
	}
	if err == nil {
		err = syncFolder(filepath.Dir(n.path))
	}
	n.dirty = err != nil
	if err == nil {
		err = n.step("saved")
	}
	return n.broken(err)
}

func (n *notebook) step(name string) error {
	if n.fault == nil {
		return nil
	}
	return n.fault(name)
}

func (n *notebook) broken(err error) error {
	if err == nil {
		return nil
	}
	return fault(BadResults, n.path, "The results cannot be written to %s: %w. The batch continues to run; when this is fixed, the next run continues.", n.path, err)
}

func (n *notebook) close() { n.results.Close() }

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
