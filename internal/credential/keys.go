package credential

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/pkg/bus"
)

// Keys holds the operator's keys, which wrap the keys of rows. The first wraps new rows. The others
// only unwrap existing rows. It is safe for concurrent use.
//
// Processes restart one after the other when the operator rotates a key, and the first one to restart
// writes rows with the new key. Therefore the others read the file again when they see a row whose key
// is not their newest one.
type Keys struct {
	file string // "" for an ephemeral key

	mu   sync.Mutex
	all  []wrapping  // never changed in place
	seen fs.FileInfo // of the file when it was last read
}

type wrapping struct {
	line int            // in the file
	name [nameSize]byte // derived from its digest
	aead cipher.AEAD
}

// String hides the keys.
func (*Keys) String() string { return "[keys]" }

// CheckKeyFiles returns the faults in the content of the files credentials.key_file and
// encryption.key_file; "" means that there is no such file. Unreadable files are not reported here,
// because that check covers every file of the configuration.
func CheckKeyFiles(credentials, encryption string) (faults []config.Fault) {
	for _, f := range []struct{ key, file string }{{"credentials.key_file", credentials}, {"encryption.key_file", encryption}} {
		var unread *fs.PathError
		if f.file == "" {
			continue
		}
		if _, err := LoadKeys(f.file); err != nil && !errors.As(err, &unread) {
			faults = append(faults, config.Faultf(f.key, "%v.", err))
		}
	}
	return faults
}

// LoadKeys reads a file of 32-byte keys in base64, one per line. To rotate, add the new key as the
// first line.
func LoadKeys(file string) (*Keys, error) {
	seen, err := os.Stat(file) // before the content, so that a later write is noticed
	if err != nil {
		return nil, err
	}
	all, err := readKeys(file)
	if err != nil {
		return nil, err
	}
	return &Keys{file: file, all: all, seen: seen}, nil
}

func readKeys(file string) (all []wrapping, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != keyBytes {
			return nil, fmt.Errorf("line %d of %s is not a key: 32 random bytes in base64, as `openssl rand -base64 32` prints them", i+1, file)
		}
		w, err := newWrapping(i+1, raw)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no key; write one with `openssl rand -base64 32`", file)
	}
	return all, nil
}

// NewKeys returns an ephemeral key that exists only in this process.
func NewKeys() (*Keys, error) {
	raw := make([]byte, keyBytes)
	_, _ = rand.Read(raw) // it never fails
	w, err := newWrapping(0, raw)
	return &Keys{all: []wrapping{w}}, err
}

func newWrapping(line int, raw []byte) (wrapping, error) {
	aead, err := newAEAD(raw)
	sum := sha256.Sum256(append([]byte("callyard credentials\x00"), raw...))
	return wrapping{line, [nameSize]byte(sum[:nameSize]), aead}, err
}

func (k *Keys) list() []wrapping {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all
}

// find returns the key with a name.
func (k *Keys) find(name []byte) (wrapping, bool) {
	named := func(w wrapping) bool { return bytes.Equal(w.name[:], name) }
	all := k.list()
	i := slices.IndexFunc(all, named)
	if i < 0 {
		all = k.reread()
		i = slices.IndexFunc(all, named)
	}
	if i < 0 {
		return wrapping{}, false
	}
	return all[i], true
}

// reread reads the file again if it changed, and returns the keys. Keys that the file no longer has
// remain, because the process may hold rows of them. If the file cannot be read, nothing changes.
func (k *Keys) reread() []wrapping {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == "" {
		return k.all
	}
	seen, err := os.Stat(k.file)
	if err != nil || k.seen != nil && os.SameFile(seen, k.seen) && seen.ModTime().Equal(k.seen.ModTime()) && seen.Size() == k.seen.Size() {
		return k.all
	}
	all, err := readKeys(k.file)
	if err != nil {
		return k.all // perhaps it is being written
	}
	for _, former := range k.all {
		if !slices.ContainsFunc(all, func(w wrapping) bool { return w.name == former.name }) {
			all = append(all, former)
		}
	}
	k.all, k.seen = all, seen
	return k.all
}

// Newest reports whether a result of Seal is wrapped with the newest key.
func (k *Keys) Newest(sealed []byte) bool {
	name := KeyName(sealed)
	return name == k.list()[0].String() || name == k.reread()[0].String()
}

// KeyName returns the name of the key that a result of Seal is wrapped with, or "" for other bytes.
func KeyName(sealed []byte) string {
	if len(sealed) <= nameSize || sealed[0] != sealedV1 {
		return ""
	}
	return hex.EncodeToString(sealed[1 : 1+nameSize])
}

// String returns the name of the key.
func (w wrapping) String() string { return hex.EncodeToString(w.name[:]) }

// KeyLine is a key of the file.
type KeyLine struct {
	Line int // the first one has the number 1
	Name string
}

// Lines returns the keys in the order of the file.
func (k *Keys) Lines() (lines []KeyLine) {
	for _, w := range k.list() {
		lines = append(lines, KeyLine{w.line, w.String()})
	}
	return lines
}

// CountKeys counts the stored credentials by the [KeyName] of their keys. data opens the rows of
// tenants, and may be nil. Rows that can never be opened again, of erased tenants, are not counted.
func CountKeys(ctx context.Context, c *bus.Conn, data DataKeys) (map[string]int, error) {
	rows, err := credentialtable.Rows(ctx, c)
	if err != nil {
		return nil, err
	}
	b, counts := &Book{data: data}, map[string]int{}
	for key, sealed := range rows {
		inner, err := b.uncover(ctx, key, sealed)
		switch {
		case errors.Is(err, errUnreadable):
		case err != nil:
			return nil, err
		default:
			counts[KeyName(inner)]++
		}
	}
	return counts, nil
}
