// Package jsonlog appends JSON values to a file, one per line, for programs that may be killed at
// any time.
//
// It owns the file while it is open. A lock excludes other processes, each line is on disk when
// Append returns, and an incomplete last line is removed after a kill. It does not interpret the
// lines.
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

// ErrInUse means that another process has the file open.
var ErrInUse = errors.New("another process has it open")

// File is an open file. It is safe for concurrent use.
type File struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens the file at path and returns its complete lines. flags are those of [os.OpenFile],
// such as os.O_CREATE, and perm is for a new file. If another process has the file open, it returns
// [ErrInUse] without waiting.
func Open(path string, flags int, perm os.FileMode) (f *File, lines []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|flags, perm)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // the first error is returned
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

// repair reads the file and removes an incomplete last line. It keeps a complete value that lacks
// only its line feed.
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
