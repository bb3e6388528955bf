package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// compact is JSON as it is sent; the state file has it with spaces.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// work sends what is not sent and reads what is not read, side by side. The first
// error ends both.
func (r *batchRun) work(ctx context.Context) error {
	if r.o.cancel {
		p := r.patience
		for {
			_, err := r.c.batchAnswer(ctx, "POST", r.path("/cancel"), "", nil, 0, "")
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
	if r.in != nil {
		begin(r.send)
	}
	if r.o.follow {
		begin(r.read)
	}
	both.Wait()
	err := context.Cause(ctx)
	if keepErr := r.book.keep(); err == nil {
		err = keepErr
	}
	return err
}

func (r *batchRun) path(rest string) string {
	return "/batches/" + segment(r.book.state().Batch) + rest
}

// send sends the lines that are not stored, then seals the batch.
func (r *batchRun) send(ctx context.Context) error {
	if r.book.state().Sealed {
		return nil
	}
	p := r.patience
	at, open, err := r.stored(ctx, &p)
	for err == nil && open {
		if err = r.in.seek(ctx, at); err != nil {
			return err
		}
		at, open, err = r.sendPieces(ctx, &p)
	}
	if err != nil {
		return err
	}
	// It takes no more: it is sealed, was canceled or has expired.
	if at, err = r.taken(ctx, &p); err != nil {
		return err
	}
	if err := r.in.seek(ctx, at); err != nil {
		return err
	}
	for {
		piece, err := r.in.piece(ctx, 1<<40, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		r.notTaken += piece.lines
	}
	return r.book.change(func(s *batchState) { s.Lines, s.Sealed = at, r.notTaken == 0 })
}

// sendPieces sends until the end of the input, or until it is not sure what is
// stored: then it asks. open says that the batch takes lines from at on.
func (r *batchRun) sendPieces(ctx context.Context, p *patience) (at uint64, open bool, err error) {
	for {
		// The front door looks through what a batch has at the begin of each
		// request, so requests grow with it.
		lines, most := uint64(r.pieceLines), r.pieceBytes
		if r.in.file != nil && r.in.line > lines {
			lines, most = r.in.line, r.in.mark.Size
		}
		piece, err := r.in.piece(ctx, lines, most)
		if errors.Is(err, io.EOF) {
			return r.seal(ctx, p)
		}
		if err != nil {
			return 0, false, err
		}
		b, err := r.c.batchAnswer(ctx, "POST", r.path("/calls?from="+strconv.FormatUint(piece.from, 10)), mediaLines, piece.body, piece.length, "")
		if err != nil {
			if err := p.again(ctx, err); err != nil {
				return 0, false, err
			}
			return r.stored(ctx, p)
		}
		p.good()
		if err := r.book.change(func(s *batchState) { s.Lines = b.Calls }); err != nil {
			return 0, false, err
		}
		if b.Calls != r.in.line {
			return b.Calls, true, nil
		}
	}
}

// taken asks how many lines a batch has that takes no more. One that is being
// canceled knows when it has ended.
func (r *batchRun) taken(ctx context.Context, p *patience) (uint64, error) {
	for {
		b, err := r.c.batchAnswer(ctx, "GET", r.path(""), "", nil, 0, "")
		if err == nil && b.State != "canceling" {
			return b.total(), nil
		}
		if err == nil {
			p.good()
			if !p.sleep(ctx, p.pauses.First) {
				return 0, ctx.Err()
			}
		} else if err := p.again(ctx, err); err != nil {
			return 0, err
		}
	}
}

func (r *batchRun) seal(ctx context.Context, p *patience) (at uint64, open bool, err error) {
	for {
		_, err := r.c.batchAnswer(ctx, "POST", r.path("/seal"), "", nil, 0, "")
		if err == nil {
			return 0, false, nil
		}
		if err := p.again(ctx, err); err != nil {
			return 0, false, err
		}
	}
}

// stored asks how many lines the batch has, and whether it takes more. While it
// does only who sends calls learns that for sure, so this sends none.
func (r *batchRun) stored(ctx context.Context, p *patience) (at uint64, open bool, err error) {
	for {
		b, err := r.c.batchAnswer(ctx, "GET", r.path(""), "", nil, 0, "")
		if err == nil && b.State != "receiving" {
			return 0, false, nil
		}
		if err == nil {
			b, err = r.c.batchAnswer(ctx, "POST", r.path("/calls"), mediaLines, http.NoBody, 0, "")
		}
		if err == nil {
			p.good()
			return b.Calls, true, r.book.change(func(s *batchState) { s.Lines = b.Calls })
		}
		if err := p.again(ctx, err); err != nil {
			return 0, false, err
		}
	}
}

// read writes the results to the file as they come, until the batch has ended.
func (r *batchRun) read(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		tick := time.NewTicker(r.keepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := r.book.keep(); err != nil {
				stop(err)
				return
			}
		}
	})
	err := r.readAll(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	stop(nil)
	keeper.Wait()
	return err
}

func (r *batchRun) readAll(ctx context.Context) error {
	p := r.patience
	for {
		whole, err := r.readOnce(ctx, &p)
		if err == nil && whole {
			var b *batchItem
			if b, err = r.c.batchAnswer(ctx, "GET", r.path(""), "", nil, 0, ""); err == nil && b.ended() {
				return r.book.change(func(s *batchState) { s.Ended = true })
			}
		}
		if err == nil {
			err = fail(exitUnreachable, "%s ended the stream of results before the batch had ended.", r.c.base)
		}
		if err := p.again(ctx, err); err != nil {
			return err
		}
	}
}

// readOnce reads one answer; whole says that it came to its end. Of a line that
// breaks off nothing is kept.
func (r *batchRun) readOnce(ctx context.Context, p *patience) (whole bool, err error) {
	query := url.Values{"follow": {"true"}}
	if at := r.book.state().Cursor; at != "" {
		query.Set("cursor", at)
	}
	resp, err := r.c.attempt(ctx, "GET", r.path("/results?"+query.Encode()), "", nil, 0, "")
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if mediaType(resp.Header) != mediaLines {
		return false, r.c.foreign()
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
			return false, r.c.unreachable(ctx, err)
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
			return false, r.c.foreign()
		}
		p.good()
		if err := r.book.add(line, l.Cursor, l.State, l.ToolError); err != nil {
			return false, err
		}
	}
}
