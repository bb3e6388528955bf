package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

// key names an answer.
type key struct {
	id    string
	trial int
}

// answers is a file of responses that grows. It is safe for concurrent use.
type answers struct {
	mu   sync.Mutex
	file *os.File
}

// open opens the file, which it locks against other processes, and reads what it has. A last
// line that a kill left incomplete is removed.
func open(path string) (a *answers, have map[key]*eval.Response, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // a file of results, which holds no secret
	if err != nil {
		return nil, nil, err
	}
	a = &answers{file: file}
	defer func() {
		if err != nil {
			_ = file.Close() // the error counts
		}
	}()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil, fmt.Errorf("another process writes %s", path)
		}
		return nil, nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := a.repair(); err != nil {
		return nil, nil, fmt.Errorf("removing the incomplete last line of %s: %w", path, err)
	}
	read, err := stage.ReadResponses(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	have = make(map[key]*eval.Response, len(read))
	for i := range read {
		have[key{read[i].ID, read[i].Trial}] = &read[i].Response
	}
	return a, have, nil
}

// repair removes an incomplete last line.
func (a *answers) repair() error {
	text, err := io.ReadAll(a.file)
	if err != nil {
		return err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == len(text) {
		return nil
	}
	if json.Valid(text[end:]) { // of a program that ends its file without a line feed
		_, err = a.file.WriteString("\n")
		return err
	}
	return a.file.Truncate(int64(end))
}

// append writes an answer and syncs it to disk.
func (a *answers) append(r *eval.Response) error {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(r); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.file.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	return nil
}

// Close closes the file.
func (a *answers) Close() error { return a.file.Close() }
