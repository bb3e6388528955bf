package callyard

import (
	"context"
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
	// DefaultRetries is how often a request is sent again.
	DefaultRetries = 2
	// maxRetryAfter: where Retry-After asks for more, the answer goes to the caller at
	// once.
	maxRetryAfter = time.Minute
	minBackoff    = 500 * time.Millisecond
	maxBackoff    = 8 * time.Second
)

// WithRetries sets how often a request is sent again, where that is safe; 0 sends
// each once. Without it that is [DefaultRetries]. It is an option of [New].
//
// An answer of status 429 or 503 is asked for again when the problem document says by
// Retry-After that nothing has started, or when the request may be repeated: a read, or
// one with an Idempotency-Key. So is a 409 with Retry-After to a request with a key: its
// call still runs. A request without an answer is sent again when it may be repeated, or
// when no connection came about. Retry-After says when; without it the pause grows from
// 0.5 s to 8 s. A body that is made while it is sent, such as that of [LinesOf], cannot
// be sent again.
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

// retrier sends requests again. It is safe for concurrent use as far as next is.
type retrier struct {
	next HttpRequestDoer
	most int
}

// withRetrier applies the options and puts one retrier around the HTTP client,
// whatever the order of the options is.
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

// Do sends the request, and again where that is safe.
func (r *retrier) Do(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		res, err := r.next.Do(req)
		if attempt >= r.most || req.Context().Err() != nil || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return res, err
		}
		pause, again := again(req, res, err, attempt)
		if !again {
			return res, err
		}
		if res != nil {
			// What is left of a short body is read, so that the connection can be used again.
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

// again says whether to send the request again, and after which time.
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
		media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if !repeatable && (!said || media != "application/problem+json") {
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

// retryAfter is the time that the header Retry-After asks for, in seconds or as a date.
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
