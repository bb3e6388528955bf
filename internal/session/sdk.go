package session

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// sdkConn is the connection as the go-sdk sees it: the SDK's own requests and their answers. The
// session handles everything else.
type sdkConn struct {
	s     *session
	write func(ctx context.Context, body []byte) error
	inbox chan jsonrpc.Message
	gone  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	waiting map[string]bool // ids of the SDK's pending requests

	probeTimeout time.Duration // timeout for the answer to server/discover
	probe        *time.Timer
	givenUp      string       // id of an abandoned server/discover; guarded by mu
	how          atomic.Int32 // a probeResult: the result of server/discover
}

// probeResult is the result of a server/discover request.
type probeResult int32

const (
	probeAnswered   probeResult = iota // answered in time, or not sent
	probeUnanswered                    // no answer in time: some servers ignore unknown methods
	probeLate                          // answered after the timeout: the server is modern and was slow
)

func (c *sdkConn) result() probeResult { return probeResult(c.how.Load()) }

func newSDKConn(s *session, probeTimeout time.Duration, write func(context.Context, []byte) error) *sdkConn {
	return &sdkConn{s: s, write: write,
		inbox: make(chan jsonrpc.Message), gone: make(chan struct{}), waiting: make(map[string]bool), probeTimeout: probeTimeout}
}

// Connect implements mcp.Transport and returns the connection itself.
func (c *sdkConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// Read returns the next message for the SDK.
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
		if req.Method == mcpwire.MethodDiscover && c.probeTimeout > 0 && c.probe == nil {
			c.probe = time.AfterFunc(c.probeTimeout, func() { c.giveUp(id, req.ID) })
		}
	}
	return c.write(ctx, body)
}

// giveUp answers the SDK's server/discover in place of a server that does not, because some
// servers ignore unknown methods. The SDK then continues with the legacy handshake on the same
// connection, which also works for a server that is only slow.
func (c *sdkConn) giveUp(raw string, id jsonrpc.ID) {
	if !c.expects(raw) {
		return
	}
	c.mu.Lock()
	c.givenUp = raw
	c.how.Store(int32(probeUnanswered)) // set together with givenUp, so that a late answer is recorded after both
	c.mu.Unlock()
	c.hand(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}})
}

// expects reports, once per id, whether the SDK waits for that answer. Other answers are not
// decoded.
func (c *sdkConn) expects(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := c.waiting[id]
	delete(c.waiting, id)
	return ok
}

// deliver passes an answer to the SDK. It returns false if the message is not an answer.
func (c *sdkConn) deliver(raw, text []byte) bool {
	id := string(raw)
	if n, ok := wholeNumber(raw); ok {
		id = strconv.FormatInt(n, 10)
	}
	if !c.expects(id) {
		c.recordLate(id, text)
		return true
	}
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(text))
	if err != nil {
		return false
	}
	c.hand(msg)
	return true
}

// recordLate records that an abandoned server/discover was answered successfully.
func (c *sdkConn) recordLate(id string, text []byte) {
	c.mu.Lock()
	givenUp := c.givenUp
	c.mu.Unlock()
	if givenUp == "" || id != givenUp {
		return
	}
	if msg, err := jsonrpc.DecodeMessage(bytes.Clone(text)); err == nil {
		if answer, ok := msg.(*jsonrpc.Response); ok && answer.Error == nil {
			c.how.Store(int32(probeLate))
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

// Close closes the SDK's half of the connection.
func (c *sdkConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return nil
}

// SessionID returns "": only streamable HTTP has session ids.
func (c *sdkConn) SessionID() string { return "" }

// handshaken is called when the handshake has ended.
func (c *sdkConn) handshaken() {
	if c.probe != nil {
		c.probe.Stop()
	}
}

// clientOptions sets the handlers even if notifications never reach the SDK: it subscribes to
// notifications of a server of the modern era only if a handler is set.
func (o opening) clientOptions() *mcp.ClientOptions {
	s := o.s
	capabilities := s.pool.declared
	if capabilities == nil {
		capabilities = declared(s.pool.cfg.Declares) // never nil: the SDK would declare roots
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
