package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
)

const mediaLines = "application/x-ndjson"

// batchItem is what the commands read of a batch.
type batchItem struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Calls  uint64 `json:"calls"`
	Counts struct {
		Waiting    uint64 `json:"waiting"`
		Held       uint64 `json:"held"`
		Succeeded  uint64 `json:"succeeded"`
		ToolErrors uint64 `json:"tool_errors"`
		Failed     uint64 `json:"failed"`
		Denied     uint64 `json:"denied"`
		Expired    uint64 `json:"expired"`
		Canceled   uint64 `json:"canceled"`
		Unknown    uint64 `json:"unknown"`
	} `json:"counts"`
	raw []byte
}

// ended says that no more results come.
func (b *batchItem) ended() bool {
	switch b.State {
	case "receiving", "running", "canceling":
		return false
	}
	return true
}

// total is how many calls the batch has.
func (b *batchItem) total() uint64 {
	return max(b.Calls, b.done())
}

// done is how many calls of the batch have ended.
func (b *batchItem) done() uint64 {
	c := &b.Counts
	return c.Succeeded + c.Failed + c.Denied + c.Expired + c.Canceled + c.Unknown
}

// refusal is an answer that is no success.
type refusal struct {
	status int
	header http.Header
	body   []byte
}

// Error returns the status; people are told by [client.refused].
func (r *refusal) Error() string { return fmt.Sprintf("status %d", r.status) }

// passing says that the same request may succeed a little later.
func (r *refusal) passing() bool {
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return r.status >= http.StatusInternalServerError
}

// after is how long the front door asks to wait.
func (r *refusal) after() time.Duration {
	seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// attempt sends a request once. An answer that is no success is a *refusal, none
// at all an *exitError.
func (c *client) attempt(ctx context.Context, method, path, media string, body io.Reader, length int64, key string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fail(exitUsage, "The address %s%s cannot be asked: %w", c.base, path, err)
	}
	if body != nil {
		r.ContentLength = length
		r.Header.Set("Content-Type", media)
	}
	r.Header.Set("Accept", mediaJSON+", "+mediaLines)
	r.Header.Set("User-Agent", "callyard")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, problemMost))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return nil, &refusal{resp.StatusCode, resp.Header, text}
}

// batchAnswer is attempt for an answer that is a batch.
func (c *client) batchAnswer(ctx context.Context, method, path, media string, body io.Reader, length int64, key string) (*batchItem, error) {
	resp, err := c.attempt(ctx, method, path, media, body, length, key)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b := &batchItem{}
	if b.raw, err = c.readJSON(ctx, resp); err != nil {
		return nil, err
	}
	if json.Unmarshal(b.raw, b) != nil || b.ID == "" {
		return nil, c.foreign()
	}
	return b, nil
}

// patience waits between the attempts of one goroutine, and ends when they have
// failed for too long.
type patience struct {
	giveUp   time.Duration  // how long, from the first failure on
	pauses   backoff.Policy // with jitter, so that many do not come at once
	sleep    func(ctx context.Context, d time.Duration) bool
	failing  func(why error, pause time.Duration) // is told of each failure
	since    time.Time
	failures int
}

// good says that an attempt succeeded.
func (p *patience) good() { p.since, p.failures = time.Time{}, 0 }

// again waits after a failure. The error is err when there is no use in another
// attempt, or no time left for one, and that of ctx when that has ended.
func (p *patience) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var no *refusal
	var coded *exitError
	asked := time.Duration(0)
	switch {
	case errors.As(err, &no):
		if !no.passing() && no.status != http.StatusConflict {
			return err
		}
		asked = no.after()
	case !errors.As(err, &coded) || coded.code != exitUnreachable:
		return err
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	wait := max(p.pauses.Delay(p.failures), asked)
	p.failures++
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
