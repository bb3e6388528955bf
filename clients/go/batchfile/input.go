package batchfile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// digestedMost limits the bytes that are hashed to detect a different file. The
	// limit for a pipe is lower, so that a run does not wait long for input.
	digestedMost     = 1 << 20
	digestedMostPipe = 4 << 10
	// lineMost exceeds the line limit of every front door.
	lineMost = 64 << 20
	longLine = "a line is longer than 67.1 MB"
	// blankMost limits the length of a blank line. The front door skips blank lines
	// too, but refuses a long one as a call that is too large.
	blankMost = 64 << 10
	// byteOrderMark begins the UTF-8 files of some editors. It is not part of a call.
	byteOrderMark = "\xef\xbb\xbf"
	// pipeIdle limits the time that lines of a pipe wait for more lines before they are sent.
	pipeIdle = time.Second
)

// inputMark identifies an input, to detect that a later run has a different one.
type inputMark struct {
	Size     int64  `json:"size"` // -1 for a pipe
	Digested int64  `json:"digested"`
	Digest   string `json:"sha256"`
}

// input returns the lines of a file or a pipe in pieces. A file is never in memory as a
// whole. Line numbers match those of the front door, which skips blank lines. It is not
// safe for concurrent use.
type input struct {
	name string
	mark inputMark

	// line is the number of lines returned so far. offset is the start of the next one.
	line   uint64
	offset int64
	// start is the offset of the first line, after a byte-order mark.
	start int64

	// servers maps the servers of the checked lines to the first line of each.
	servers map[string]int

	file *os.File // nil for a pipe
	pipe *pipe
	// kept is the last piece read from a pipe, which begins at line keptFrom. rest is the
	// part of it to return again.
	kept     []byte
	keptFrom uint64
	rest     []byte
}

// piece is a sequence of lines of an input.
type piece struct {
	from, lines uint64
	body        io.Reader
	length      int64
}

// openInput opens the file or the pipe that the options name.
func openInput(o *Options) (*input, error) {
	in := &input{name: o.Name}
	if o.Pipe != nil {
		if f, ok := o.Pipe.(interface{ Stat() (fs.FileInfo, error) }); ok {
			if info, err := f.Stat(); err == nil {
				if err := o.wouldOverwrite(info); err != nil {
					return nil, err
				}
			}
		}
		return in, in.usePipe(o.Pipe)
	}
	f, err := os.Open(o.Calls)
	if err != nil {
		return nil, fault(BadCalls, in.name, "The calls cannot be read: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder")
	}
	if err == nil && !info.Mode().IsRegular() {
		return in, in.usePipe(f)
	}
	if err == nil {
		if err := o.wouldOverwrite(info); err != nil {
			f.Close()
			return nil, err
		}
	}
	if err == nil {
		in.file, in.mark.Size = f, info.Size()
		err = in.digest(io.NewSectionReader(f, 0, digestedMost))
		mark := make([]byte, len(byteOrderMark))
		if n, _ := f.ReadAt(mark, 0); n == len(mark) && string(mark) == byteOrderMark {
			in.start, in.offset = int64(n), int64(n)
		}
	}
	if err != nil {
		f.Close()
		return nil, fault(BadCalls, in.name, "%s cannot be read: %w", in.name, err)
	}
	return in, nil
}

// wouldOverwrite returns an error if the results or the state would be written to the file
// of the calls, also through another path. A restarted run would truncate it.
func (o *Options) wouldOverwrite(calls fs.FileInfo) error {
	for _, path := range []string{o.Results, statePath(o.Results)} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && os.SameFile(info, calls) {
			return fault(BadResults, path, "%s is the file with the calls: use another file for the results.", path)
		}
	}
	return nil
}

func (in *input) usePipe(from io.Reader) error {
	in.pipe = newPipe(from)
	in.mark.Size = -1
	head, err := in.pipe.head(digestedMostPipe)
	if err == nil {
		err = in.digest(bytes.NewReader(head))
		in.pipe.ahead = bytes.TrimPrefix(in.pipe.ahead, []byte(byteOrderMark))
	}
	if err != nil {
		return fault(BadCalls, in.name, "%s cannot be read: %w", in.name, err)
	}
	return nil
}

func (in *input) digest(from io.Reader) (err error) {
	h := sha256.New()
	in.mark.Digested, err = io.Copy(h, from)
	in.mark.Digest = hex.EncodeToString(h.Sum(nil))
	return err
}

// close closes the file or stops the pipe.
func (in *input) close() {
	if in.file != nil {
		in.file.Close()
	}
	if in.pipe != nil {
		in.pipe.stop()
	}
}

// piece returns as many lines as fit into both limits, but at least one. It returns
// io.EOF after the last line.
func (in *input) piece(ctx context.Context, lines uint64, size int64) (piece, error) {
	if in.file == nil {
		return in.pieceOfPipe(ctx, lines, size)
	}
	p := piece{from: in.line}
	begin := in.offset
	scan := bufio.NewReaderSize(io.NewSectionReader(in.file, begin, in.mark.Size-begin), 1<<18)
	for p.lines < lines && p.length < size {
		n, blank, err := skipLine(scan)
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return p, in.broken(err)
		}
		p.length += n
		if !blank {
			p.lines++
		}
		if err != nil {
			break
		}
	}
	in.line, in.offset = in.line+p.lines, begin+p.length
	if p.lines == 0 {
		if in.offset < in.mark.Size { // only blank lines so far
			return in.piece(ctx, lines, size)
		}
		return p, io.EOF
	}
	p.body = io.NewSectionReader(in.file, begin, p.length)
	return p, nil
}

func (in *input) broken(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fault(BadCalls, in.name, "%s cannot be read after line %d: %w", in.name, in.line, err)
}

// skipLine skips one line and returns its length and whether it is blank. It returns
// io.EOF with the last line.
func skipLine(r *bufio.Reader) (n int64, blank bool, err error) {
	for blank = true; ; {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		blank = blank && len(bytes.TrimSpace(part)) == 0
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			if blank && n > blankMost {
				err = errors.New("a line consists of too many spaces")
			}
			return n, blank, err
		}
		if n > lineMost {
			return n, blank, errors.New(longLine)
		}
	}
}

// seek makes line the next line that piece returns. A pipe cannot seek back beyond the
// last piece.
func (in *input) seek(ctx context.Context, line uint64) error {
	if in.file == nil {
		return in.seekPipe(ctx, line)
	}
	if line < in.line {
		in.line, in.offset = 0, in.start
	}
	for in.line < line {
		_, err := in.piece(ctx, line-in.line, in.mark.Size+1)
		if errors.Is(err, io.EOF) {
			return fault(OtherCalls, in.name, "%s has %d lines, and the batch has %d: it is not the file of this batch.", in.name, in.line, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
