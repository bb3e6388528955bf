package mcp

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

// maxOpenRequests limits the requests to a client of the legacy era that are open at once within a call.
const maxOpenRequests = 16

// notification is a notification for the client, within a call. If method is empty, it is a
// progress notification.
type notification struct {
	method string
	params []byte
}

// openRequests are the open requests to the client within a call.
type openRequests struct {
	mu    sync.Mutex
	open  []*clientRequest
	ended bool
	wait  sync.WaitGroup
}

// clientRequest is a request of a server to the client. cancel ends the wait for the answer.
type clientRequest struct {
	id     string // of the server's message
	cancel context.CancelFunc
}

// begin runs ask in a goroutine; it returns false if the limit of open requests is reached.
func (a *openRequests) begin(ctx context.Context, id []byte, ask func(context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || len(a.open) >= maxOpenRequests {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	one := &clientRequest{string(id), cancel}
	a.open = append(a.open, one)
	a.wait.Go(func() {
		defer cancel()
		ask(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open = slices.DeleteFunc(a.open, func(other *clientRequest) bool { return other == one })
	})
	return true
}

// canceled handles that the server no longer needs the answer to a request.
func (a *openRequests) canceled(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.open {
		if one.id == string(id) {
			one.cancel()
		}
	}
}

// end waits for the open requests, whose context has ended, and starts no more.
func (a *openRequests) end() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.wait.Wait()
}

// The errors for a server whose request is not forwarded.
const (
	notDeclared = "The client did not declare the capability for this request."
	notAnswered = "The client did not answer: it disconnected, it does not read events, or the call has ended."
	tooMany     = "Too many requests to the client are open."
)

// refusal returns the answer to a server's request that is not forwarded.
func refusal(code int64, why string) []byte {
	return append(mcpwire.AppendError([]byte{'{'}, code, why), '}')
}

// acceptsMessages reports whether the client can receive messages of a server during a call: it
// reads events, and it wants log messages or, in a session, declared a capability for input
// requests. A client without a session is asked in another way; see [suspendedCalls.run].
func (x *exchange) acceptsMessages() bool {
	return x.res.streams && (x.logLevel() != "" || x.session != nil && x.session.asks)
}

// logLevel returns the level of the log messages that the client wants, from the session or, if
// there is none, from this request. "" means none.
func (x *exchange) logLevel() string {
	switch {
	case x.session != nil:
		return x.session.logLevel()
	case x.modern && x.res.streams:
		return x.meta.level
	}
	return ""
}

// wantsLog reports whether to send a log message to the client. A client of the modern era
// receives only what it requested. In a session without a level, the server decides.
func (x *exchange) wantsLog(params []byte) bool {
	level := x.logLevel()
	if level == "" {
		return x.session != nil
	}
	return schema.LogLevelCovers(level, getString(params, "level"))
}

// serverMessage returns the method and the params of a message of a server.
func serverMessage(message []byte) (method string, params []byte) {
	method, params = getString(message, "method"), get(message, "params")
	if !isObject(params) {
		params = []byte(`{}`)
	}
	return method, params
}

// onMessage returns a handler for the server's messages during a call; see [schema.Call].Hear.
// Notifications are sent to words in order. Requests are sent to the client concurrently until
// ctx ends.
func (x *exchange) onMessage(ctx context.Context, words chan notification, a *openRequests) func(message []byte, answer func([]byte)) {
	return func(message []byte, answer func([]byte)) {
		method, params := serverMessage(message)
		switch {
		case answer == nil && method == mcpwire.NotifyCancelled:
			a.canceled(get(params, "requestId"))
		case answer == nil:
			if method == mcpwire.NotifyMessage && x.wantsLog(params) {
				sse.Offer(words, notification{method, params})
			}
		case x.session == nil || !x.session.answers(method):
			answer(refusal(mcpwire.CodeMethodNotFound, notDeclared))
		case !a.begin(ctx, get(message, "id"), func(ctx context.Context) { answer(x.askClient(ctx, method, params)) }):
			answer(refusal(mcpwire.CodeInternal, tooMany))
		}
	}
}

// askClient sends a request to the client and returns its response, with result or error.
func (x *exchange) askClient(ctx context.Context, method string, params []byte) []byte {
	m, err := x.session.ask(ctx, x, method, params)
	switch {
	case err != nil:
		return refusal(mcpwire.CodeInternal, notAnswered)
	case m.fault != nil:
		return append(appendMember([]byte{'{'}, "error", m.fault), '}')
	}
	return append(appendMember([]byte{'{'}, "result", m.result), '}')
}

// answers reports whether the client declared the capability for a request method.
func (s *session) answers(method string) bool { return answersTo(s.capabilities, method) }

// answersTo reports whether capabilities include the one for a request method.
func answersTo(capabilities []byte, method string) bool {
	switch method {
	case mcpwire.MethodElicit:
		return capable(capabilities, "elicitation")
	case mcpwire.MethodSample:
		return capable(capabilities, "sampling")
	case mcpwire.MethodListRoots:
		return capable(capabilities, "roots")
	}
	return false
}

func noLevel() *fault {
	return invalidParams("The log level must be debug, info, notice, warning, error, critical, alert or emergency.")
}

// setLevel serves logging/setLevel. The level applies to the session.
func (ep *Endpoint) setLevel(x *exchange) {
	level := x.msg.textParam("level")
	if !schema.IsLogLevel(level) {
		x.fail(noLevel())
		return
	}
	x.session.mu.Lock()
	x.session.level = level
	x.session.mu.Unlock()
	ep.sessions.share(x.r.Context(), x.session)
	x.reply([]byte(`{}`))
}

// rootsChanged makes later calls use a new conversation with each server that asks. Servers read the
// roots of their client once and keep them. Passing the notification on would not help: a server reads
// them again at once, and it can ask only during a call.
func (s *session) rootsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots = rand.Text()
}

// askedAs returns the name of the conversation with servers that ask.
func (s *session) askedAs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots == "" {
		return s.name
	}
	return s.name + "-" + s.roots
}

// logLevel returns the level of the log messages that the client wants, or "" if it set none.
func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}
