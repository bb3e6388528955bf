package batches

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// callSource returns the calls of a request one by one, and io.EOF at the end. A *schema.Error
// refuses only that line.
type callSource interface {
	next() (rec batch.Line, customID string, err error)
}

// intakeResult is the outcome of storing the calls of a request.
type intakeResult struct {
	m        *batch.Manifest
	stored   uint64
	refused  uint64
	refusals []LineRefusal // the first ones, up to shownRefusals
	last     LineRefusal
}

// takeOptions control the storing of the calls of a request.
type takeOptions struct {
	// seal means that no more calls follow. again means that another request may have begun to
	// send the calls, so those already stored are skipped.
	seal, again bool
	// from is the number of stored calls according to the caller, or -1 if it is not given.
	from int64
}

// take stores the calls of the source. If another request also sends them, it may have completed the
// batch in the meantime. Then there is nothing to store.
func (b *handlers) take(ctx context.Context, id schema.BatchID, who schema.Principal, source callSource, o takeOptions) (*intakeResult, error) {
	t, err := b.takeAll(ctx, id, who, source, o)
	if !o.again || schema.KindOf(err) != schema.KindConflict {
		return t, err
	}
	m, again := b.batches.Get(ctx, id, who)
	if again != nil || m.State == batch.Receiving {
		return nil, err
	}
	if lines, ok := source.(*lineSource); ok {
		if err := lines.compare(m.Lines); err != nil {
			return nil, err
		}
	}
	return &intakeResult{m: m, stored: m.Calls}, nil
}

func (b *handlers) takeAll(ctx context.Context, id schema.BatchID, who schema.Principal, source callSource, o takeOptions) (*intakeResult, error) {
	in, err := b.batches.Intake(ctx, id, who)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if have := in.Next(); o.from >= 0 && have != uint64(o.from) {
		return nil, schema.Errorf(schema.KindConflict, "%d lines of batch %s are stored, but from is %d: continue from line %d.", have, id, o.from, have)
	}
	skip := uint64(0)
	if o.again {
		skip = in.Next()
	}
	t := &intakeResult{}
	inRow, refused := 0, in.Refused() // inRow counts refused lines since the last accepted one
	var first LineRefusal             // the first of these lines
	for {
		rec, customID, err := source.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if skip > 0 && (err == nil || isRefusal(err)) {
			skip--
			continue
		}
		index := in.Next()
		switch {
		case err == nil:
			before := in.Refused()
			if err = in.Add(ctx, rec); err == nil && in.Refused() > before {
				t.note(index, rec.CustomID, "The batch already has a line with this custom_id.")
			}
		case isRefusal(err):
			why := schema.AsError(err)
			t.note(index, customID, why.Detail)
			err = in.Refuse(ctx, customID, why)
		}
		switch inRow++; {
		case in.Refused() == refused:
			inRow = 0
		case inRow == 1:
			first = t.last
		case inRow >= refusedInRow && err == nil:
			if err = in.Flush(ctx); err == nil { // store the refusals before the end
				err = b.giveUp(ctx, id, who, first)
			}
		}
		refused = in.Refused()
		if err != nil {
			// The stored calls remain, and the caller continues from there.
			flushing, stop := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
			defer stop()
			if flushErr := in.Flush(flushing); flushErr != nil {
				err = errors.Join(err, flushErr)
			}
			return nil, errPartlyStored(id, in.Stored(), o, err)
		}
	}
	if o.seal {
		sum := ""
		if lines, ok := source.(*lineSource); ok {
			sum = lines.sum()
		}
		t.m, err = in.Seal(ctx, sum)
	} else if err = in.Flush(ctx); err == nil {
		t.m, err = b.batches.Get(ctx, id, who)
	}
	if err != nil {
		return nil, errPartlyStored(id, in.Stored(), o, err)
	}
	t.stored, t.refused = in.Stored(), in.Refused()
	return t, nil
}

