package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// askFor is the timeout of a front door request that a page waits for.
	askFor = 10 * time.Second
	// fresh is the lifetime of a cached answer. All requests with the same key share it, so that
	// many open pages cost the front door as little as one.
	fresh = time.Second
	// maxCached limits the number of cached answers.
	maxCached = 1000
	// maxAnswer is the maximum size of a response, in bytes. The front door limits tool results.
	maxAnswer = 64 << 20
)

// client returns a front door client that uses the user's key.
func (c *Console) client(v Visit) (*callyard.ClientWithResponses, error) {
	return callyard.New(c.o.FrontDoor(), v.Key, callyard.WithHTTPClient(&http.Client{Transport: c.o.Transport, CheckRedirect: rejectRedirect}), callyard.WithRetries(0))
}

// rejectRedirect rejects redirects, because the key is for the configured address only.
func rejectRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// refusal returns the user-facing error for a failed request to the front door, or nil if the
// status is below 400.
func (c *Console) refusal(res *http.Response, body []byte, err error) error {
	if err == nil && res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest {
		return schema.Errorf(schema.KindUnavailable, "The front door redirects to another address; set approver.console.front_door to that address.")
	}
	if err == nil {
		err = callyard.Check(res, body)
	}
	if err == nil {
		return nil
	}
	var p *callyard.ProblemError
	if !errors.As(err, &p) {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return schema.Errorf(schema.KindUnavailable, "The front door at %s does not answer. Check that it runs, and approver.console.front_door: %w", c.o.FrontDoor(), err)
	}
	e := schema.Errorf(kindOf(p), "%s", p.Problem.Detail)
	if p.Problem.Detail == "" {
		e.Detail = "The front door refused the request: " + p.Problem.Title + "."
	}
	if p.Problem.CallID != nil {
		e.CallID = schema.CallID(*p.Problem.CallID)
	}
	for _, f := range p.Problem.Errors {
		fault := schema.Fault{Message: f.Message}
		if f.Pointer != nil {
			fault.Pointer = *f.Pointer
		} else if f.Parameter != nil {
			fault.Pointer = *f.Parameter
		}
		e.Faults = append(e.Faults, fault)
	}
	return e
}

// kindOf returns the error kind of a front door problem.
func kindOf(p *callyard.ProblemError) schema.Kind {
	if kind, ok := strings.CutPrefix(p.Problem.Type, "/problems/"); ok {
		return schema.Kind(kind)
	}
	switch {
	case p.Problem.Status < http.StatusBadRequest: // the page of a proxy
		return schema.KindUnavailable
	case p.Problem.Status == http.StatusUnauthorized:
		return schema.KindUnauthenticated
	case p.Problem.Status == http.StatusForbidden:
		return schema.KindForbidden
	case p.Problem.Status == http.StatusNotFound:
		return schema.KindNotFound
	case p.Problem.Status < http.StatusInternalServerError:
		return schema.KindInvalidRequest
	}
	return schema.KindUnavailable
}

// cache holds recent answers of the front door. It is safe for concurrent use.
type cache struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[question]*answer
}

// question identifies a request and its key. The key itself is not stored.
type question struct {
	key [sha256.Size]byte
	of  string
}

type answer struct {
	mu    sync.Mutex // held during the request
	until time.Time  // the answer is valid until then; zero if there is none
	value any
	err   error
}

func newCache(now func() time.Time) *cache { return &cache{now: now, by: make(map[question]*answer)} }

// entry returns the cache entry of a question.
func (c *cache) entry(q question) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.by[q]; a != nil {
		return a
	}
	if len(c.by) >= maxCached {
		clear(c.by) // requests in flight still complete for their waiters
	}
	now := c.now()
	for other, a := range c.by { // the answers of users who left would otherwise remain
		if a.mu.TryLock() {
			if !now.Before(a.until) {
				delete(c.by, other)
			}
			a.mu.Unlock()
		}
	}
	a := new(answer)
	c.by[q] = a
	return a
}

// cached returns the answer to a question with the user's key, from the cache if it is fresh.
func cached[T any](c *cache, v Visit, of string, ask func() (T, error)) (T, error) {
	return cachedFor(c, v, of, fresh, ask)
}

