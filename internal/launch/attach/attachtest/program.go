// Package attachtest is a small program for tests that attaches to a worker, or that a worker dials.
// It speaks the legacy era of MCP, has tools only, and does only what a test requests: it does not
// reconnect.
package attachtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/callyard/callyard/internal/launch/attach"
)

// Echo is the tool definition of a [Program] without Tools.
const Echo = `[{"name":"echo","description":"Returns its arguments.","inputSchema":{"type":"object"}}]`

// Program is a program that can attach. The zero value answers each call with its arguments.
type Program struct {
	Instance string
	InFlight int
	Version  string // version of the server; "" means "1"
	Tools    string // a JSON array; "" means [Echo]
	// Call answers a call in a separate goroutine. If nil, the arguments are returned as structured
	// content. An empty result is not sent. [SessionOf] its context returns the session of the call.
	Call func(ctx context.Context, name string, arguments json.RawMessage) (result string)
	// Opened is called with each connection that was accepted, before it serves. It may be nil.
	Opened func(a *Attached)
	// Ended is called for each session that has ended. It may be nil.
	Ended func(session string)
	// Canceled is called for each cancellation of a call. It may be nil.
	Canceled func()
	// Silent suppresses all answers, even that to the handshake.
	Silent bool
}

// Attached is one connection of a program. Its methods are safe for concurrent use.
type Attached struct {
	program *Program
	ws      *websocket.Conn
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // reason of the end, set before done is closed
	work    sync.WaitGroup
	mute    atomic.Bool // pings are not answered
}

// Refusal is the response of a worker that refuses the program.
type Refusal struct{ Status int }

func (r *Refusal) Error() string { return "refused with status " + strconv.Itoa(r.Status) }

// Attach dials the worker's listener at url, such as "ws://127.0.0.1:9191", as a program of the
// server, and serves until the connection ends. The error is a *[Refusal] if the worker refuses.
func (p *Program) Attach(ctx context.Context, url, server, key string) (*Attached, error) {
	h := http.Header{}
	for name, value := range map[string]string{
		attach.HeaderInstance: p.Instance, attach.HeaderVersion: "0.1", attach.HeaderLanguage: "go",
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	if p.InFlight > 0 {
		h.Set(attach.HeaderInFlight, strconv.Itoa(p.InFlight))
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	a := &Attached{program: p, done: make(chan struct{})}
	ws, resp, err := websocket.Dial(ctx, url+"/attach/"+server, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: h, Subprotocols: []string{attach.Subprotocol},
		OnPingReceived: func(context.Context, []byte) bool { return !a.mute.Load() },
	})
	if err != nil {
		if resp != nil {
			return nil, &Refusal{resp.StatusCode}
		}
		return nil, err
	}
	ws.SetReadLimit(-1)
	a.ws = ws
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go a.serve()
	return a, nil
}

// Accept upgrades the request of a worker that dials, as a listening server does, and serves until
// the connection ends. On an error, the response was already written.
func (p *Program) Accept(w http.ResponseWriter, r *http.Request) (*Attached, error) {
	a := &Attached{program: p, done: make(chan struct{})}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:   []string{attach.Subprotocol},
		OnPingReceived: func(context.Context, []byte) bool { return !a.mute.Load() },
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	a.ws = ws
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	if p.Opened != nil {
		p.Opened(a)
	}
	go a.serve()
	return a, nil
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (a *Attached) serve() {
	defer close(a.done)
	defer a.work.Wait()
	defer a.cancel()
	for {
		_, text, err := a.ws.Read(a.ctx)
		if err != nil {
			a.err = err
			return
		}
		var m message
		if json.Unmarshal(text, &m) != nil || a.program.Silent {
			continue
		}
		if len(m.ID) == 0 {
			a.notified(m)
			continue
		}
		switch m.Method {
		case "initialize":
			version := a.program.Version
			if version == "" {
				version = "1"
			}
			a.answer(m.ID, fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"program","version":%q}}`, version))
		case "tools/list":
			tools := a.program.Tools
			if tools == "" {
				tools = Echo
			}
			a.answer(m.ID, `{"tools":`+tools+`}`)
		case "tools/call":
			a.work.Go(func() { a.call(m) })
		case "ping":
			a.answer(m.ID, `{}`)
		default:
			a.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"unknown method"}}`)
		}
	}
}

func (a *Attached) call(m message) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      Meta            `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params) // a worker sends no other params
	result := `{"content":[],"structuredContent":` + string(params.Arguments) + `}`
	if a.program.Call != nil {
		result = a.program.Call(context.WithValue(a.ctx, metaKey{}, params.Meta), params.Name, params.Arguments)
	}
	if result != "" {
		a.answer(m.ID, result)
	}
}

// Meta is the metadata of a session that the worker sends with its calls.
type Meta struct {
	Session string `json:"dev.callyard/session"`
	Clock   string `json:"dev.callyard/clock"`
	Seed    string `json:"dev.callyard/seed"`
}

type metaKey struct{}

// MetaOf returns the metadata that the worker sent with the call of a context.
func MetaOf(ctx context.Context) Meta {
	m, _ := ctx.Value(metaKey{}).(Meta)
	return m
}

// SessionOf returns the session that the worker sent with the call of a context, or "".
func SessionOf(ctx context.Context) string {
	return MetaOf(ctx).Session
}

func (a *Attached) notified(m message) {
	var params struct {
		Session string `json:"session"`
	}
	if m.Method == "notifications/cancelled" && a.program.Canceled != nil {
		a.program.Canceled()
	}
	if m.Method == "notifications/callyard/session_ended" && a.program.Ended != nil && json.Unmarshal(m.Params, &params) == nil {
		a.program.Ended(params.Session)
	}
}

func (a *Attached) answer(id json.RawMessage, result string) {
	a.Send(strings.Join([]string{`{"jsonrpc":"2.0","id":`, string(id), `,"result":`, result, `}`}, ""))
}

// Send sends a text frame.
func (a *Attached) Send(text string) {
	_ = a.ws.Write(a.ctx, websocket.MessageText, []byte(text)) // the reader records the end
}

// SendBinary sends a binary frame.
func (a *Attached) SendBinary(data []byte) { _ = a.ws.Write(a.ctx, websocket.MessageBinary, data) }

// Drain announces that the program takes no new calls, and waits until the worker has closed the
// connection. It returns the close code.
func (a *Attached) Drain() int {
	a.Send(`{"jsonrpc":"2.0","method":"notifications/callyard/draining"}`)
	return a.Wait()
}

// Mute stops the program from answering pings.
func (a *Attached) Mute() { a.mute.Store(true) }

// Kill closes the connection without a close handshake, like the end of the process.
func (a *Attached) Kill() {
	_ = a.ws.CloseNow()
	<-a.done
}

// Wait waits until the connection has ended, and returns the worker's close code, or -1 if there
// was none.
func (a *Attached) Wait() int {
	<-a.done
	if c, ok := errors.AsType[websocket.CloseError](a.err); ok {
		return int(c.Code)
	}
	return -1
}
