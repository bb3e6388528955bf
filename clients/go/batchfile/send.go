package batchfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// compact removes the whitespace that the state file adds to JSON, which gives the JSON as sent.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// work sends the remaining calls and reads the remaining results concurrently. The first
// error ends both.
func (j *Job) work(ctx context.Context) error {
	if j.o.Cancel {
		p := j.patience
		for {
			_, err := batchOf(j.o.Client.CancelBatch(ctx, j.id(), accept))
			if err == nil {
				break
			}
			if err := p.again(ctx, err); err != nil {
				return err
			}
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var both sync.WaitGroup
	begin := func(f func(context.Context) error) {
		both.Go(func() {
			if err := f(ctx); err != nil {
				stop(err)
			}
		})
	}
	if j.in != nil {
		begin(j.send)
	}
	if !j.o.UploadOnly {
		begin(j.read)
	}
	both.Wait()
	err := context.Cause(ctx)
	if keepErr := j.book.keep(); err == nil {
		err = keepErr
	}
	return err
}

// send sends the lines that are not stored yet, then seals the batch.
func (j *Job) send(ctx context.Context) error {
	if j.book.state().Sealed {
		return nil
	}
	p := j.patience
	at, open, err := j.stored(ctx, &p)
	for err == nil && open {
		if err = j.in.seek(ctx, at); err != nil {
			return err
		}
		at, open, err = j.sendPieces(ctx, &p)
	}
	if err != nil {
		return err
	}
	// The batch accepts no more lines: it is sealed, was canceled or has expired.
	if at, err = j.taken(ctx, &p); err != nil {
		return err
	}
	if err := j.in.seek(ctx, at); err != nil {
		return err
	}
	for {
		piece, err := j.in.piece(ctx, 1<<40, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		j.notTaken += piece.lines
	}
	return j.book.change(func(s *state) { s.Lines, s.Sealed = at, j.notTaken == 0 })
}

// sendPieces sends lines until the end of the input, or until it is uncertain which lines
// are stored; it then asks the front door. open reports that the batch accepts lines from
// line at on.
func (j *Job) sendPieces(ctx context.Context, p *patience) (at uint64, open bool, err error) {
	for {
		// The front door scans the lines of the batch at the beginning of each request, so
		// the requests grow with the batch.
		lines, most := uint64(j.pieceLines), j.pieceBytes
		if j.in.file != nil && j.in.line > lines {
			lines, most = j.in.line, j.in.mark.Size
		}
		piece, err := j.in.piece(ctx, lines, most)
		if errors.Is(err, io.EOF) {
			return j.seal(ctx, p)
		}
		if err != nil {
			return 0, false, err
		}
		from := int(piece.from)
		b, err := j.add(ctx, &from, piece.body, piece.length)
		if err != nil {
			if err := p.again(ctx, err); err != nil {
				return 0, false, err
			}
			return j.stored(ctx, p)
		}
		p.good()
		if err := j.book.change(func(s *state) { s.Lines = uint64(b.Calls) }); err != nil {
			return 0, false, err
		}
		if uint64(b.Calls) != j.in.line {
			return uint64(b.Calls), true, nil
		}
	}
}

// taken returns the number of lines of a batch that accepts no more. The number is final
// only after cancellation has finished, so taken waits for that.
func (j *Job) taken(ctx context.Context, p *patience) (uint64, error) {
	for {
		b, err := j.batch(ctx)
		if err == nil && b.State != "canceling" {
			return b.Total(), nil
		}
		if err == nil {
			p.good()
			if !p.sleep(ctx, p.first) {
				return 0, ctx.Err()
			}
		} else if err := p.again(ctx, err); err != nil {
			return 0, err
		}
	}
}

func (j *Job) seal(ctx context.Context, p *patience) (at uint64, open bool, err error) {
	for {
		_, err := batchOf(j.o.Client.SealBatch(ctx, j.id(), accept))
		if err == nil {
			return 0, false, nil
		}
		if err := p.again(ctx, err); err != nil {
			return 0, false, err
		}
	}
}

// stored returns the number of lines of the batch and whether it accepts more. While it
// does, only a response to added lines has the exact number, so stored adds zero lines.
func (j *Job) stored(ctx context.Context, p *patience) (at uint64, open bool, err error) {
	for {
		b, err := j.batch(ctx)
		if err == nil && b.State != "receiving" {
			return 0, false, nil
		}
		if err == nil {
			b, err = j.add(ctx, nil, http.NoBody, 0)
		}
		if err == nil {
			p.good()
			return uint64(b.Calls), true, j.book.change(func(s *state) { s.Lines = uint64(b.Calls) })
		}
		if err := p.again(ctx, err); err != nil {
			return 0, false, err
		}
	}
}

// read writes the results to the file as they arrive, until the batch has ended.
func (j *Job) read(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		tick := time.NewTicker(j.keepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := j.book.keep(); err != nil {
				stop(err)
				return
			}
		}
	})
	err := j.readAll(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	stop(nil)
	keeper.Wait()
	return err
}

func (j *Job) readAll(ctx context.Context) error {
	p := j.patience
	for {
		whole, err := j.readOnce(ctx, &p)
		if err == nil && whole {
			var b *Batch
			if b, err = j.batch(ctx); err == nil && b.Ended() {
				return j.book.change(func(s *state) { s.Ended = true })
			}
		}
		if err == nil {
			err = ErrIncomplete
		}
		if err := p.again(ctx, err); err != nil {
			return err
		}
	}
}

// readOnce reads one response. whole reports that the response was complete. An incomplete
// line is dropped.
func (j *Job) readOnce(ctx context.Context, p *patience) (whole bool, err error) {
	follow := true
	params := callyard.GetBatchResultsParams{Follow: &follow}
	if at := j.book.state().Cursor; at != "" {
		params.Cursor = &at
	}
	resp, err := check(j.o.Client.GetBatchResults(ctx, j.id(), &params, accept))
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if mediaType(resp) != callyard.LinesType {
		return false, ErrForeign
	}
	from := bufio.NewReaderSize(resp.Body, 256<<10)
	var long []byte
	for {
		line, err := from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(long)+len(line) == 0 {
				return true, nil
			}
			return false, err
		}
		if len(long) > 0 {
			line = append(long, line...)
			if long = line[:0]; cap(long) > 1<<20 {
				long = nil
			}
		}
		var l struct {
			CallID    string `json:"call_id"`
			State     string `json:"state"`
			ToolError bool   `json:"tool_error"`
			Cursor    string `json:"cursor"`
		}
		if json.Unmarshal(line, &l) != nil || l.Cursor == "" || l.State == "" {
			return false, ErrForeign
		}
		p.good()
		if err := j.book.add(line, l.Cursor, l.State, l.ToolError); err != nil {
			return false, err
		}
	}
}