// cachedFor is like cached with the given lifetime. Errors have the default lifetime.
func cachedFor[T any](c *cache, v Visit, of string, lasts time.Duration, ask func() (T, error)) (T, error) {
	a := c.entry(question{sha256.Sum256([]byte(v.Key)), of})
	a.mu.Lock()
	defer a.mu.Unlock()
	if !c.now().Before(a.until) {
		value, err := ask()
		if err != nil {
			lasts = fresh
		}
		// The lifetime starts after the request, so that those who waited for a slow answer do not ask
		// again.
		a.value, a.err, a.until = value, err, c.now().Add(lasts)
		if errors.Is(err, context.Canceled) {
			a.until = time.Time{} // the requester disconnected; the next one asks again
		}
	}
	value, _ := a.value.(T)
	return value, a.err
}

// send performs one request to the front door.
type send func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error)

// response is a response of the front door.
type response struct {
	status int // 0 if there was no response
	callID string
	body   []byte
}

// ask sends a request to the front door and returns the response verbatim. An error status becomes
// a user-facing error.
func (c *Console) ask(ctx context.Context, v Visit, send send) (a response, err error) {
	client, err := c.client(v)
	if err != nil {
		return a, schema.Errorf(schema.KindInternal, "The address of the front door is invalid: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	res, err := send(ctx, client)
	if err != nil {
		return a, c.refusal(nil, nil, err)
	}
	defer res.Body.Close()
	a.status, a.callID = res.StatusCode, res.Header.Get("Callyard-Call-Id")
	a.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err == nil && len(a.body) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return a, c.refusal(res, a.body, err)
}

// get sends a request to the front door and decodes the response.
func get[T any](ctx context.Context, c *Console, v Visit, send send) (value T, err error) {
	a, err := c.ask(ctx, v, send)
	if err == nil {
		if err = json.Unmarshal(a.body, &value); err != nil {
			err = schema.Errorf(schema.KindUnavailable, "The answer of the front door cannot be read: %w", err)
		}
	}
	return value, err
}

// api has the operations of the front door.
type api = callyard.ClientInterface

// operation is an operation of the front door without arguments.
type operation func(api, context.Context, ...callyard.RequestEditorFn) (*http.Response, error)

// with0 returns the request of an operation without arguments.
func with0(op operation) send {
	return func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return op(client, ctx)
	}
}

// with returns the request of an operation with one argument, such as an id or parameters.
func with[P any](op func(api, context.Context, P, ...callyard.RequestEditorFn) (*http.Response, error), p P) send {
	return func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return op(client, ctx, p)
	}
}

// with2 is [with] for an operation with two arguments.
func with2[P, Q any](op func(api, context.Context, P, Q, ...callyard.RequestEditorFn) (*http.Response, error), p P, q Q) send {
	return func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return op(client, ctx, p, q)
	}
}

// with3 is [with] for an operation with three arguments.
func with3[P, Q, R any](op func(api, context.Context, P, Q, R, ...callyard.RequestEditorFn) (*http.Response, error), p P, q Q, r R) send {
	return func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return op(client, ctx, p, q, r)
	}
}

// current returns the answer of an operation, from the cache if it is fresh. Each operation has an
// answer of its own type, which identifies it.
func current[T any](ctx context.Context, c *Console, v Visit, op operation) (answer T, err error) {
	return cached(c.cache, v, fmt.Sprintf("%T", answer), func() (T, error) {
		return get[T](ctx, c, v, with0(op))
	})
}

// readAll reads a response up to the limit.
func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxAnswer)) }

// copyOut streams a response to the client. Each chunk has its own deadline, so that a long
// response is not truncated. If the front door fails in between, the connection is aborted, so that
// the browser sees an incomplete file too.
func copyOut(w http.ResponseWriter, from io.Reader) error {
	control, piece := http.NewResponseController(w), make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(writeWithin))
			if _, err := w.Write(piece[:n]); err != nil {
				return nil // the client disconnected; there is no one to report the error to
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}
