package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxStray     = 1000             // messages in a row that are no protocol
	maxLate      = 3                // timeouts in a row before a session is suspected
	checkTime    = 5 * time.Second  // for the answer to a health check
	exitWait     = time.Second      // for a child to say how it ended
	restTime     = 30 * time.Second // a session that lived as long is no failure
	frameRoom    = 64 << 10         // what a message may have around its result
	modernFrom   = "2026-07-28"     // the first revision of the modern era
	legacyNewest = "2025-11-25"     // the last one of the legacy era

	stopGrace   = 500 * time.Millisecond // for a child to end by itself, and again after SIGTERM
	failedGrace = 50 * time.Millisecond  // the same for one that is broken already
)

// errClosed means that the session takes nothing any more.
var errClosed = errors.New("the session is closed")

// link carries requests to one server and feeds what comes back into its
// session. There are three: pipes, the event stream of legacy SSE, and
// streamable HTTP.
type link interface {
	// send registers the call with the session and sends it, without blocking.
	// It returns false, having done nothing, where the session takes no calls.
	send(r *Running) bool
	// post sends a message that has no answer here. It may drop it where the
	// server does not read.
	post(body []byte)
	// cancel tells the server that nobody waits for the call any more.
	cancel(r *Running, reason string)
	// close ends the connection and waits for what the link has started.
	close()
}

// session is one live connection to the server.
type session struct {
	pool  *Pool
	link  link
	env   envelope
	child *launch.Child // nil for remote servers
	cs    *mcp.ClientSession
	sdk   *sdkConn // nil for streamable HTTP
	about *mcp.InitializeResult
	born  time.Time

	mu     sync.Mutex
	calls  map[int64]*Running
	next   int64
	closed bool // takes no calls
	why    error

	dead     chan struct{} // closed when the connection is of no use any more
	deadOnce sync.Once
	empty    chan struct{} // closed when it is dead and its calls are over

	emptyOnce sync.Once
	suspect   chan struct{} // holds a word when a check is due
	changes   atomic.Bool   // the server said that a list changed
	late      atomic.Int32  // timeouts since the last answer
	served    atomic.Bool   // answered a call
	heard     atomic.Int64  // the last sign of life, Unix nanoseconds
	failed    atomic.Bool

	load int // calls that have a place here, guarded by pool.mu

	// Of the one goroutine that reads.
	scan  scanner
	stray int
}

func newSession(p *Pool) *session {
	s := &session{
		pool: p, calls: make(map[int64]*Running), next: firstID, born: time.Now(),
		dead: make(chan struct{}), empty: make(chan struct{}), suspect: make(chan struct{}, 1),
	}
	s.heard.Store(s.born.UnixNano())
	return s
}

// register gives the call an id. The caller holds s.mu. It returns false where
// the session is closed; a call that ended meanwhile gets id 0.
func (s *session) register(r *Running) (id int64, ok bool) {
	if s.closed {
		return 0, false
	}
	if r.ended.Load() {
		return 0, true
	}
	id = s.next
	s.next++
	r.id, r.sent = id, time.Now()
	s.calls[id] = r
	return id, true
}

// take removes a call that was answered; nil where nobody waits for it.
func (s *session) take(id int64) *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.calls[id]
	delete(s.calls, id)
	s.settle()
	return r
}

// settle notes that the last call of a session out of use is over. The caller
// holds s.mu.
func (s *session) settle() {
	if s.closed && len(s.calls) == 0 {
		s.emptyOnce.Do(func() { close(s.empty) })
	}
}

// forget drops an ended call, so that its late answer is nobody's, and tells the
// server.
func (s *session) forget(r *Running, reason string) {
	s.mu.Lock()
	_, waiting := s.calls[r.id]
	delete(s.calls, r.id)
	s.settle()
	closed := s.closed
	s.mu.Unlock()
	if waiting && !closed {
		s.link.cancel(r, reason)
	}
}

// timedOut notes that a call got no answer in time.
func (s *session) timedOut() {
	if s.late.Add(1) >= maxLate {
		s.doubt()
	}
}

// doubt asks for a health check.
func (s *session) doubt() {
	select {
	case s.suspect <- struct{}{}:
	default:
	}
}

