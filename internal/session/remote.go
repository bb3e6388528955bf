package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	postTime   = 10 * time.Second // for messages without a waiting caller
	maxReplied = 16               // replies to requests of the server that are sent at once
	maxResumes = 5                // consecutive attempts without a new event
	drainTime  = 250 * time.Millisecond
	resumeWait = time.Second // if the server does not send a retry time
)

// remoteLink talks streamable HTTP: each request is its own POST, answered by one JSON message or
// by an event stream that ends with the answer.
type remoteLink struct {
	s        *session
	client   *http.Client
	url      string
	protocol string // negotiated protocol revision
	id       string // Mcp-Session-Id; empty if there is none
	ctx      context.Context
	end      context.CancelFunc
	work     sync.WaitGroup
	replies  chan struct{} // semaphore for maxReplied
	hears    atomic.Bool   // the server has opened the GET stream
	spoke    atomic.Bool   // the server has sent something on it
}

func newRemoteLink(s *session, client *http.Client, protocol, id string) *remoteLink {
	l := &remoteLink{s: s, client: client, url: s.pool.cfg.Spec.URL, protocol: protocol, id: id, replies: make(chan struct{}, maxReplied)}
	l.ctx, l.end = context.WithCancel(context.Background())
	s.link = l
	return l
}

func (l *remoteLink) send(r *Running) bool {
	s := l.s
	return s.begin(l.ctx, r, l.work.Go, func(ctx context.Context, stop context.CancelFunc, id int64) {
		o, resp := l.exchange(ctx, r, id)
		o = s.asked(r.req, o)
		l.settle(ctx, r.req)
		if taken := s.take(id) != nil; taken && o.lost && r.sendAgain(&o) {
			r.pool.requeue(r)
		} else if taken {
			if o.Started && (o.Err == nil || o.Err.Kind == schema.KindProtocol) {
				s.answered(r)
			}
			r.end(o)
		}
		if resp != nil {
			drain(resp, stop)
		}
	})
}

// drain reads the few bytes that follow an answer, so that the connection can be reused, and
// closes the body. It does not wait for a server that keeps the body open.
func drain(resp *http.Response, stop context.CancelFunc) {
	timer := time.AfterFunc(drainTime, stop)
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
	resp.Body.Close()
}

// exchange sends the request and reads until its answer. The returned response, if any, is still
// open.
func (l *remoteLink) exchange(ctx context.Context, r *Running, id int64) (Outcome, *http.Response) {
	cfg := &l.s.pool.cfg
	body := appendRequest(nil, l.s.env.forCall(r), id, r.req)
	resp, connected, err := postMessage(ctx, l.client, l.url, l.header(r.req), body)
	if err != nil {
		o := unreachable(cfg, connected, err)
		switch {
		case ctx.Err() != nil:
		case !connected && errors.Is(err, syscall.ECONNREFUSED):
			// Usually the server is restarting: the call waits for the next session.
			o.lost = true
			l.s.retire(errRefused)
		default:
			l.s.doubt()
		}
		return o, nil
	}
	if resp.StatusCode/100 != 2 {
		return l.refusal(resp, id), resp
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		in := l.answerBody(ctx, resp)
		defer in.next()
		text, err := readAll(in, resp.ContentLength, cfg.MaxResult+frameHeadroom)
		if err != nil {
			return cutShort(cfg, err), resp
		}
		var scan scanner
		var f frame
		if o, ok := l.answer(&scan, &f, text, id); ok {
			return o, resp
		}
	case "text/event-stream":
		return l.followAll(ctx, resp, id)
	}
	return protocolViolation(cfg), resp
}

// answerBody returns a reader for the body of an answer to a call.
func (l *remoteLink) answerBody(ctx context.Context, resp *http.Response) *answerBody {
	return &answerBody{from: resp.Body, turns: l.s.pool.large, done: ctx.Done()}
}