// errPartlyStored returns the error for a batch whose next calls cannot be stored. The stored ones
// run, so the caller must not take the error for that of a batch that does not exist.
func errPartlyStored(id schema.BatchID, stored uint64, o takeOptions, err error) error {
	e, ok := errors.AsType[*schema.Error](err)
	if !ok || e.Kind != schema.KindUnavailable || stored == 0 {
		return err
	}
	next := fmt.Sprintf("Send the others to POST /batches/%s/calls?from=%d and seal the batch, or cancel it. A repeated request without an Idempotency-Key would run the first ones again.", id, stored)
	if o.again {
		next = "Repeat the request with its Idempotency-Key."
	}
	partly := schema.Errorf(schema.KindUnavailable, "The first %d calls of batch %s are stored and run; the others could not be stored. %s (%w)", stored, id, next, err)
	partly.Retryable, partly.RetryAfter = o.again || o.from >= 0, e.RetryAfter
	return partly
}

// refusedInRow is the number of consecutive refused lines that ends the batch. Such input is not a
// batch, and each refusal takes more disk space than its line.
const refusedInRow = 1000

// giveUp ends a batch with too many consecutive refused lines. It returns the error for the caller.
func (b *handlers) giveUp(ctx context.Context, id schema.BatchID, who schema.Principal, first LineRefusal) error {
	why := fmt.Sprintf("%d consecutive lines were refused, so the batch was ended. Line %d: %s", refusedInRow, first.Index, first.Detail)
	if _, err := b.batches.End(ctx, id, who, why); err != nil {
		return err
	}
	return schema.Errorf(schema.KindInvalidRequest, "%s Check that the body has one JSON call on each line, and send it as a new batch. GET /batches/%s returns the state of the earlier lines.", why, id)
}

func (t *intakeResult) note(index uint64, customID, detail string) {
	t.last = LineRefusal{Index: index, CustomID: customID, Detail: detail}
	if len(t.refusals) < shownRefusals {
		t.refusals = append(t.refusals, t.last)
	}
}

// isRefusal reports whether an error refuses a single line. Other errors end the request.
func isRefusal(err error) bool {
	var broken *brokenError
	return err != nil && !errors.As(err, &broken)
}

// brokenError means that the rest of a body cannot be read.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// lineSource reads one call from each line of a body of any length. It reads the socket only as
// fast as the calls are stored.
type lineSource struct {
	lines lineReader
	x     *httpapi.Exchange
	r     *http.Request
	rc    *http.ResponseController
	from  *bufio.Reader
	limit int
	line  []byte
	begun bool      // the first line was read
	set   time.Time // when the read deadline was set
	valid time.Time // when the credential was checked
	// digest is computed over all bytes read; nil if it is not used.
	digest hash.Hash
	// answering means that another goroutine is writing the answer and owns its headers.
	answering bool
}

// giveUp closes the connection after the answer, if the answer has not begun.
func (s *lineSource) giveUp(err error) error {
	if !s.answering {
		s.x.Set("Connection", "close")
	}
	return &brokenError{err}
}

// lastFlush is the timeout of storing the calls received before a stream broke.
const lastFlush = 5 * time.Second

// lineTimeout is the maximum time without a byte on a stream of lines.
const lineTimeout = 10 * time.Minute

// newLineSource reads the lines of a request. digested enables sum and compare.
func (b *handlers) newLineSource(x *httpapi.Exchange, r *http.Request, digested bool) *lineSource {
	s := &lineSource{lines: b.lines, x: x, r: r, valid: time.Now(), rc: http.NewResponseController(x.ResponseWriter), limit: b.lines.limits.ArgumentBytes + submit.EnvelopeBytes}
	var body io.Reader = r.Body
	if digested {
		s.digest = sha256.New()
		body = io.TeeReader(body, s.digest)
	}
	s.from = bufio.NewReaderSize(body, 64<<10)
	return s
}

// sum returns the digest of the lines after all of them have been read, or "" if there is none.
func (s *lineSource) sum() string {
	if s.digest == nil {
		return ""
	}
	return hex.EncodeToString(s.digest.Sum(nil))
}

// compare reads the remaining lines and returns an error if the digest of all lines differs from
// sum. If sum is "", it is not known and nothing is compared.
func (s *lineSource) compare(sum string) error {
	for sum != "" {
		switch _, _, err := s.wait(); {
		case errors.Is(err, io.EOF) && s.sum() == sum:
			return nil
		case errors.Is(err, io.EOF):
			return batch.ErrKeyReused()
		case err != nil:
			return err
		}
	}
	return nil
}

