package session

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/pkg/schema"
)

// nativeGrace is how long closing a session waits for tools that ignore the end of their context.
const nativeGrace = 5 * time.Second

// nativeLink calls the functions of a server in this process. Each call runs on its own
// goroutine. There is no JSON-RPC.
type nativeLink struct {
	s       *session
	server  *native.Server
	closer  func()
	unwatch func()
	ctx     context.Context
	end     context.CancelFunc
	runners *runners
	running atomic.Int64 // functions that have not returned
}

// overFunctions opens the native server and links the session to its functions.
func (o opening) overFunctions() error {
	s := o.s
	server, closer, err := s.pool.cfg.Native(s.pool.log)
	if err != nil {
		return err
	}
	l := &nativeLink{s: s, server: server, closer: closer, runners: newRunners()}
	l.ctx, l.end = context.WithCancel(context.Background())
	s.link = l
	info := l.server.Info()
	s.about = &mcp.InitializeResult{
		ProtocolVersion: mcpwire.Modern, Instructions: info.Instructions,
		ServerInfo:   &mcp.Implementation{Name: info.Name, Title: info.Title, Version: info.Version},
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	}
	l.unwatch = l.server.Watch(s.listChanged)
	return nil
}

func (l *nativeLink) send(r *Running) bool {
	s := l.s
	if r.pool != nil && l.running.Load() >= int64(s.pool.cfg.InFlight) {
		r.end(Outcome{Err: &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
			Detail: fmt.Sprintf("All slots of server %q are in use by calls that ignore their cancellation or timeout; the call was not started.", s.pool.cfg.Spec.ID)}})
		return true
	}
	return s.begin(l.ctx, r, l.run, func(ctx context.Context, _ context.CancelFunc, id int64) {
		l.running.Add(1)
		returned, o := false, Outcome{}
		// Deferred, because a function may call runtime.Goexit, which only runs deferred functions.
		defer func() {
			if !returned {
				l.s.pool.log.Error("a tool ended its goroutine", "tool", r.req.Name, "call", r.req.CallID)
				o = Outcome{Body: native.Exited().Body, Alone: true, ToolError: true, Started: true}
			}
			l.running.Add(-1) // before the place is free for the next call
			if s.take(id) != nil {
				s.answered(r)
				r.end(o)
			}
		}()
		o = l.exchange(ctx, r.req)
		returned = true
	})
}

func (l *nativeLink) run(f func()) { l.runners.run(l.ctx, f) }

// exchange answers one request.
func (l *nativeLink) exchange(ctx context.Context, req *Request) Outcome {
	cfg := &l.s.pool.cfg
	switch req.method() {
	case mcpwire.MethodListTools:
		return Outcome{Body: l.list(), Started: true}
	case mcpwire.MethodPing:
		return Outcome{Body: []byte("{}"), Started: true}
	case schema.MethodCallTool:
	default:
		return Outcome{Started: true, Err: rpcFault(cfg.Spec.ID, []byte(`{"code":-32601,"message":"this server has only tools"}`))}
	}
	c := &native.Call{Arguments: req.Params, Session: req.Session, Clock: req.Clock, Seed: req.Seed}
	if len(c.Arguments) == 0 {
		c.Arguments = []byte("{}")
	}
	if req.Progress != nil {
		c.Progress = func(progress, total float64, message string) { req.Progress(progressParams(progress, total, message)) }
	}
	result, panicked, ok := l.server.Call(ctx, req.Name, c)
	switch {
	case !ok:
		return Outcome{Err: schema.Errorf(schema.KindNotFound, "The server %q has no tool %q.", cfg.Spec.ID, req.Name)}
	case panicked != nil:
		l.s.pool.log.Error("a tool panicked", "tool", req.Name, "call", req.CallID, "panic", panicked.Error())
	case len(result.Body) > cfg.MaxResult:
		return tooLarge(cfg)
	case len(result.Body) == 0 || result.Body[0] != '{':
		return Outcome{Started: true, Err: schema.Errorf(schema.KindProtocol, "The tool %q of the server %q returned a result that is not a JSON object.", req.Name, cfg.Spec.ID)}
	}
	return Outcome{Body: result.Body, Alone: true, ToolError: result.IsError, Started: true}
}

// list returns a ListToolsResult with all tools.
func (l *nativeLink) list() []byte {
	b := []byte(`{"tools":[`)
	for i, t := range l.server.Tools() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.Definition...)
	}
	return append(b, `]}`...)
}

// progressParams returns the params of a progress notification. The code that passes it on sets
// the caller's token.
func progressParams(progress, total float64, message string) []byte {
	b := append([]byte(`{"progressToken":0,"progress":`), number(progress)...)
	if total > 0 {
		b = append(append(b, `,"total":`...), number(total)...)
	}
	if message != "" {
		b = rawjson.AppendText(append(b, `,"message":`...), message)
	}
	return append(b, '}')
}

func number(f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64)
}

// post drops messages: functions receive none.
func (l *nativeLink) post([]byte) {}

func (l *nativeLink) cancel(r *Running, _ int64, _ string) { r.stop() }

// stuck returns the number of calls that have ended for their callers while their function is
// still running.
func (l *nativeLink) stuck(load int) int { return max(int(l.running.Load())-load, 0) }

// close stops the functions and waits for them. It abandons a function that ignores its context,
// with the resources that it holds, because Go cannot stop it.
func (l *nativeLink) close() {
	l.unwatch()
	l.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.runners.work.Wait()
	}()
	if sleep.For(nativeGrace, done) {
		l.s.pool.log.Warn("tools keep running although their context has ended", "calls", l.running.Load())
	} else if l.closer != nil {
		l.closer()
	}
}
