package batches

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

// results serves GET /batches/{id}/results.
func (b *handlers) results(x *httpapi.Exchange, r *http.Request) error {
	cursor, err := batch.ParseCursor(x.Query.Get("cursor"))
	if err != nil {
		return httpapi.BadParameter("cursor", "is not valid; use the cursor of a result line unchanged")
	}
	m, err := b.batches.Get(r.Context(), schema.BatchID(r.PathValue("id")), x.Principal)
	if err != nil {
		return err
	}
	follow := x.Query.Get("follow") == "true" && r.Method != http.MethodHead
	if follow {
		done, err := x.Wait()
		if err != nil {
			return err
		}
		defer done()
	}
	return b.streamResults(r.Context(), x, r, m.ID, cursor, follow, httpapi.Number(x.Query, "limit", 0))
}

// takeAndStream stores the calls of a request and streams their results as they complete.
func (b *handlers) takeAndStream(x *httpapi.Exchange, r *http.Request, m *batch.Manifest, source callSource, o takeOptions) error {
	rc := http.NewResponseController(x.ResponseWriter)
	_ = rc.EnableFullDuplex() // HTTP/2 is always full duplex, and does not support this
	if r.Header.Get("Expect") != "" {
		// Read the body before the answer begins: otherwise a client that sent Expect:
		// 100-continue gets no 100, and curl then waits for a second.
		_, _ = r.Body.Read(nil) // the reader of the body detects errors
	}
	if lines, ok := source.(*lineSource); ok {
		lines.answering = true
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		err := b.takeSafely(ctx, x, m, source, o)
		if err != nil {
			cancel()
		}
		failed <- err
	}()
	err := b.streamResults(ctx, x, r, m.ID, batch.Cursor{}, true, 0)
	cancel()
	if takeErr := <-failed; takeErr != nil && x.Status == 0 {
		if !o.again {
			b.endUnused(x, m.ID)
		}
		return takeErr
	}
	return err
}

// takeSafely is take for a separate goroutine, where a panic would end the process.
func (b *handlers) takeSafely(ctx context.Context, x *httpapi.Exchange, m *batch.Manifest, source callSource, o takeOptions) (err error) {
	defer func() {
		if v := recover(); v != nil {
			b.log.Error("accepting a batch panicked", "id", x.ID, "batch", m.ID, "panic", v, "stack", string(debug.Stack()))
			err = schema.Errorf(schema.KindInternal, "The front door failed on this request; its log has the cause, under request id %s.", x.ID)
		}
	}()
	_, err = b.take(ctx, m.ID, x.Principal, source, o)
	return err
}

