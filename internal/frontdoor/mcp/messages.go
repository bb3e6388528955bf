package mcp

import (
	"context"
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

// openRequests counts the open requests to the client within a call.
type openRequests struct {
	mu    sync.Mutex
	open  int
	ended bool
	wait  sync.WaitGroup
}

// begin runs ask in a goroutine; it returns false if the limit of open requests is reached.
func (a *openRequests) begin(ask func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.open >= maxOpenRequests {
		return false
	}
	a.open++
	a.wait.Go(func() {
		ask()
		a.mu.Lock()
		a.open--
		a.mu.Unlock()
	})
	return true
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

// onMessage returns a handler for the server's messages during a call; see [schema.Call].Hear.
// Notifications are sent to words in order. Requests are sent to the client concurrently until
// ctx ends.
func (x *exchange) onMessage(ctx context.Context, words chan notification, a *openRequests) func(message []byte, answer func([]byte)) {
	return func(message []byte, answer func([]byte)) {
		method, params := getString(message, "method"), get(message, "params")
		if !isObject(params) {
			params = []byte(`{}`)
		}
		switch {
		case answer == nil:
			if method == mcpwire.NotifyMessage && x.wantsLog(params) {
				sse.Offer(words, notification{method, params})
			}
		case x.session == nil || !x.session.answers(method):
			answer(refusal(mcpwire.CodeMethodNotFound, notDeclared))
		case !a.begin(func() { answer(x.askClient(ctx, method, params)) }):
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
	return &fault{Code: mcpwire.CodeInvalidParams, Message: "The log level must be debug, info, notice, warning, error, critical, alert or emergency."}
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

// logLevel returns the level of the log messages that the client wants, or "" if it set none.
func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}