// receive takes one message that came over a stream. It is called by the one
// goroutine that reads.
func (s *session) receive(text []byte) {
	var f frame
	if !s.scan.frame(text, &f) {
		s.broken(&f)
		return
	}
	switch {
	case f.method != nil:
		s.incoming(&f)
	case len(f.id) == 0 || string(f.id) == "null" || f.result == nil && f.fault == nil:
		s.noise()
		return
	default:
		if string(f.fault) == "null" {
			f.fault = nil
		}
		if id := ourID(f.id); id == 0 {
			if !s.sdk.deliver(f.id, text) {
				s.noise()
				return
			}
			s.hear()
		} else if r := s.take(id); r != nil {
			s.hear()
			s.answered()
			r.end(s.outcome(&f, false))
		}
	}
	s.stray = 0
}

// hear notes a sign of life: an answer, or progress on a call.
func (s *session) hear() { s.heard.Store(time.Now().UnixNano()) }

func (s *session) answered() {
	s.late.Store(0)
	s.served.Store(true)
}

// broken deals with text that is no JSON object. Where it names a call of ours,
// that call need not wait for its timeout.
func (s *session) broken(f *frame) {
	if id := ourID(f.id); id != 0 && f.method == nil {
		if r := s.take(id); r != nil {
			r.end(Outcome{Started: true, Err: schema.Errorf(schema.KindProtocol,
				"The server %q answered with something that is not valid JSON.", s.pool.cfg.Spec.ID)})
		}
	}
	s.noise()
}

// noise counts a message that is no protocol. A few are common (a server that
// prints its greeting); a flood is a broken server.
func (s *session) noise() {
	s.pool.noise.Add(1)
	if s.stray++; s.stray == maxStray {
		s.fail(errors.New("it wrote 1000 lines in a row that are not MCP messages"))
	}
}

// incoming deals with what the server sends on its own. Only this much of it
// matters; the rest never reaches a queue that the server could fill.
func (s *session) incoming(f *frame) {
	method := f.method
	if bytes.IndexByte(method, '\\') >= 0 {
		var name string
		if json.Unmarshal(method, &name) != nil {
			return
		}
		method = appendString(nil, name)
		f.method = method
	}
	if len(f.id) > 0 && string(f.id) != "null" {
		s.link.post(appendReply(nil, f))
		return
	}
	switch string(method) {
	case `"notifications/progress"`:
		s.progress(f.params)
	case `"notifications/tools/list_changed"`, `"notifications/resources/list_changed"`, `"notifications/prompts/list_changed"`:
		s.listChanged()
	}
}

// progress hands a progress notification to the call that asked for it.
func (s *session) progress(params []byte) {
	var token []byte
	members(params, func(key string, value []byte) {
		if key == "progressToken" {
			token = value
		}
	})
	id := ourID(token)
	if id == 0 {
		return
	}
	s.mu.Lock()
	r := s.calls[id]
	s.mu.Unlock()
	if r != nil && r.req.Progress != nil && !r.ended.Load() {
		s.hear()
		r.req.Progress(bytes.Clone(params))
	}
}

// listChanged notes that what the server offers is to be read again.
func (s *session) listChanged() {
	s.changes.Store(true)
	s.pool.wantRefresh()
}

// retire takes the session out of use: no new calls, those that run go on.
func (s *session) retire(why error) {
	s.mu.Lock()
	s.closed = true
	if s.why == nil {
		s.why = why
	}
	s.settle()
	s.mu.Unlock()
	s.deadOnce.Do(func() { close(s.dead) })
}

// fail takes the session out of use and ends its calls. why finishes a sentence
// about the session: "the process exited with code 1".
func (s *session) fail(why error) {
	s.failed.Store(true)
	s.endCalls(why, func(r *Running) Outcome {
		if errors.Is(why, errTooLong) {
			return tooLarge(&s.pool.cfg)
		}
		return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
			"The session with the server %q broke while the call was running: %w. The call may have run.", s.pool.cfg.Spec.ID, why)}
	})
}

// endCalls retires the session and ends the calls that run on it. Those whose
// bytes certainly never left go back to the queue.
func (s *session) endCalls(why error, how func(*Running) Outcome) {
	s.retire(why)
	left := s.handedOver()
	s.mu.Lock()
	calls := s.calls
	s.calls = make(map[int64]*Running)
	s.settle()
	s.mu.Unlock()
	for _, r := range calls {
		if r.pool != nil && r.offset >= left {
			r.pool.requeue(r)
			continue
		}
		r.end(how(r))
	}
}

// handedOver returns how many of the bytes queued for the server were taken from
// us; all of them where that cannot be told.
func (s *session) handedOver() int64 {
	if l, ok := s.link.(*pipeLink); ok {
		return l.handedOver()
	}
	return 1<<63 - 1
}

