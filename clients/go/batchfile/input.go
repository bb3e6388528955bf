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
	// digestedMost is how much of a file is looked at to tell it from another;
	// of a pipe it is less, which nobody should have to wait for.
	digestedMost     = 1 << 20
	digestedMostPipe = 4 << 10
	// lineMost is more than any front door takes in one line.
	lineMost = 64 << 20
	longLine = "a line is longer than 67.1 MB"
	// blankMost is how long a line may be that has nothing in it. The front door
	// passes over those too, but takes a long one for a call that is too large.
	blankMost = 64 << 10
	// byteOrderMark is how some editors begin a file of UTF-8; it is no part of a call.
	byteOrderMark = "\xef\xbb\xbf"
	// pipeIdle is how long a pipe may be silent before what came is sent.
	pipeIdle = time.Second
)

// inputMark tells an input from another.
type inputMark struct {
	Size     int64  `json:"size"` // -1 for a pipe
	Digested int64  `json:"digested"`
	Digest   string `json:"sha256"`
}

// input gives the lines of a file or a pipe in pieces; those of a file are never in
// memory as a whole. Lines are counted as the front door counts
// them: without those that are blank. It is used by one goroutine.
type input struct {
	name string
	mark inputMark

	// line is how many lines were given, offset where the next one begins.
	line   uint64
	offset int64
	// start is where the first line begins: behind the byte-order mark of a file that has one.
	start int64

	// servers are those of the lines that were checked, with the first line of each.
	servers map[string]int

	file *os.File // nil for a pipe
	pipe *pipe
	// kept is the last piece read from a pipe; it begins at line keptFrom. rest is the
	// part of it to return again.
	kept     []byte
	keptFrom uint64
	rest     []byte
}

// piece is some lines of an input.
type piece struct {
	from, lines uint64
	body        io.Reader
	length      int64
}

// openInput opens the file or the pipe of the options.
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

// wouldOverwrite returns an error if the results or the state are written to the file with the calls,
// by whatever path: a run that starts again would empty it.
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

// close ends the reading.
func (in *input) close() {
	if in.file != nil {
		in.file.Close()
	}
	if in.pipe != nil {
		in.pipe.stop()
	}
}

// piece returns the next lines, as many as fit into both limits and one at least,
// and io.EOF when there are no more.
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
		if in.offset < in.mark.Size { // nothing but blank lines up to here
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

// skipLine passes over one line and says how long it is and whether anything is
// in it. The error is io.EOF at the end, after the last line.
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

// seek makes the line the next one that is given. Of a pipe it cannot go back
// behind what was given last.
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
