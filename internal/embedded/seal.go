package embedded

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A cleanly stopped data folder is sealed: a file holds the length and checksum of every other
// file. The next start compares them before anything is read or written, and removes the seal.
// JetStream itself would drop a damaged file with one line in its log and lose its content.

const (
	sealFile = "seal.json"
	// sealCopy limits the size of files copied into the seal: the configurations of streams,
	// without which their messages are lost.
	sealCopy = 16 << 10
)

// seal is the list of files of a sealed folder.
type seal struct {
	At    time.Time    `json:"at"`
	Files []sealedFile `json:"files"`
	// Keys are the subjects of the idempotency keys.
	Keys []string `json:"keys,omitempty"`
	// Sum is the checksum of the seal with Sum set to 0.
	Sum uint32 `json:"sum"`
}

// sealedFile is a file of a sealed folder.
type sealedFile struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	CRC      uint32    `json:"crc"`
	// First is the sequence of the first message of a block of a stream, and 0 for other files.
	First uint64 `json:"first,omitempty"`
	// Copy is the content of the file if it is the configuration of a stream.
	Copy []byte `json:"copy,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the checksum of the seal.
func (s seal) sum() (uint32, error) {
	s.Sum = 0
	text, err := json.Marshal(s)
	if err != nil {
		return 0, fmt.Errorf("encoding the seal: %w", err)
	}
	return crc32.Checksum(text, castagnoli), nil
}

// sealed reports whether a file belongs to the seal. Files that are created at each start do not.
func sealed(path string) bool {
	return path != "lock" && path != sealFile && path != lossFile && path != sealFile+".new" && !strings.HasPrefix(path, "room-") && !derived(path)
}

// derived reports whether JetStream recreates a missing file from others and detects damage to it.
func derived(path string) bool { return strings.HasSuffix(path, "/msgs/index.db") }

// timers reports whether JetStream recreates a missing file from others but does not detect damage
// to it. These files hold the times at which messages expire or are sent.
func timers(path string) bool {
	return strings.HasSuffix(path, "/msgs/thw.db") || strings.HasSuffix(path, "/msgs/sched.db")
}

// writeSeal seals a folder that is no longer in use. Files that did not change since the last seal
// are not read again.
func writeSeal(dir string, before map[string]sealedFile, keys []string) error {
	s := seal{At: time.Now().UTC(), Keys: keys}
	err := eachFile(dir, func(path string, info fs.FileInfo) error {
		if !sealed(path) {
			return nil
		}
		f, known := before[path]
		if !known || f.Size != info.Size() || !f.Modified.Equal(info.ModTime()) {
			var err error
			if f, err = digest(dir, path); err != nil {
				return err
			}
			f.Modified = info.ModTime()
		}
		s.Files = append(s.Files, f)
		return nil
	})
	if err != nil {
		return err
	}
	if s.Sum, err = s.sum(); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the seal: %w", err)
	}
	return replaceFile(filepath.Join(dir, sealFile), text)
}

// replaceFile replaces a file atomically.
func replaceFile(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func eachFile(dir string, f func(path string, info fs.FileInfo) error) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err // wrapped below
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err // wrapped below
		}
		return f(filepath.ToSlash(rel), info)
	})
	if err != nil {
		return fmt.Errorf("reading the data folder: %w", err)
	}
	return nil
}

// digest computes the entry of a file.
func digest(dir, path string) (sealedFile, error) {
	s := sealedFile{Path: path}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return s, err // the caller adds the context
	}
	defer func() { _ = f.Close() }() // it was opened for reading
	var head bytes.Buffer
	sum := crc32.New(castagnoli)
	if s.Size, err = io.Copy(sum, io.TeeReader(io.LimitReader(f, sealCopy), &head)); err == nil {
		var rest int64
		rest, err = io.Copy(sum, f)
		s.Size += rest
	}
	if err != nil {
		return s, err // the caller adds the context
	}
	s.CRC = sum.Sum32()
	switch name := path[strings.LastIndexByte(path, '/')+1:]; {
	case strings.HasPrefix(name, "meta.") && s.Size <= sealCopy:
		s.Copy = head.Bytes()
	case strings.HasSuffix(name, ".blk") && head.Len() >= 12:
		s.First = binary.LittleEndian.Uint64(head.Bytes()[4:]) // a record starts with its length and its sequence
	}
	return s, nil
}

// readSeal returns the seal of a folder, or nil if there is none: after a crash or power failure,
// which does not damage acknowledged data.
func readSeal(dir string) (*seal, error) {
	text, err := os.ReadFile(filepath.Join(dir, sealFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the seal of the data folder: %w", err)
	}
	s := new(seal)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, errBroken
	}
	if sum, err := s.sum(); err != nil || sum != s.Sum {
		return nil, errBroken
	}
	return s, nil
}

var errBroken = errors.New("the seal of the data folder is damaged")

// known returns the files of the seal by path.
func (s *seal) known() map[string]sealedFile {
	all := make(map[string]sealedFile)
	if s != nil {
		for _, f := range s.Files {
			all[f.Path] = f
		}
	}
	return all
}

// Damage is a changed or missing file of a data folder.
type Damage struct {
	// Path is the path in the folder. What is "is missing", "was cut from 9 to 4 bytes" and
	// similar. Without a path, What is a sentence.
	Path, What string
	// Stream is the stream of the file, or "". First and Last are the sequences of messages that
	// may be lost. Last 0 means all that follow First.
	Stream      string
	First, Last uint64
}

// String returns one sentence.
func (d Damage) String() string {
	text := d.Path + " " + d.What
	if d.Path == "" {
		return d.What // damage of records, not of a file
	}
	switch {
	case d.Stream == "":
	case d.First == 0:
		text += ", so messages of the stream " + d.Stream + " may be lost"
	case d.Last == 0:
		text += fmt.Sprintf(", so messages of the stream %s from sequence %d on may be lost", d.Stream, d.First)
	default:
		text += fmt.Sprintf(", so messages %d to %d of the stream %s may be lost", d.First, d.Last, d.Stream)
	}
	return text + "."
}

// DamageError means that files of the data folder have changed since it was closed.
type DamageError struct {
	Dir     string
	Damages []Damage
}

// Error lists the damage, one file on each line, and the fix.
func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the data folder %s was damaged; nothing was started:\n", e.Dir)
	for _, d := range e.Damages {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	b.WriteString("Restore the folder from a backup. If there is none, start once with --accept-loss: the intact records are used, and calls whose record may be lost end as unknown instead of running again")
	return b.String()
}

// inspect compares a folder with its seal. It restores a stream configuration from the seal, which
// loses nothing.
func inspect(dir string, s *seal, told func(text string, args ...any)) ([]Damage, error) {
	var found []Damage
	for i := range s.Files {
		want := &s.Files[i]
		path := filepath.Join(dir, filepath.FromSlash(want.Path))
		got, err := digest(dir, want.Path)
		what := ""
		switch {
		case err != nil:
			what = unread(err)
		case got.Size < want.Size:
			what = fmt.Sprintf("was truncated from %d to %d bytes", want.Size, got.Size)
		case got.Size > want.Size:
			what = fmt.Sprintf("grew from %d to %d bytes", want.Size, got.Size)
		case got.CRC != want.CRC:
			what = "has different content than was written"
		default:
			continue
		}
		if timers(want.Path) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing a damaged file: %w", err)
			}
			told("a damaged timer file is rebuilt from the messages of its stream; nothing is lost", "file", want.Path, "damage", what)
			continue
		}
		if len(want.Copy) > 0 {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), replaceFile(path, want.Copy)); err != nil {
				return nil, err
			}
			told("the damaged configuration of a stream is restored from its copy; nothing is lost", "file", want.Path, "damage", what)
			continue
		}
		found = append(found, s.damage(want, what))
	}
	slices.SortFunc(found, func(a, b Damage) int { return cmp.Compare(a.Path, b.Path) })
	return found, nil
}

// Missing returns a [DamageError] if files that the folder had when it was closed do not exist. It
// must be asked before a start that would create them again: a new file of the same name would be
// reported as changed.
func Missing(dir string, paths ...string) error {
	s, err := readSeal(dir)
	if err != nil || s == nil {
		return nil // Start reports what is wrong with the seal
	}
	var found []Damage
	for i := range s.Files {
		f := &s.Files[i]
		if !slices.Contains(paths, f.Path) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.Path))); errors.Is(err, fs.ErrNotExist) {
			found = append(found, s.damage(f, unread(err)))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &DamageError{Dir: dir, Damages: found}
}

// unread returns the damage of a file that returns the error.
func unread(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing"
	}
	return fmt.Sprintf("cannot be read (%v)", err)
}

// damage describes the damage of a file.
func (s *seal) damage(f *sealedFile, what string) Damage {
	d := Damage{Path: f.Path, What: what}
	parts := strings.Split(f.Path, "/")
	at := slices.Index(parts, "streams")
	if at < 0 || at+1 >= len(parts) {
		return d
	}
	d.Stream, d.First = parts[at+1], f.First
	folder := strings.Join(parts[:len(parts)-1], "/") + "/"
	for i := range s.Files {
		if o := &s.Files[i]; strings.HasPrefix(o.Path, folder) && o.First > f.First && (d.Last == 0 || o.First <= d.Last) {
			d.Last = o.First - 1
		}
	}
	return d
}
