package callyard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultRetries is the number of times that a request is retried.
	DefaultRetries = 2
	// maxRetryAfter is the longest Retry-After that the client honors. If it is longer, the
	// caller gets the response immediately.
	maxRetryAfter = time.Minute
	minBackoff    = 500 * time.Millisecond
	maxBackoff    = 8 * time.Second
)

// WithRetries sets the maximum number of retries of a request; 0 disables retries. The
// default is [DefaultRetries]. It is an option of [New].
//
// A request is retried only when that is safe:
//   - after status 429 or 503, if the response is a problem document with Retry-After whose
//     member retryable is true, which means that nothing has started, or if the request is
//     repeatable: it is neither a POST nor a PATCH, or it has an Idempotency-Key;
//   - after status 409 with Retry-After, if the request has a key, because its call is still
//     running;
//   - after a network error, if the request is repeatable or no connection was established.
//
// The pause is Retry-After, or a backoff that grows from 0.5 s to 8 s without it. If the context
// of the request ends earlier, the response or the network error is returned at once. A request whose body is generated
// while it is sent, such as the body of [LinesOf], is not retried.
func WithRetries(most int) ClientOption {
	return func(c *Client) error {
		next := c.Client
		if next == nil {
			next = &http.Client{}
		}
		c.Client = &retrier{next: next, most: most}
		return nil
	}
}

// retrier is an [HttpRequestDoer] that retries requests. It is safe for concurrent use if
// next is.
type retrier struct {
	next HttpRequestDoer
	most int
}

// withRetrier applies the options and wraps the HTTP client in exactly one retrier,
// regardless of the order of the options.
func withRetrier(options []ClientOption) ClientOption {
	return func(c *Client) error {
		most := DefaultRetries
		for _, option := range options {
			if err := option(c); err != nil {
				return err
			}
			if r, ok := c.Client.(*retrier); ok {
				most, c.Client = r.most, r.next
			}
		}
		if c.Client == nil {
			c.Client = &http.Client{}
		}
		c.Client = &retrier{next: c.Client, most: most}
		return nil
	}
}

// Do sends the request and retries it when that is safe.
func (r *retrier) Do(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		res, err := r.next.Do(req)
		if attempt >= r.most || req.Context().Err() != nil || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return res, err
		}
		pause, again := again(req, res, err, attempt)
		if !again || !inTime(req.Context(), pause) {
			return res, err
		}
		if res != nil {
			// Drain a short body so that the connection can be reused.
			_, _ = io.CopyN(io.Discard, res.Body, refusalMost)
			_ = res.Body.Close()
		}
		if err := sleep(req.Context(), pause); err != nil {
			return nil, err
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// again reports whether to retry the request, and the pause before that.
func again(req *http.Request, res *http.Response, err error, attempt int) (time.Duration, bool) {
	keyed := req.Header.Get("Idempotency-Key") != ""
	repeatable := keyed || req.Method != http.MethodPost && req.Method != http.MethodPatch
	if err != nil {
		var dial *net.OpError
		unsent := errors.As(err, &dial) && dial.Op == "dial"
		return backoff(attempt), repeatable || unsent
	}
	after, said := retryAfter(res.Header)
	switch res.StatusCode {
	case http.StatusConflict:
		if !keyed || !said {
			return 0, false
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if !repeatable && (!said || !nothingStarted(res)) {
			return 0, false
		}
	default:
		return 0, false
	}
	if !said {
		return backoff(attempt), true
	}
	return after, after <= maxRetryAfter
}

// nothingStarted reports whether an error response is a problem that says so. A refusal without it may
// be about a request that was stored in part, such as a batch. It leaves the body to be read again.
func nothingStarted(res *http.Response) bool {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "application/problem+json" {
		return false
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, refusalMost)) // the caller gets the error, too
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), res.Body), res.Body}
	var problem struct {
		Retryable bool `json:"retryable"`
	}
	return json.Unmarshal(body, &problem) == nil && problem.Retryable
}

// inTime reports whether ctx lasts longer than the pause. If it does not, the caller learns more
// from the response or the network error than from an exceeded deadline.
func inTime(ctx context.Context, pause time.Duration) bool {
	deadline, limited := ctx.Deadline()
	return !limited || pause < time.Until(deadline)
}

// retryAfter parses the Retry-After header, which is a number of seconds or a date.
func retryAfter(h http.Header) (wait time.Duration, said bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	return max(time.Until(at), 0), err == nil
}

func backoff(attempt int) time.Duration {
	most := min(minBackoff<<min(attempt, 8), maxBackoff)
	return most - rand.N(most/4)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
