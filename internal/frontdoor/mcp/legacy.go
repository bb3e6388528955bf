package mcp

import (
	"context"
	"net/http"
	"slices"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// serveLegacy serves one message of the legacy era, in a session.
func (ep *Endpoint) serveLegacy(x *exchange, r *http.Request) {
	if x.msg.method == mcpwire.MethodInitialize && x.msg.request() {
		ep.initialize(x)
		return
	}
	if version := r.Header.Get(mcpwire.HeaderProtocolVersion); version != "" && !slices.Contains(mcpwire.Legacy(), version) {
		x.fail(unsupportedVersion(version, r.Header))
		return
	}
	leave, ok := ep.enter(x, r)
	if !ok {
		return
	}
	defer leave()
	ep.serveEntered(x, r)
}

// serveEntered serves one message of a session that exists.
func (ep *Endpoint) serveEntered(x *exchange, r *http.Request) {
	switch {
	case x.msg.method == "": // a response of the client
		x.session.answered(x.msg)
		x.res.noContent(http.StatusAccepted)
	case !x.msg.request():
		switch x.msg.method {
		case mcpwire.NotifyCancelled:
			x.session.cancel(x.msg.param("requestId"))
		case mcpwire.NotifyRootsChanged:
			x.session.rootsChanged()
		}
		x.res.noContent(http.StatusAccepted)
	default:
		ep.serveInSession(x, r)
	}
}

// enter finds the session of a request and enters it; leave ends that. Otherwise it answers that the
// session does not exist.
func (ep *Endpoint) enter(x *exchange, r *http.Request) (leave func(), ok bool) {
	id := r.Header.Get(mcpwire.HeaderSessionID)
	if id == "" {
		x.fail(&fault{Code: mcpwire.CodeInvalidRequest, Message: "The header Mcp-Session-Id is missing: begin with initialize, or use revision " + mcpwire.Modern + ", which has no sessions.", status: http.StatusBadRequest})
		return nil, false
	}
	for {
		sess, e := ep.sessions.lookup(r.Context(), x, id)
		if e != nil {
			x.fail(e)
			return nil, false
		}
		if leave, ok = sess.enter(); ok {
			x.session = sess
			return leave, true
		}
		// It was dropped from memory or ended just now: the next lookup loads it again or says so.
	}
}

// serveInSession serves one request of a session. Only a cancellation message cancels it, not a
// disconnect.
func (ep *Endpoint) serveInSession(x *exchange, r *http.Request) {
	ctx, finish, bad := x.session.begin(context.WithoutCancel(r.Context()), x.msg.id)
	if bad != nil {
		x.fail(bad)
		return
	}
	defer finish()
	switch x.msg.method {
	case mcpwire.MethodPing:
		x.reply([]byte(`{}`))
	case mcpwire.MethodSetLevel:
		ep.setLevel(x)
	case mcpwire.MethodSubscribe, mcpwire.MethodUnsubscribe:
		ep.subscriptions.subscribe(x)
	default:
		ep.answer(ctx, x)
		if ctx.Err() != nil && !x.res.begun() {
			x.res.noContent(http.StatusAccepted) // a cancelled request has no answer
		}
	}
}

// initialize opens a session.
func (ep *Endpoint) initialize(x *exchange) {
	if err := ep.lists.known(ep.lists.place(x)); err != nil {
		e := x.faultOf(err)
		e.status = http.StatusNotFound
		x.fail(e)
		return
	}
	version := x.msg.textParam("protocolVersion")
	if !slices.Contains(mcpwire.Legacy(), version) {
		version = mcpwire.LegacyNewest
	}
	capabilities := x.msg.param("capabilities")
	if !isObject(capabilities) {
		capabilities = nil
	}
	sess := ep.sessions.add(x, version, slices.Clone(capabilities))
	if sess == nil {
		x.fail(tooManySessions())
		return
	}
	ep.sessions.share(x.r.Context(), sess)
	x.res.w.Header()[mcpwire.HeaderSessionID] = []string{sess.id}
	b := appendQuoted([]byte(`{"protocolVersion":`), version)
	b = append(append(b, `,"capabilities":`...), ep.discovery.capabilities(x)...)
	b = append(append(b, `,"serverInfo":`...), ep.discovery.info(x)...)
	b = append(b, ep.discovery.instructions(x)...)
	x.reply(append(b, '}'))
}

// endSession serves DELETE: the client ends its session.
func (ep *Endpoint) endSession(x *exchange, r *http.Request) {
	if r.Header.Get(mcpwire.HeaderSessionID) == "" || mcpwire.IsModern(r.Header.Get(mcpwire.HeaderProtocolVersion)) {
		ep.notAllowed(x)
		return
	}
	if leave, ok := ep.enter(x, r); ok {
		defer leave()
		if e := ep.sessions.endEverywhere(r.Context(), x.session); e != nil {
			x.fail(e)
			return
		}
		x.res.noContent(http.StatusNoContent)
	}
}

func (ep *Endpoint) notAllowed(x *exchange) {
	x.res.w.Header().Set("Allow", "POST")
	x.refuse(http.StatusMethodNotAllowed, schema.Errorf(schema.KindInvalidRequest, "This method requires a session of an older revision; send requests with POST."))
}

// getStream serves GET: the stream of messages that belong to no request.
func (ep *Endpoint) getStream(x *exchange, r *http.Request) {
	if r.Header.Get(mcpwire.HeaderSessionID) == "" || mcpwire.IsModern(r.Header.Get(mcpwire.HeaderProtocolVersion)) {
		ep.notAllowed(x)
		return
	}
	if !x.res.streams {
		x.refuse(http.StatusNotAcceptable, schema.Errorf(schema.KindInvalidRequest, "The stream of a session consists of events: send Accept: text/event-stream."))
		return
	}
	leave, ok := ep.enter(x, r)
	if !ok {
		return
	}
	defer leave()
	done, err := ep.o.Waits.Take(&x.principal)
	if err != nil {
		x.res.w.Header().Set("Connection", "close")
		x.putOff(schema.AsError(err), "1")
		return
	}
	defer done()
	sess := x.session
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	sess.mu.Lock()
	if sess.stream != nil {
		sess.stream() // end the older stream: the client may not have noticed that it broke
	}
	sess.stream = cancel
	sess.mu.Unlock()
	l := ep.subscriptions.add(x, filter{tools: true, prompts: true, resources: true, session: sess})
	defer ep.subscriptions.remove(l)
	if x.res.comment() != nil {
		return
	}
	l.catchUp()
	ep.subscriptions.follow(ctx, x, l, sess.done, func(method string, params []byte) error {
		if params == nil {
			params = []byte(`{}`)
		}
		return x.notify(method, params)
	})
}
