// Package jsonlog appends JSON values to a file, one on each line, for programs that may be
// killed at any time.
//
// It owns the file while it is open: a lock keeps other processes out, each line is on disk
// when Append returns, and a last line that a kill left incomplete is removed. It refuses to
// know what the lines mean.
package jsonlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/kit/plainjson"
)

// ErrInUse says that another process has the file open.
var ErrInUse = errors.New("another process has it open")

// File is an open file. It is safe for concurrent use.
type File struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens the file at path, with flags of [os.OpenFile] such as os.O_CREATE and with perm
// for a new one, and returns its complete lines. It does not wait for another process that has
// the file: the error is [ErrInUse].
func Open(path string, flags int, perm os.FileMode) (f *File, lines []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|flags, perm)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // the error counts
		}
	}()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, nil, fmt.Errorf("locking %s: %w", path, err)
	}
	lines, err = repair(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &File{file: file}, lines, nil
}

// repair reads the file and removes an incomplete last line. A complete value that only lacks
// its line feed is kept.
func repair(file *os.File) ([]byte, error) {
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	switch {
	case end == len(text):
		return text, nil
	case json.Valid(text[end:]):
		_, err = file.WriteString("\n")
		return append(text, '\n'), err
	}
	return text[:end], file.Truncate(int64(end))
}

// Append writes v as a line, without escaping for HTML, and syncs it to disk.
func (f *File) Append(v any) error {
	line, err := plainjson.Line(v)
	if err != nil {
		return err
	}
	return f.Write(line)
}

// Write writes complete lines and syncs them to disk.
func (f *File) Write(lines []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.file.Write(lines); err != nil {
		return err
	}
	return f.file.Sync()
}

// Close unlocks the file.
func (f *File) Close() error { return f.file.Close() }
