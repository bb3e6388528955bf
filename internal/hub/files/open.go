package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"
)

// maxFile is the maximum size of a file to read or write, in bytes.
const maxFile = 10 << 20

// open opens a regular file for reading. It never blocks, regardless of the file type.
func (p place) open() (*os.File, fs.FileInfo, error) {
	// Opening a device may have side effects, so check the type first. Check the open file
	// again, because the file may have been replaced.
	before, err := p.Stat(p.name)
	if err != nil {
		return nil, nil, p.fault(err)
	}
	if err := p.regular(before); err != nil {
		return nil, nil, err
	}
	f, err := p.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, p.fault(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = p.regular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// regular returns an error unless the file is regular and has only one name.
func (p place) regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory; call list for its entries", clip(p.shown))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a %s and not a file", clip(p.shown), typeOf(info.Mode()))
	case links(info) > 1:
		return fmt.Errorf("%s has several hard links, so it may be a file from outside the root; replace it with a copy to use it", clip(p.shown))
	}
	return nil
}

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// content reads a whole file.
func (p place) content(ctx context.Context) ([]byte, fs.FileInfo, error) {
	f, info, err := p.open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return nil, nil, p.tooLarge(info.Size())
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + 1)
	n, err := b.ReadFrom(io.LimitReader(&contextReader{ctx, f}, maxFile+1))
	switch {
	case err != nil:
		return nil, nil, p.fault(err)
	case n > maxFile: // it grows
		return nil, nil, p.tooLarge(n)
	}
	return b.Bytes(), info, nil
}

func (p place) tooLarge(size int64) error {
	return fmt.Errorf("%s has %d bytes; files of at most %d bytes are read and written", clip(p.shown), size, maxFile)
}

// text reads a whole file of text.
func (p place) text(ctx context.Context) ([]byte, error) {
	b, _, err := p.content(ctx)
	if err == nil && !isText(b) {
		return nil, fmt.Errorf("%s is not UTF-8 text; call info for its size, or read with digest_only", clip(p.shown))
	}
	return b, err
}

func isText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

// digest is the SHA-256 of a file's content, in hexadecimal.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// contextReader stops reading when the context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