// followAll reads the event stream up to the answer. A server of the legacy era may close the
// stream and let the client reconnect for the rest.
func (l *remoteLink) followAll(ctx context.Context, resp *http.Response, id int64) (Outcome, *http.Response) {
	cfg := &l.s.pool.cfg
	body := l.answerBody(ctx, resp)
	defer func() { body.next() }()
	in := newEvents(&l.s.pool.cfg, body, lines.Short)
	for resumes := 0; ; {
		before := in.LastID
		o, err := l.follow(in, body, id)
		if err == nil {
			return o, resp
		}
		if resumes++; in.LastID != before {
			resumes = 0
		}
		if l.s.modern() || in.LastID == "" || resumes > maxResumes || ctx.Err() != nil || errors.Is(err, lines.ErrTooLong) {
			return cutShort(cfg, err), resp
		}
		body.next()
		var again *http.Response
		for again == nil {
			if again, err = l.resume(ctx, in); err == nil {
				break
			}
			var status *statusError
			if resumes++; resumes > maxResumes || ctx.Err() != nil || errors.As(err, &status) && status.code/100 == 4 {
				return cutShort(cfg, err), resp
			}
		}
		resp.Body.Close()
		resp = again
		body = l.answerBody(ctx, resp)
		next := newEvents(&l.s.pool.cfg, body, lines.Short)
		next.LastID, next.Retry = in.LastID, in.Retry
		in = next
	}
}

// cutShort returns the outcome of a call whose answer could not be read to its end.
func cutShort(cfg *Config, err error) Outcome {
	if errors.Is(err, lines.ErrTooLong) {
		return tooLarge(cfg)
	}
	return unreachable(cfg, true, err)
}

// follow reads an event stream up to the answer.
func (l *remoteLink) follow(in *sse.Reader, body *answerBody, id int64) (Outcome, error) {
	var scan scanner
	var f frame
	for unexpected := 0; ; {
		body.next()
		ev, err := nextEvent(in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("its event stream ended without an answer")
			}
			return Outcome{}, err
		}
		if !isMessage(ev) {
			continue
		}
		if o, ok := l.answer(&scan, &f, ev.Data, id); ok {
			return o, nil
		}
		if f.method == nil {
			l.s.pool.noise.Add(1)
			if unexpected++; unexpected == maxUnexpected {
				return protocolViolation(&l.s.pool.cfg), nil
			}
		}
	}
}

// answer processes one message. ok reports whether it answers the request. Other messages that
// the server sends on the stream are handled here too.
func (l *remoteLink) answer(scan *scanner, f *frame, text []byte, id int64) (o Outcome, ok bool) {
	if !scan.frame(text, f) {
		return Outcome{}, false
	}
	if f.method != nil {
		if !l.s.logs.pass(f, id) {
			l.s.incoming(f)
		}
		return Outcome{}, false
	}
	if string(f.fault) == "null" {
		f.fault = nil
	}
	// The server could not read the request. An error of a gateway has no id either, but no "jsonrpc".
	nameless := f.fault != nil && (f.id == nil || string(f.id) == "null") && member(text, "jsonrpc") == "2.0"
	if ownRequestID(f.id) != id && !nameless || f.fault == nil && f.result == nil {
		return Outcome{}, false
	}
	return l.s.outcome(f, true), true
}

// resume requests the rest of an event stream.
func (l *remoteLink) resume(ctx context.Context, in *sse.Reader) (*http.Response, error) {
	wait := in.Retry
	if wait <= 0 {
		wait = resumeWait
	}
	if !sleep.For(wait, ctx.Done()) {
		return nil, ctx.Err()
	}
	return l.getStream(ctx, in.LastID)
}

// errForgotten means that the server ended the session by itself, or restarted.
var errForgotten = errors.New("it no longer knows the session")

// errRefused means that nothing listens at the server's address.
var errRefused = errors.New("nothing listens at its address")

// lost reports whether an HTTP error means that the server does not know the session. Some
// servers answer 400 with a text about the session where the protocol requires 404.
func (l *remoteLink) lost(code int, text []byte) bool {
	return l.id != "" && (code == http.StatusNotFound ||
		code == http.StatusBadRequest && bytes.Contains(bytes.ToLower(text), []byte("session")))
}

// refusal returns the outcome of an HTTP error. A JSON-RPC error in the body is the answer. Other
// bodies of gateways and authorization servers have a member "error" too, but no "jsonrpc".
func (l *remoteLink) refusal(resp *http.Response, id int64) Outcome {
	cfg := &l.s.pool.cfg
	text, _ := readAll(resp.Body, resp.ContentLength, frameHeadroom) // a body that cannot be read counts as empty
	if l.lost(resp.StatusCode, text) && (resp.StatusCode == http.StatusNotFound || !refusesCall(text, id)) {
		l.s.retire(errForgotten)
		return Outcome{lost: true, Err: &schema.Error{Kind: schema.KindServerFailed, Retryable: true,
			Detail: fmt.Sprintf("The server %q no longer knows the session; a new one is being opened. The call did not start.", cfg.Spec.ID)}}
	}
	var scan scanner
	var f frame
	if scan.frame(text, &f) && f.method == nil && f.fault != nil && string(f.fault) != "null" && member(text, "jsonrpc") == "2.0" {
		return Outcome{Started: true, Err: rpcFault(cfg.Spec.ID, f.fault)}
	}
	return refused(cfg, resp)
}