// streamResults writes results as lines. Each includes the cursor from which the next request
// continues.
func (b *handlers) streamResults(ctx context.Context, x *httpapi.Exchange, r *http.Request, id schema.BatchID, after batch.Cursor, follow bool, limit int) error {
	out := &lineWriter{b: b, x: x, rc: http.NewResponseController(x.ResponseWriter), id: id, left: limit}
	defer out.end()
	if !follow {
		for {
			most := resultsPage
			if limit > 0 {
				most = min(most, out.left)
			}
			page, next, err := b.batches.Results(ctx, x.Principal.Tenant, id, after, most)
			if err == nil && len(page) > 0 {
				err = out.page(ctx, page)
			}
			if err != nil || len(page) == 0 || limit > 0 && out.left == 0 {
				return out.finish(err)
			}
			after = next
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := b.endInTime(ctx, x, r, cancel)
	defer stop()
	out.start()
	_ = out.rc.Flush()
	err := b.batches.Follow(ctx, x.Principal.Tenant, id, after, func(page []batch.LineResult, _ batch.Cursor) error {
		return out.page(ctx, page)
	})
	return out.finish(err)
}

// endInTime ends a stream when its credential becomes invalid, or when the front door is about to
// stop. Its reader continues at another front door, from its cursor.
func (b *handlers) endInTime(ctx context.Context, x *httpapi.Exchange, r *http.Request, cancel context.CancelFunc) (stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(httpapi.DrainLook)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if b.draining() || !x.Follows(r) {
					cancel()
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// errEnough ends a stream that has sent the requested number of results.
var errEnough = errors.New("enough")

// lineWriter writes results as lines of JSON.
type lineWriter struct {
	b    *handlers
	x    *httpapi.Exchange
	rc   *http.ResponseController
	id   schema.BatchID
	buf  []byte
	left int // number of results still to send; 0 means no limit
	done bool
}

func (w *lineWriter) start() {
	if w.x.Status != 0 {
		return
	}
	h := w.x.Header()
	h["Content-Type"] = []string{"application/x-ndjson"}
	h.Set("X-Accel-Buffering", "no") // proxies must not buffer lines
	w.x.WriteHeader(http.StatusOK)
}

// BatchResult is the part of a result line in addition to the bytes of the result: a call of a
// batch that has ended.
type BatchResult struct {
	Index     uint64          `json:"index" doc:"Its position in the batch, from 0."`
	CustomID  string          `json:"custom_id,omitempty" doc:"The caller's own id for the call."`
	CallID    schema.CallID   `json:"call_id" doc:"The id of the call."`
	State     string          `json:"state" doc:"The final state of the call."`
	ToolError bool            `json:"tool_error,omitempty" doc:"Whether the tool's result is an error."`
	Worker    schema.WorkerID `json:"worker,omitempty" doc:"The worker of the last attempt; absent if the call was sent to none."`
	Attempt   int             `json:"attempt,omitempty" doc:"The number of attempts."`
	Cancel    bool            `json:"cancel_requested,omitempty" doc:"With state unknown: the call was asked to stop while it ran. A call in state canceled never ran."`
	Settled   string          `json:"settled,omitempty" doc:"The person who settled a call with unknown outcome, and the reason."`
	Cursor    string          `json:"cursor" doc:"The cursor with which the next request continues after this line."`
	Problem   json.RawMessage `json:"problem,omitempty" doc:"The reason that it did not succeed."`
}

// append appends the head as a JSON object to dst. It avoids reflection because a batch may have a
// million results. httpapi.Encode(h) returns the same.
func (h *BatchResult) append(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, `{"index":`...), h.Index, 10)
	text := func(name, value string) {
		if value != "" {
			dst = appendText(append(append(append(dst, `,"`...), name...), `":`...), value)
		}
	}
	text("custom_id", h.CustomID)
	dst = appendText(append(dst, `,"call_id":`...), string(h.CallID))
	dst = appendText(append(dst, `,"state":`...), h.State)
	if h.ToolError {
		dst = append(dst, `,"tool_error":true`...)
	}
	text("worker", string(h.Worker))
	if h.Attempt != 0 {
		dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(h.Attempt), 10)
	}
	if h.Cancel {
		dst = append(dst, `,"cancel_requested":true`...)
	}
	text("settled", h.Settled)
	dst = appendText(append(dst, `,"cursor":`...), h.Cursor)
	if len(h.Problem) > 0 {
		dst = append(append(dst, `,"problem":`...), h.Problem...)
	}
	return append(dst, '}')
}

// appendText appends a JSON string.
func appendText(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			return append(dst, httpapi.EncodeInline(text)...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// page writes a page of results.
func (w *lineWriter) page(ctx context.Context, page []batch.LineResult) error {
	w.start()
	w.buf = w.buf[:0]
	for i := range page {
		rec := &page[i]
		head := BatchResult{
			Index: rec.Index, CustomID: rec.CustomID, CallID: w.b.batches.CallID(w.id, rec.Index, w.x.Principal.Name), State: string(batch.StateOf(rec.Outcome)), ToolError: rec.ToolError, Worker: rec.Worker,
			Attempt: rec.Attempt, Cursor: batch.After(rec).String(),
		}
		if rec.By != "" {
			head.Settled = rec.By + ": " + rec.Reason
		}
		if len(rec.Error) > 0 {
			p := w.b.problems.Of(batch.ErrorOf(head.CallID, rec))
			head.Problem, head.Cancel = bytes.TrimSpace(p.Encode()), p.CancelRequested
		}
		w.buf = head.append(w.buf)
		if batch.Succeeded(rec) && head.Problem == nil {
			body, err := w.b.batches.ResultBody(ctx, w.x.Principal.Tenant, w.id, rec)
			if err != nil {
				return err
			}
			if len(body) > 0 {
				w.buf = append(w.buf[:len(w.buf)-1], `,"result":`...)
				w.buf = append(append(w.buf, oneLine(body)...), '}')
			}
		}
		w.buf = append(w.buf, '\n')
		if w.left > 0 {
			if w.left--; w.left == 0 {
				w.done = true
				break
			}
		}
		if len(w.buf) > 1<<20 {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.done {
		return errEnough
	}
	return nil
}

// oneLine removes line breaks from JSON. In valid JSON they occur only between tokens.
func oneLine(body []byte) []byte {
	if bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, '\r') < 0 {
		return body
	}
	return []byte(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, string(body)))
}

func (w *lineWriter) flush() error {
	_ = w.rc.SetWriteDeadline(time.Now().Add(bodies.TimeFor(len(w.buf)))) // a writer may not support deadlines
	_, err := w.x.Write(w.buf)
	w.buf = w.buf[:0]
	if err == nil {
		err = w.rc.Flush()
	}
	if err != nil {
		return &brokenError{err}
	}
	return nil
}

func (w *lineWriter) end() { _ = w.rc.SetWriteDeadline(time.Time{}) }

// finish ends a stream. After its first line, an error can only be reported by closing the
// connection.
func (w *lineWriter) finish(err error) error {
	var broken *brokenError
	switch {
	case err == nil || errors.Is(err, errEnough):
		w.start()
		return nil
	case errors.As(err, &broken):
		return nil // the client disconnected
	case w.x.Status == 0:
		return err
	}
	w.b.log.Debug("a stream of results ends early", "batch", w.id, "error", err)
	panic(http.ErrAbortHandler)
}
