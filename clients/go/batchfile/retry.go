package batchfile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// refusalMost limits the number of bytes that are read of an error response.
const refusalMost = 1 << 20

// accept requests the media types that the package reads.
func accept(_ context.Context, r *http.Request) error {
	r.Header.Set("Accept", "application/json, "+callyard.LinesType)
	return nil
}

// check returns a successful response. For any other response the error is a
// *callyard.ProblemError. Its arguments are the results of a method of the client.
func check(res *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusOK && res.StatusCode < http.StatusMultipleChoices {
		return res, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, refusalMost))
	if err != nil {
		return nil, err
	}
	if err := callyard.Check(res, body); err != nil {
		return nil, err
	}
	// A redirect, which the client does not follow.
	return nil, &callyard.ProblemError{Problem: callyard.Problem{Title: http.StatusText(res.StatusCode), Status: int64(res.StatusCode)}, Header: res.Header, Body: body}
}

// Batch is a batch and the bytes that it was decoded from.
type Batch struct {
	callyard.Batch
	// Raw is the JSON document as received from the front door.
	Raw []byte
}

// Ended reports whether the batch has ended, so that no more results arrive.
func (b *Batch) Ended() bool {
	switch b.State {
	case callyard.BatchStateReceiving, callyard.BatchStateRunning, callyard.BatchStateCanceling:
		return false
	}
	return true
}

// Total is the number of calls of the batch.
func (b *Batch) Total() uint64 {
	c := &b.Counts
	return uint64(max(b.Calls, c.Succeeded+c.Failed+c.Denied+c.Expired+c.Canceled+c.Unknown, 0))
}

// batchOf decodes a response that holds a batch.
func batchOf(res *http.Response, err error) (*Batch, error) {
	if res, err = check(res, err); err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if mediaType(res) != "application/json" {
		return nil, ErrForeign
	}
	b := &Batch{}
	if b.Raw, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	if json.Unmarshal(b.Raw, &b.Batch) != nil || b.ID == "" {
		return nil, ErrForeign
	}
	return b, nil
}

func mediaType(res *http.Response) string {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return media
}

// patience is the retry policy of one goroutine: it pauses between attempts and gives up
// when they have failed for too long.
type patience struct {
	giveUp      time.Duration // since the first failure
	first, most time.Duration // the shortest and the longest pause
	sleep       func(ctx context.Context, d time.Duration) bool
	failing     func(err error, pause time.Duration) // called after each failure
	since       time.Time
	pause       time.Duration
}

// good records a successful attempt.
func (p *patience) good() { p.since, p.pause = time.Time{}, 0 }

// again pauses after a failure. It returns err if a retry is useless or no time is left for
// one, and ctx's error if ctx has ended.
func (p *patience) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused *callyard.ProblemError
	var ours *Error
	asked := time.Duration(0)
	switch {
	case errors.As(err, &ours):
		return err
	case errors.As(err, &refused):
		if !Passing(refused) && refused.Problem.Status != http.StatusConflict {
			return err
		}
		asked = refused.RetryAfter
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	p.pause = min(max(2*p.pause, p.first), p.most)
	wait := max(p.pause/2+rand.N(p.pause/2+1), asked) // jitter, so that many clients do not retry at once
	if time.Since(p.since)+wait > p.giveUp {
		return err
	}
	if p.failing != nil {
		p.failing(err, wait)
	}
	if !p.sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

// Passing reports whether the same request may succeed later. A run retries such requests
// until [Options.GiveUp] has passed.
func Passing(err *callyard.ProblemError) bool {
	switch err.Problem.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return err.Problem.Status >= http.StatusInternalServerError
}

// wait sleeps for the duration and reports whether ctx was still active at the end.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
