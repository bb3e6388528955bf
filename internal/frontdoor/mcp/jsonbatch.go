package mcp

import (
	"bytes"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Revision 2025-03-26 requires servers to accept JSON-RPC batches. Revisions from 2025-06-18 on
// have none. A batch is served as if its messages had arrived separately at the same time, in
// the session of the request.

const (
	// maxBatch limits the messages of a batch, which all run at the same time.
	maxBatch = 100
	// withoutBatches is the first revision without batches.
	withoutBatches = "2025-06-18"
)

const noBatches = "Batches of messages are not supported in this revision; send each message separately."

func isBatch(body []byte) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '['
}

// batchAnswer collects the answers to the messages of a batch. A client that reads events
// receives each answer as an event once it is available. Others receive one array.
type batchAnswer struct {
	res *response

	mu  sync.Mutex
	all [][]byte
}

// add adds the answer to a request.
func (b *batchAnswer) add(parts ...[]byte) {
	if b.res.streams {
		_ = b.res.event(parts...) // the server detects a disconnected client
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, bytes.Join(parts, nil))
}

// end completes the answer, once all messages of the batch have been served.
func (b *batchAnswer) end() {
	switch {
	case b.res.begun(): // already sent as events
	case len(b.all) > 0:
		b.res.message(http.StatusOK, []byte{'['}, bytes.Join(b.all, []byte{','}), []byte{']'})
	default:
		b.res.noContent(http.StatusAccepted) // no message requires an answer
	}
}

// postBatch serves a batch of messages.
func (ep *Endpoint) postBatch(x *exchange, r *http.Request, body []byte) {
	if version := r.Header.Get(mcpwire.HeaderProtocolVersion); version != "" && !slices.Contains(mcpwire.Legacy(), version) {
		x.modern = mcpwire.IsModern(version)
		x.fail(invalid(noBatches))
		return
	}
	leave, ok := ep.enter(x, r)
	if !ok {
		return
	}
	defer leave()
	if x.session.version >= withoutBatches {
		x.fail(invalid(noBatches))
		return
	}
	var texts [][]byte
	sound := rawjson.Elements(body, func(from, to int) {
		if len(texts) <= maxBatch {
			texts = append(texts, body[from:to])
		}
	})
	switch {
	case !sound:
		x.fail(&fault{Code: mcpwire.CodeParse, Message: "The body is not JSON."})
		return
	case len(texts) == 0:
		x.fail(invalid("The batch has no messages."))
		return
	case len(texts) > maxBatch:
		x.fail(&fault{Code: mcpwire.CodeInvalidRequest, Message: "The batch has more than 100 messages; send them in several batches.", status: http.StatusRequestEntityTooLarge})
		return
	}
	x.res.keepAlive()
	answers := &batchAnswer{res: &x.res}
	var wait sync.WaitGroup
	for _, text := range texts {
		one := ep.inBatch(x, r, text, answers)
		// Notifications and responses do not block, so they are handled in the order of the batch.
		if one != nil && !one.msg.request() {
			ep.serveEntered(one, r)
		} else if one != nil {
			wait.Go(func() { ep.serveGuarded(one, r) })
		}
	}
	wait.Wait()
	answers.end()
}

// inBatch reads one message of a batch. It returns nil if the message was answered with an error.
func (ep *Endpoint) inBatch(x *exchange, r *http.Request, text []byte, answers *batchAnswer) *exchange {
	one := newExchange(ep, headersOnly{http.Header{}}, r)
	one.principal, one.mount, one.known, one.searching, one.session = x.principal, x.mount, x.known, x.searching, x.session
	one.res.of = answers
	var bad *fault
	if one.msg, bad = readMessage(text, ep.limits.ArgumentBytes+envelopeBytes, ep.limits.ArgumentDepth); bad == nil && one.msg.method == mcpwire.MethodInitialize {
		bad = invalid("The request initialize cannot be part of a batch.")
	}
	if bad != nil {
		one.fail(bad)
		return nil
	}
	one.meta = readMeta(one.msg.param("_meta"), ep.o.Baggage)
	return one
}

// serveGuarded serves one request of a batch and recovers from a panic. It runs in its own
// goroutine, where a panic would end the process.
func (ep *Endpoint) serveGuarded(x *exchange, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			ep.log.Error("a handler panicked", "method", x.msg.method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			x.fail(&fault{Code: mcpwire.CodeInternal, Message: "The front door failed on this request; its log has the cause."})
		}
	}()
	if ep.o.Traces != nil {
		ep.beginSpan(x, r)
		defer x.endSpan()
	}
	if bad := x.allow(scope.OfMethod(x.msg.method).Scopes...); bad != nil {
		x.fail(bad)
		return
	}
	ep.serveEntered(x, r)
}

// headersOnly discards the answer to one message of a batch and keeps only its headers, because
// the answer to the batch has its own.
type headersOnly struct{ header http.Header }

func (h headersOnly) Header() http.Header       { return h.header }
func (headersOnly) Write(b []byte) (int, error) { return len(b), nil }
func (headersOnly) WriteHeader(int)             {}
