// Package dirstate copies a directory that holds the state of a program, and computes its
// digest.
//
// A digest depends only on the names, types, execute bits and contents in the directory. Nothing
// outside the directory is read, even if a hostile program changes the directory at the same
// time. Symbolic links are not followed. Devices, sockets and named pipes are rejected, and so are
// directories with more than [MaxBytes], [MaxEntries] or [MaxDepth]. This bounds time and memory.
package dirstate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// MaxBytes is the maximum total size of the files in a directory and those below it.
	MaxBytes = 64 << 20
	// MaxEntries is the maximum number of files, directories and links in a directory and those
	// below it.
	MaxEntries = 100_000
	// MaxDepth is the maximum nesting of directories. Each access to a file costs one step per
	// level.
	MaxDepth = 64
)

// ErrUnusable marks errors of [Digest] that the writer of the directory caused: its content cannot
// be read or exceeds a limit. Other errors are faults of the machine.
var ErrUnusable = errors.New("the directory cannot be used as a state")

var (
	errLarge = fmt.Errorf("%w: it holds more than %d bytes", ErrUnusable, MaxBytes)
	errMany  = fmt.Errorf("%w: it holds more than %d files and directories", ErrUnusable, MaxEntries)
	errDeep  = fmt.Errorf("%w: more than %d directories are inside one another", ErrUnusable, MaxDepth)
	errKind  = fmt.Errorf("%w: it holds what is neither a file, a directory nor a symbolic link", ErrUnusable)
)

// digestTries is the number of attempts at a digest if a file vanishes while it is read. The
// temporary files of a correct program may do so.
const digestTries = 3

// Copy copies the content of the directory from into the existing directory to.
func Copy(from, to string) error {
	left := int64(MaxBytes)
	return walk(from, func(root *os.Root, rel string, info fs.FileInfo) error {
		target := filepath.Join(to, rel)
		switch {
		case info.IsDir():
			if rel == "." {
				return nil
			}
			return os.Mkdir(target, info.Mode().Perm()|0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := root.Readlink(rel)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		f, err := open(root, rel)
		if err != nil {
			return err
		}
		out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o600)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		n, err := io.Copy(out, io.LimitReader(f, left+1)) // uses reflinks if the file system supports them
		if left -= n; err == nil && left < 0 {
			err = errLarge
		}
		return errors.Join(err, out.Close(), f.Close())
	})
}

// Digest returns the SHA-256 of the directory, in hexadecimal. An error that is [ErrUnusable] is
// caused by the content of the directory.
func Digest(dir string) (sum string, err error) {
	for range digestTries {
		if sum, err = digestOnce(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return sum, err
}

func digestOnce(dir string) (string, error) {
	whole := sha256.New()
	left := int64(MaxBytes)
	err := walk(dir, func(root *os.Root, rel string, info fs.FileInfo) error {
		kind, mode := byte('f'), info.Mode().Perm()&0o111
		switch {
		case info.IsDir():
			kind, mode = 'd', 0
		case info.Mode()&fs.ModeSymlink != 0:
			kind, mode = 'l', 0
		}
		field(whole, []byte(filepath.ToSlash(rel)))
		field(whole, []byte{kind, byte(mode >> 3), byte(mode & 7)})
		switch kind {
		case 'd':
			return nil
		case 'l':
			link, err := root.Readlink(rel)
			field(whole, []byte(link))
			return err
		}
		f, err := open(root, rel)
		if err != nil {
			return err
		}
		one := sha256.New()
		n, err := io.Copy(one, io.LimitReader(f, left+1))
		if left -= n; err == nil && left < 0 {
			err = errLarge
		}
		field(whole, one.Sum(nil))
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return "", asUnusable(err)
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
}

// asUnusable adds [ErrUnusable] to an error that is not a fault of the machine.
func asUnusable(err error) error {
	for _, machine := range []unix.Errno{unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ESTALE, unix.EINTR, unix.ETIMEDOUT} {
		if errors.Is(err, machine) {
			return fmt.Errorf("reading the directory: %w", err)
		}
	}
	if errors.Is(err, ErrUnusable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnusable, err)
}

// Reason returns the cause of an [ErrUnusable] in a few words, without file names.
func Reason(err error) string {
	for _, known := range []error{errLarge, errMany, errDeep, errKind} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if number, ok := errors.AsType[unix.Errno](err); ok {
		return fmt.Sprintf("%v: %v", ErrUnusable, number)
	}
	return ErrUnusable.Error()
}

// field writes a length-prefixed part, so that the boundaries of parts affect the hash.
func field(h hash.Hash, part []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	h.Write(size[:])
	h.Write(part)
}

// Share lets all users read and write a directory and everything in it. No other process may use
// the directory yet. The execute bits of files and the digest are unchanged.
func Share(dir string) error {
	return walk(dir, func(root *os.Root, rel string, info fs.FileInfo) error {
		switch {
		case info.IsDir():
			return root.Chmod(rel, 0o777)
		case info.Mode().IsRegular():
			return root.Chmod(rel, info.Mode().Perm()|0o666)
		}
		return nil
	})
}

// Remove removes a directory and its content, including directories that their owner may not
// modify. It does not follow symbolic links.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(rel string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = root.Chmod(rel, 0o700) // the second attempt returns the remaining error
		}
		return nil
	})
	return errors.Join(root.Close(), os.RemoveAll(dir))
}

// walk calls each with every file of dir, a directory before its content, in an order that depends
// only on the names. It stops reading at the limits, also within a directory of millions of files.
func walk(dir string, each func(root *os.Root, rel string, info fs.FileInfo) error) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	w := walker{root: root, each: each, left: MaxEntries}
	return w.visit(".", 0)
}

type walker struct {
	root *os.Root
	each func(root *os.Root, rel string, info fs.FileInfo) error
	left int // remaining entries up to the limit
}

func (w *walker) visit(rel string, depth int) error {
	info, err := w.root.Lstat(rel)
	if err != nil {
		return err
	}
	if t := info.Mode().Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
		return errKind
	}
	if depth > MaxDepth {
		return errDeep
	}
	if err := w.each(w.root, rel, info); err != nil || !info.IsDir() {
		return err
	}
	names, err := w.names(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.visit(filepath.Join(rel, name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// names returns the names in a directory in lexical order, up to the remaining limit.
func (w *walker) names(rel string) ([]string, error) {
	f, err := w.root.OpenFile(rel, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(w.left + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if w.left -= len(names); err == nil && w.left < 0 {
		err = errMany
	}
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}

// open opens a file. It rejects links and pipes.
func open(root *os.Root, rel string) (*os.File, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errKind
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