// refusesCall reports whether a body is the JSON-RPC error of the call with the id, and not one of the
// transport: those have no id of a call, or one of the codes that servers use for them. An error about the
// arguments may well name a session.
func refusesCall(text []byte, id int64) bool {
	var scan scanner
	var f frame
	if !scan.frame(text, &f) || f.fault == nil || ownRequestID(f.id) != id {
		return false
	}
	var fault struct{ Code int64 }
	if json.Unmarshal(f.fault, &fault) != nil {
		return false
	}
	return fault.Code != mcpwire.CodeInvalidRequest && (fault.Code < -32099 || fault.Code > -32000)
}

// header returns the headers for a request, or for a message without one if req is nil.
func (l *remoteLink) header(req *Request) http.Header {
	h := make(http.Header, 8)
	h[mcpwire.HeaderProtocolVersion] = []string{l.protocol}
	if l.id != "" {
		h[mcpwire.HeaderSessionID] = []string{l.id}
	}
	if req == nil || !l.s.modern() {
		return h
	}
	method := req.method()
	h[mcpwire.HeaderMethod] = []string{method}
	switch method {
	case schema.MethodReadResource: // the header must match the body
		h[mcpwire.HeaderName] = []string{mcpwire.EncodeHeader(member(req.Params, "uri"))}
	case schema.MethodGetPrompt:
		h[mcpwire.HeaderName] = []string{mcpwire.EncodeHeader(member(req.Params, "name"))}
	case schema.MethodCallTool:
		h[mcpwire.HeaderName] = []string{mcpwire.EncodeHeader(req.Name)}
		l.s.pool.offers.headers.Load().set(h, req)
	}
	return h
}

// post sends a message that has no answer, and waits at most postTime until the server takes it.
func (l *remoteLink) post(body []byte) {
	ctx, cancel := context.WithTimeout(l.ctx, postTime)
	defer cancel()
	if resp, _, err := postMessage(ctx, l.client, l.url, l.header(nil), body); err == nil {
		drain(resp, cancel)
	}
}

// reply sends the reply to a request of the server. The goroutine that read the request belongs to l.work.
// It continues to read meanwhile, because the server may take the reply only after its answer to the
// call. A server that takes no replies is read no further once it has maxReplied open requests.
func (l *remoteLink) reply(body []byte) {
	l.replies <- struct{}{}
	l.work.Go(func() {
		defer func() { <-l.replies }()
		l.post(body)
	})
}

func (l *remoteLink) cancel(r *Running, id int64, reason string) {
	r.stop() // in the modern era, disconnecting cancels a request
	if l.s.modern() {
		return
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.calls[id] == r { // close does not wait for l.work yet
		l.work.Go(func() { l.post(cancelMessage(id, reason)) })
	}
}

func (l *remoteLink) close() {
	l.end()
	l.work.Wait()
}

// protocolViolation returns the outcome of a call whose answer violates the protocol.
func protocolViolation(cfg *Config) Outcome {
	return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
		"The server %q accepted the request and returned an answer that is not MCP; the call may have run.", cfg.Spec.ID)}
}

// postMessage posts one JSON-RPC message. connected reports whether the request may have been
// sent.
func postMessage(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) (resp *http.Response, connected bool, err error) {
	var got atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, false, errors.New("its url is not an address")
	}
	if header != nil {
		req.Header = header
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["Accept"] = []string{"application/json, text/event-stream"}
	resp, err = client.Do(req)
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return nil, false, err // even if it was first tried on an idle connection, which did not take it
	}
	return resp, got.Load(), err
}

// readAll reads a body of at most max bytes. announced is its Content-Length, or below 0 if
// unknown. A larger body is lines.ErrTooLong. Memory is allocated as bytes arrive.
func readAll(from io.Reader, announced int64, max int) ([]byte, error) {
	if announced > int64(max) {
		return nil, lines.ErrTooLong
	}
	var b bytes.Buffer
	if announced > 0 {
		b.Grow(int(min(announced, smallAnswer)) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(from, int64(max)+1)); err != nil {
		return nil, err
	}
	if b.Len() > max {
		return nil, lines.ErrTooLong
	}
	return b.Bytes(), nil
}