// wait is read with a deadline for the line.
func (s *lineSource) wait() (line []byte, tooLong bool, err error) {
	// Storing a line may have taken long while more lines were buffered.
	if s.from.Buffered() == 0 || time.Since(s.set) > lineTimeout/10 {
		s.set = time.Now()
		_ = s.rc.SetReadDeadline(s.set.Add(lineTimeout)) // a writer may not support deadlines
	}
	if line, tooLong, err = s.read(); err != nil {
		return line, tooLong, err
	}
	// Lines can arrive for hours. If the key was narrowed, the calls that it no longer includes are
	// refused one by one, when they leave.
	if now := time.Now(); now.Sub(s.valid) >= httpapi.DrainLook {
		s.valid = now
		if err := s.x.Continues(s.r); err != nil {
			return nil, false, s.giveUp(err)
		}
	}
	return line, tooLong, nil
}

func (s *lineSource) next() (rec batch.Line, customID string, err error) {
	for {
		line, tooLong, err := s.wait()
		if err != nil {
			return rec, "", err
		}
		if !s.begun { // skip the byte order mark of an editor
			s.begun, line = true, bom.Trim(line)
		}
		if tooLong {
			return rec, "", httpapi.ErrBodyTooLarge(s.limit)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return s.lines.readItem(line)
		}
	}
}

// endlessLines is the multiple of the limit at which reading of a line stops. A shorter line over
// the limit is refused alone, and the lines after it are accepted.
const endlessLines = 8

// read returns the next line. The last line needs no line feed.
func (s *lineSource) read() (line []byte, tooLong bool, err error) {
	s.line = s.line[:0]
	length := 0
	for {
		part, err := s.from.ReadSlice('\n')
		if !s.x.Reserve(s.from.Size() + cap(s.line) + len(part)) {
			return nil, false, s.giveUp(httpapi.ErrBodiesFull())
		}
		if length += len(part); length > endlessLines*s.limit {
			return nil, false, s.giveUp(schema.Errorf(schema.KindTooLarge, "A line of the body has more than %d bytes; the limit is %d. GET the batch returns the number of stored lines.", endlessLines*s.limit, s.limit))
		}
		if len(s.line)+len(part) > s.limit {
			tooLong = true
			s.line = s.line[:0]
		} else {
			s.line = append(s.line, part...)
		}
		switch {
		case err == nil:
			return s.line, tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(s.line) > 0 || tooLong):
			return s.line, tooLong, nil
		case errors.Is(err, io.EOF):
			_ = s.rc.SetReadDeadline(time.Time{})
			return nil, false, io.EOF
		default:
			return nil, false, s.giveUp(schema.Errorf(schema.KindInvalidRequest, "The body could not be read completely; GET the batch returns the number of stored lines, and POST …/calls?from= continues from there."))
		}
	}
}

// lineReader parses the calls of a batch, within the limits of all calls.
type lineReader struct{ limits calls.Limits }

// readItem parses one call of a batch.
func (l lineReader) readItem(raw []byte) (rec batch.Line, customID string, err error) {
	if rec, ok := l.readPlainItem(raw); ok {
		return rec, rec.CustomID, nil
	}
	return l.readAnyItem(raw)
}

// readAnyItem parses one call of a batch in any valid form.
func (l lineReader) readAnyItem(raw []byte) (rec batch.Line, customID string, err error) {
	members, err := httpapi.ReadObject(raw, l.limits.ArgumentBytes+submit.EnvelopeBytes, l.limits.ArgumentDepth+1, "custom_id", "server", "tool", "arguments", "timeout_ms")
	if err != nil {
		return rec, customIDOf(raw), err
	}
	if err := httpapi.ReadMember(members, "custom_id", false, "a string", &customID); err != nil || len(customID) > maxCustomID {
		if err == nil {
			err = schema.Errorf(schema.KindInvalidRequest, "The custom_id exceeds the limit of %d bytes.", maxCustomID)
		}
		return rec, "", err
	}
	call := &schema.Call{}
	if err := submit.ReadMembers(members, call, l.limits.MaxTimeout); err != nil {
		return rec, customID, err
	}
	return batch.Line{
		CustomID: customID, Server: call.Server, Tool: call.Tool, Timeout: call.Timeout, Accepted: time.Now().UTC(), Arguments: bytes.Clone(call.Arguments),
	}, customID, nil
}

