// Package dirstate copies a directory that holds the state of a program, and computes its
// digest.
//
// It promises that a digest depends on the names, types, execute bits and contents in the
// directory alone, and that nothing outside the directory is read, whatever changes in it
// meanwhile: a program that may be hostile can still run there. It follows no symbolic link. It
// refuses devices, sockets and named pipes, and directories with more than [MaxBytes],
// [MaxEntries] or [MaxDepth], which bounds its time and memory.
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
	// MaxBytes is the most that a directory may hold, with all files in it.
	MaxBytes = 64 << 20
	// MaxEntries is the most files, directories and links that may be in a directory and
	// those below it.
	MaxEntries = 100_000
	// MaxDepth is the most directories that may be inside one another. Each look at a file
	// costs one step for each of them.
	MaxDepth = 64
)

// ErrUnusable is in the errors of [Digest] that whoever wrote the directory caused: what is in
// it cannot be read, or is too much. Other errors are faults of the machine.
var ErrUnusable = errors.New("the directory cannot be used as a state")

var (
	errLarge = fmt.Errorf("%w: it holds more than %d bytes", ErrUnusable, MaxBytes)
	errMany  = fmt.Errorf("%w: it holds more than %d files and directories", ErrUnusable, MaxEntries)
	errDeep  = fmt.Errorf("%w: more than %d directories are inside one another", ErrUnusable, MaxDepth)
	errKind  = fmt.Errorf("%w: it holds what is neither a file, a directory nor a symbolic link", ErrUnusable)
)

// digestTries is how often a digest is begun again because a file vanished while it was read,
// as the temporary files of a correct program do.
const digestTries = 3

// Copy copies what is in the directory from into the directory to, which exists.
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
		n, err := io.Copy(out, io.LimitReader(f, left+1)) // uses reflinks where the file system can
		if left -= n; err == nil && left < 0 {
			err = errLarge
		}
		return errors.Join(err, out.Close(), f.Close())
	})
}

// Digest is the SHA-256 of the directory, in hexadecimal. An error that is [ErrUnusable] is about
// what is in the directory.
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
		return "", blame(err)
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
}

// blame adds [ErrUnusable] to an error that is no fault of the machine.
func blame(err error) error {
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

// Reason says in a few words, without names of files, why an error is [ErrUnusable].
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

// field writes a part with its length, so that the boundary of parts counts.
func field(h hash.Hash, part []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	h.Write(size[:])
	h.Write(part)
}

// Share lets all users read and write everything in a directory, itself included, which nobody
// else uses yet. Execute bits of files stay as they are, and so does the digest.
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

// Remove removes a directory and all that is in it, also directories that their owner may not
// change any more. It follows no symbolic link.
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
			_ = root.Chmod(rel, 0o700) // the second try says what is still wrong
		}
		return nil
	})
	return errors.Join(root.Close(), os.RemoveAll(dir))
}

// walk calls each with every file of dir, a directory before what is in it, in an order that
// depends on the names alone. It reads no more than it may, also of a directory with millions of
// files.
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
	left int // entries that there may still be
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

// names are the names in a directory in lexical order, as many as there may still be.
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

// open opens a file that is no link and no pipe.
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
