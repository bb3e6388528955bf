package endpoint

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// gatherFor is the time that a call waits for others while a request is in flight. If none is,
	// the call is sent at once.
	gatherFor = 2 * time.Millisecond
	// mostArguments limits the arguments of the calls in one request, in bytes. A call with more is
	// sent alone.
	mostArguments = 1 << 20
)

// waiting is one call.
type waiting struct {
	id        schema.CallID
	tool      string // name for callers
	name      string // name at the endpoint
	arguments json.RawMessage

	// For a call that a [gatherer] sends.
	ctx    context.Context // of the caller that waits for done
	sent   *request        // nil until the call is part of a request; guarded by the gatherer
	done   chan struct{}   // closed once result or err is set
	result []byte
	err    error
}

// markSent reports on the httptrace of the call that it may have been sent.
func (c *waiting) markSent(info httptrace.GotConnInfo) {
	if t := httptrace.ContextClientTrace(c.ctx); t != nil && t.GotConn != nil {
		t.GotConn(info)
	}
}

// gatherer combines calls that wait at the same time into one request. Each request runs on a
// goroutine that ends with the last of its calls. It is safe for concurrent use.
type gatherer struct {
	post   func(context.Context, []*waiting) (*http.Response, []byte, error)
	server string
	most   int          // maximum calls in one request
	log    *slog.Logger // if nil, nothing is logged

	mu       sync.Mutex
	queue    []*waiting
	requests int         // in flight
	timer    *time.Timer // sends the queue; nil if it is empty
}

// request is a group of calls sent together.
type request struct {
	calls   []*waiting
	ctx     context.Context // ends when no caller waits for any of its calls
	cancel  context.CancelFunc
	callers int // waiting callers; guarded by the gatherer
	over    chan struct{}
}

// call sends a call, alone or with others, and returns its result; see [adapt.Source].
func (g *gatherer) call(ctx context.Context, c *waiting) ([]byte, error) {
	c.ctx, c.done = ctx, make(chan struct{})
	g.mu.Lock()
	g.queue = append(g.queue, c)
	switch {
	case g.requests == 0 || len(g.queue) >= g.most:
		g.sendLocked()
	case g.timer == nil:
		g.timer = time.AfterFunc(gatherFor, g.send)
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.result, c.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	r := c.sent
	if r == nil {
		g.queue = slices.DeleteFunc(g.queue, func(other *waiting) bool { return other == c })
		g.mu.Unlock()
		return nil, ctx.Err()
	}
	r.callers--
	last := r.callers == 0
	g.mu.Unlock()
	c.markSent(httptrace.GotConnInfo{}) // the request continues for the others and includes this call
	if last {
		r.cancel()
		<-r.over
	}
	return nil, ctx.Err()
}

func (g *gatherer) send() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sendLocked()
}

// sendLocked sends all waiting calls.
func (g *gatherer) sendLocked() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	for len(g.queue) > 0 {
		n, size := 0, 0
		for ; n < min(len(g.queue), g.most); n++ {
			if size += len(g.queue[n].arguments); n > 0 && size > mostArguments {
				break
			}
		}
		r := &request{calls: slices.Clone(g.queue[:n]), callers: n, over: make(chan struct{})}
		r.ctx, r.cancel = context.WithCancel(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: r.markSent}))
		for _, c := range r.calls {
			c.sent = r
		}
		g.queue = slices.Delete(g.queue, 0, n)
		g.requests++
		go g.run(r)
	}
}

func (r *request) markSent(info httptrace.GotConnInfo) {
	for _, c := range r.calls {
		c.markSent(info)
	}
}

// run makes a request and ends its calls.
func (g *gatherer) run(r *request) {
	resp, text, err := g.post(r.ctx, r.calls) //nolint:bodyclose // adapt.Do has closed it
	g.mu.Lock()
	g.requests--
	g.sendLocked()
	g.mu.Unlock()
	switch {
	case err != nil:
		for _, c := range r.calls {
			c.err = err
		}
	case resp.StatusCode/100 != 2:
		for _, c := range r.calls {
			c.result = adapt.Result(c.tool, resp, text, false)
		}
	default:
		g.answer(r.calls, text)
	}
	r.cancel()
	close(r.over)
	for _, c := range r.calls {
		close(c.done)
	}
}

// answer gives each call the message with its id. A call with no message, or with several, may have
// run; this does not affect the others.
func (g *gatherer) answer(calls []*waiting, text []byte) {
	ids := make([]schema.CallID, len(calls))
	for i, c := range calls {
		ids[i] = c.id
	}
	messages, err := listOf(text, ids...)
	byID := make(map[schema.CallID][]*message, len(messages))
	for _, m := range messages {
		byID[m.ID] = append(byID[m.ID], m)
	}
	for _, c := range calls {
		switch found := byID[c.id]; {
		case err != nil:
			c.err = g.unknown("its answer cannot be read: " + err.Error())
		case len(found) == 1:
			c.result = found[0].result()
		case len(found) > 1:
			c.err = g.unknown("its answer has several tool messages for the call.")
		case len(calls) == 1 && messageWithoutID(messages) != nil:
			c.result = messageWithoutID(messages).result()
		default:
			c.err = g.unknown("its answer contains no tool message for the call.")
		}
		delete(byID, c.id)
	}
	if n := len(byID); n > 0 && len(calls) > 1 && g.log != nil {
		g.log.Warn("a tool endpoint answered with tool messages for other calls than those it was sent, which are ignored", "server", g.server, "calls", len(calls), "ignored", n)
	}
}

func (g *gatherer) unknown(why string) error {
	return schema.Errorf(schema.KindOutcomeUnknown, "The tool endpoint %q took the call, and %s The call may have run.", g.server, why)
}
