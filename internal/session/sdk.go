package session

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

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
	given    string       // the id of a server/discover that was given up; guarded by mu
	how      atomic.Int32 // a hearing: what became of it
}

// hearing is what became of a server/discover.
type hearing int32

const (
	heard   hearing = iota // answered in time, or not asked
	unheard                // no answer in time: some servers ignore what they do not know
	late                   // answered, after it was given up: the server is modern and was slow
)

func (c *sdkConn) hearing() hearing { return hearing(c.how.Load()) }

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
		if req.Method == mcpwire.MethodDiscover && c.patience > 0 && c.probe == nil {
			c.probe = time.AfterFunc(c.patience, func() { c.giveUp(id, req.ID) })
		}
	}
	return c.write(ctx, body)
}

// giveUp answers the SDK's server/discover for a server that does not: some ignore what
// they do not know. The SDK then continues with the legacy handshake, on the same
// connection, which is also right for a server that is only slow.
func (c *sdkConn) giveUp(raw string, id jsonrpc.ID) {
	if !c.expects(raw) {
		return
	}
	c.mu.Lock()
	c.given = raw
	c.how.Store(int32(unheard)) // with given: a late answer comes after both
	c.mu.Unlock()
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
		c.hearLate(id, text)
		return true
	}
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(text))
	if err != nil {
		return false
	}
	c.hand(msg)
	return true
}

// hearLate notes that a server/discover that was given up succeeded.
func (c *sdkConn) hearLate(id, text []byte) {
	c.mu.Lock()
	given := c.given
	c.mu.Unlock()
	if given == "" || string(id) != given {
		return
	}
	if msg, err := jsonrpc.DecodeMessage(bytes.Clone(text)); err == nil {
		if answer, ok := msg.(*jsonrpc.Response); ok && answer.Error == nil {
			c.how.Store(int32(late))
		}
	}
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

// handshaken is called when the handshake has ended.
func (c *sdkConn) handshaken() {
	if c.probe != nil {
		c.probe.Stop()
	}
}

// clientOptions sets the handlers also where notifications never get as far as
// the SDK: it asks a server of the modern era for them only where one is set.
func (o opening) clientOptions() *mcp.ClientOptions {
	s := o.s
	capabilities := s.pool.declared
	if capabilities == nil {
		capabilities = declared(s.pool.cfg.Declares) // never nil: left out, the SDK would declare roots
	}
	return &mcp.ClientOptions{
		Capabilities:             capabilities,
		MultiRoundTrip:           &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { s.listChanged() },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { s.listChanged() },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			if r.Params != nil {
				s.pool.subscriptions.updated(r.Params.URI)
			}
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { s.listChanged() },
	}
}
