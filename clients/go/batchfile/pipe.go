package batchfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// pipe reads an input that cannot be read twice. It reads in its own goroutine, because a read
// of a terminal or a pipe cannot be canceled. That goroutine may outlive the pipe until its
// read returns.
type pipe struct {
	blocks chan []byte
	quit   chan struct{}
	err    error // set before blocks is closed; nil at the end of the input

	ahead []byte // read but not returned yet
}

func newPipe(from io.Reader) *pipe {
	p := &pipe{blocks: make(chan []byte), quit: make(chan struct{})}
	go func() {
		defer close(p.blocks)
		for {
			block := make([]byte, 64<<10)
			n, err := from.Read(block)
			if n > 0 {
				select {
				case p.blocks <- block[:n]:
				case <-p.quit:
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					p.err = err
				}
				return
			}
		}
	}()
	return p
}

func (p *pipe) stop() { close(p.quit) }

// head returns the first bytes without consuming them.
func (p *pipe) head(most int) ([]byte, error) {
	for len(p.ahead) < most {
		block, ok := <-p.blocks
		if !ok {
			break
		}
		p.ahead = append(p.ahead, block...)
	}
	return p.ahead[:min(most, len(p.ahead))], p.err
}

// line returns the next line with its line ending. It returns nil without an error if idle
// fires first.
func (p *pipe) line(ctx context.Context, idle <-chan time.Time) ([]byte, error) {
	for looked := 0; ; {
		if i := bytes.IndexByte(p.ahead[looked:], '\n'); i >= 0 {
			line := p.ahead[: looked+i+1 : looked+i+1]
			p.ahead = p.ahead[looked+i+1:]
			return line, nil
		}
		if looked = len(p.ahead); looked > lineMost {
			return nil, errors.New(longLine)
		}
		select {
		case block, ok := <-p.blocks:
			if !ok {
				line := p.ahead
				if p.ahead = nil; len(line) > 0 && p.err == nil {
					return line, nil
				}
				return nil, errors.Join(p.err, io.EOF)
			}
			p.ahead = append(p.ahead, block...)
		case <-idle:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// pieceOfPipe is [input.piece] for a pipe. It keeps each piece until the next call, because
// the front door may not have received it.
func (in *input) pieceOfPipe(ctx context.Context, lines uint64, size int64) (piece, error) {
	if len(in.rest) > 0 {
		p := piece{from: in.line, lines: countLines(in.rest), body: bytes.NewReader(in.rest), length: int64(len(in.rest))}
		in.kept, in.keptFrom, in.rest = in.rest, in.line, nil
		in.line += p.lines
		return p, nil
	}
	p := piece{from: in.line}
	var text []byte
	var idle <-chan time.Time
	for p.lines < lines && int64(len(text)) < size {
		line, err := in.pipe.line(ctx, idle)
		if errors.Is(err, io.EOF) && in.pipe.err == nil {
			break
		}
		if err != nil {
			return p, in.broken(err)
		}
		if line == nil {
			break // send the lines so far; the writer of the pipe may be slow
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		text = append(text, line...)
		if p.lines++; idle == nil {
			t := time.NewTimer(pipeIdle)
			defer t.Stop()
			idle = t.C
		}
	}
	if p.lines == 0 {
		return p, io.EOF
	}
	in.kept, in.keptFrom = text, p.from
	in.line += p.lines
	p.body, p.length = bytes.NewReader(text), int64(len(text))
	return p, nil
}

// countLines counts the lines of a text that has no blank lines. The last one may lack a
// line ending.
func countLines(text []byte) uint64 {
	n := uint64(bytes.Count(text, []byte("\n")))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

func (in *input) seekPipe(ctx context.Context, line uint64) error {
	for in.line < line {
		if _, err := in.pieceOfPipe(ctx, line-in.line, lineMost); errors.Is(err, io.EOF) {
			return fault(OtherCalls, in.name, "%s has %d lines, and the batch has %d: give the same lines as before.", in.name, in.line, line)
		} else if err != nil {
			return err
		}
	}
	if line < in.keptFrom {
		return fault(LinesLost, in.name, "The front door has %d lines of the batch, but reported %d stored lines before: it is not the front door of the batch, or its data was restored from a backup.", line, in.keptFrom)
	}
	if line == in.line {
		return nil
	}
	in.rest = in.kept
	for at := in.keptFrom; at < line; at++ {
		_, in.rest, _ = bytes.Cut(in.rest, []byte("\n"))
	}
	in.line = line
	return nil
}