// customIDOf returns the custom_id of a line that is not a valid call, or "" if it cannot be read.
func customIDOf(raw []byte) string {
	var line struct {
		CustomID string `json:"custom_id"`
	}
	if err := json.Unmarshal(raw, &line); err != nil || len(line.CustomID) > maxCustomID {
		return ""
	}
	return line.CustomID
}

// listSource returns the calls of a JSON document one by one. It keeps the list as received bytes:
// fully parsed, a list of 32 MiB could take ten times the memory.
type listSource struct {
	lines lineReader
	list  []byte // from the next call on; valid JSON
	begun bool   // its opening bracket was read
}

func (s *listSource) next() (rec batch.Line, customID string, err error) {
	item := s.item()
	if item == nil {
		return rec, "", io.EOF
	}
	return s.lines.readItem(item)
}

// item returns the next call verbatim, or nil after the last one.
func (s *listSource) item() []byte {
	i := 0
	for i < len(s.list) && (s.list[i] <= ' ' || s.list[i] == '[' && !s.begun || s.list[i] == ',') {
		s.begun = s.begun || s.list[i] == '['
		i++
	}
	if i >= len(s.list) || s.list[i] == ']' {
		return nil
	}
	var scan rawjson.Scanner
	scan.Reset(s.list[i:])
	if !scan.Value() {
		return nil // cannot happen: it was validated
	}
	end := i + scan.At()
	item := s.list[i:end]
	s.list = s.list[end:]
	return item
}

// count returns the number of remaining calls.
func (s *listSource) count() (n int) {
	for left := *s; left.item() != nil; {
		n++
	}
	return n
}

// readBatch parses a batch sent as one JSON document.
func (l lineReader) readBatch(body []byte, o *batch.Order, open, stream *bool) (callSource, error) {
	members, err := httpapi.ReadObject(body, jsonBatch, l.limits.ArgumentDepth+4, "calls", "priority", "expires_in", "callback_url", "labels", "open", "stream")
	if err != nil {
		return nil, err
	}
	s := &listSource{lines: l, list: members["calls"]}
	if len(s.list) > 0 && s.list[0] != '[' {
		return nil, httpapi.ReadMember(members, "calls", false, "an array of calls", new([]json.RawMessage))
	}
	var seconds uint32
	if err := cmp.Or(
		httpapi.ReadMember(members, "priority", false, "a whole number from -10 to 10", &o.Priority),
		httpapi.ReadMember(members, "expires_in", false, "a number of seconds", &seconds),
		httpapi.ReadMember(members, "callback_url", false, "an address", &o.CallbackURL),
		httpapi.ReadMember(members, "labels", false, "an object of strings", &o.Labels),
		httpapi.ReadMember(members, "open", false, "true or false", open),
		httpapi.ReadMember(members, "stream", false, "true or false", stream),
	); err != nil {
		return nil, err
	}
	if _, given := members["expires_in"]; given {
		o.Life = time.Duration(seconds) * time.Second
	}
	if o.Calls = s.count(); o.Calls == 0 && !*open {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The batch has no calls. Send calls, or \"open\": true to send them later with POST /batches/{id}/calls.")
	}
	if o.Priority < minPriority || o.Priority > maxPriority {
		return nil, httpapi.BadMember("priority", "a whole number from %d to %d", minPriority, maxPriority)
	}
	if _, given := members["expires_in"]; given && seconds < 1 {
		return nil, httpapi.BadMember("expires_in", "a number of seconds of at least 1")
	}
	if len(o.Labels) > maxLabels {
		return nil, httpapi.BadMember("labels", "at most %d labels", maxLabels)
	}
	for k, v := range o.Labels {
		if len(k) > maxLabelName || len(v) > maxLabelValue {
			return nil, httpapi.BadMember("labels", "labels of at most %d bytes, with values of at most %d", maxLabelName, maxLabelValue)
		}
	}
	return s, nil
}