// cause returns why the session is out of use.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// ask sends a request of the session's own and waits for the result. A JSON-RPC
// error comes back as a *schema.Error of kind tool-protocol-error.
func (s *session) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	answer := make(chan Outcome, 1)
	r := &Running{
		req:  &Request{Method: method, Params: params},
		done: func(_ *Request, o Outcome) { answer <- o },
	}
	if !s.link.send(r) {
		if err := s.cause(); err != nil {
			return nil, err
		}
		return nil, errClosed
	}
	select {
	case o := <-answer:
		if o.Err != nil {
			return nil, o.Err
		}
		return o.Body, nil
	case <-ctx.Done():
		if r.ended.CompareAndSwap(false, true) {
			s.forget(r, "timeout")
		}
		return nil, ctx.Err()
	}
}

// check asks for a sign of life. Any answer is one.
func (s *session) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	method := "ping"
	if s.modern() {
		method = "server/discover"
	}
	_, err := s.ask(ctx, method, nil)
	if schema.KindOf(err) == schema.KindProtocol {
		return nil
	}
	return err
}

func (s *session) modern() bool { return s.env.fixed != "" }

// sdkConn is the connection as the go-sdk sees it: its own requests and their
// answers. Everything else stays with the session.
type sdkConn struct {
	s     *session
	write func(ctx context.Context, body []byte) error
	inbox chan jsonrpc.Message
	gone  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	waiting map[string]bool // ids of the SDK's requests without an answer

	patience time.Duration // for the answer to server/discover
	probe    *time.Timer
	unheard  atomic.Bool // server/discover was given up
}

func newSDKConn(s *session, patience time.Duration, write func(context.Context, []byte) error) *sdkConn {
	return &sdkConn{s: s, write: write,
		inbox: make(chan jsonrpc.Message), gone: make(chan struct{}), waiting: make(map[string]bool), patience: patience}
}

// Connect makes the connection its own transport.
func (c *sdkConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// Read returns the next message that is for the SDK.
func (c *sdkConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.inbox:
		return msg, nil
	case <-c.gone:
	case <-c.s.dead:
	case <-ctx.Done():
	}
	return nil, errClosed
}

// Write sends a message of the SDK.
func (c *sdkConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		id := fmt.Sprint(req.ID.Raw())
		c.mu.Lock()
		c.waiting[id] = true
		c.mu.Unlock()
		if req.Method == "server/discover" && c.patience > 0 && c.probe == nil {
			c.probe = time.AfterFunc(c.patience, func() { c.giveUp(id, req.ID) })
		}
	}
	return c.write(ctx, body)
}

// giveUp answers the SDK's server/discover for a server that does not: some
// ignore what they do not know. The SDK goes on with the legacy handshake then,
// on the same connection, which also does right by a server that is only slow.
func (c *sdkConn) giveUp(raw string, id jsonrpc.ID) {
	if !c.expects(raw) {
		return
	}
	c.unheard.Store(true)
	c.hand(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}})
}

// expects reports, once for each id, whether the SDK waits for that answer. What
// nobody waits for is not worth decoding.
func (c *sdkConn) expects(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := c.waiting[id]
	delete(c.waiting, id)
	return ok
}

// deliver hands an answer to the SDK. It returns false for what is not one.
func (c *sdkConn) deliver(id, text []byte) bool {
	if !c.expects(string(id)) {
		return true
	}
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(text))
	if err != nil {
		return false
	}
	c.hand(msg)
	return true
}

func (c *sdkConn) hand(msg jsonrpc.Message) {
	select {
	case c.inbox <- msg:
	case <-c.gone:
	case <-c.s.dead:
	}
}

// Close ends the SDK's half of the connection.
func (c *sdkConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return nil
}

// SessionID is empty: only streamable HTTP has one.
func (c *sdkConn) SessionID() string { return "" }

// handshaken is called when the handshake is over.
func (c *sdkConn) handshaken() {
	if c.probe != nil {
		c.probe.Stop()
	}
}

// clientOptions sets the handlers also where notifications never get as far as
// the SDK: it asks a server of the modern era for them only where one is set.
func (s *session) clientOptions() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		// Set and empty: left out, the SDK would declare roots.
		Capabilities:               &mcp.ClientCapabilities{},
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { s.listChanged() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { s.listChanged() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { s.listChanged() },
	}
}

// isModern reports whether a revision belongs to the modern era. Revisions are
// dates and sort as text.
func isModern(protocol string) bool { return protocol >= modernFrom }
