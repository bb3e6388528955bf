package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/config"
)

const (
	maxSecret = 64 << 10
	// recheck is the age after which a secret file is checked for changes.
	recheck = time.Second
)

// secret is a text of the configuration, or of a file that may change. It is safe for concurrent use.
type secret struct {
	file string // "" if the text is constant

	mu      sync.Mutex
	text    string
	seen    fs.FileInfo // of the file when it was read
	checked time.Time
}

func newSecret(s config.Secret) *secret { return &secret{file: s.File, text: s.Text} }

func (s *secret) changes() bool { return s.file != "" }

// get returns the secret. If the file cannot be read any more, it returns the last secret, because
// the file may be in the middle of a replacement.
func (s *secret) get(_ context.Context, now bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" || !now && s.seen != nil && time.Since(s.checked) < recheck {
		return s.text, nil
	}
	info, err := os.Stat(s.file)
	if err == nil && !now && s.seen != nil && os.SameFile(info, s.seen) && info.ModTime().Equal(s.seen.ModTime()) && info.Size() == s.seen.Size() {
		s.checked = time.Now()
		return s.text, nil
	}
	var text string
	if err == nil {
		text, err = readSecret(s.file)
	}
	switch {
	case err == nil:
		s.text, s.seen = text, info
	case s.seen == nil:
		return "", err
	}
	s.checked = time.Now()
	return s.text, nil
}

// readSecret reads a file without its final line break.
func readSecret(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("its secret cannot be read: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch text = bytes.TrimRight(text, "\r\n"); {
	case err != nil:
		return "", fmt.Errorf("its secret cannot be read: %w", err)
	case len(text) == 0:
		return "", fmt.Errorf("the file %s of its secret is empty", file)
	case len(text) > maxSecret:
		return "", fmt.Errorf("the file %s of its secret is longer than %d bytes", file, maxSecret)
	}
	return string(text), nil
}

// errHeader means that a secret cannot be sent in a header.
var errHeader = errors.New("its secret holds a line break or another character that is not allowed in headers")

// header checks that a secret is valid in a header.
func header(text string) (string, error) {
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c >= 0x7f }) {
		return "", errHeader
	}
	return text, nil
}
