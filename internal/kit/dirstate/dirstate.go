// Package dirstate copies a directory that holds the state of a program, and computes its
// digest.
//
// It promises that a digest depends on the names, types, execute bits and contents in the
// directory alone, and that nothing outside the directory is read, whatever changes in it
// meanwhile: a program that may be hostile can still run there. It follows no symbolic link. It
// refuses devices, sockets and named pipes, and more bytes than it was allowed.
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

	"golang.org/x/sys/unix"
)

// MaxBytes is the most that a directory may hold, with all files in it.
const MaxBytes = 64 << 20

// errLarge says that a directory holds too much.
var errLarge = fmt.Errorf("the directory holds more than %d bytes", MaxBytes)

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

// Digest is the SHA-256 of the directory, in hexadecimal.
func Digest(dir string) (string, error) {
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
		return "", fmt.Errorf("reading the directory: %w", err)
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
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

// walk calls each with every file of dir, in lexical order.
func walk(dir string, each func(root *os.Root, rel string, info fs.FileInfo) error) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(rel string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := root.Lstat(rel)
		if err != nil {
			return err
		}
		if t := info.Mode().Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
			return fmt.Errorf("%s is neither a file, a directory nor a symbolic link", rel)
		}
		return each(root, rel, info)
	})
}

// open opens a file that is no link and no pipe.
func open(root *os.Root, rel string) (*os.File, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", rel)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
