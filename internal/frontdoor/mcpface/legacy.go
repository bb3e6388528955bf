package mcpface

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const sessionHeader = "Mcp-Session-Id"

// legacy serves one message of the legacy era, in a session.
func (f *Face) legacy(x *exchange, r *http.Request) {
	if x.msg.method == "initialize" && x.msg.request() {
		f.initialize(x)
		return
	}
	if version := r.Header.Get("Mcp-Protocol-Version"); version != "" && !slices.Contains(legacyVersions(), version) {
		x.fail(&fault{Code: codeInvalidRequest, Message: "The revision in the header MCP-Protocol-Version is not spoken here.", status: http.StatusBadRequest})
		return
	}
	if !f.enter(x, r) {
		return
	}
	defer x.session.enter()()
	switch {
	case x.msg.method == "": // the client answers
		x.session.answered(x.msg)
		x.taken(http.StatusAccepted)
	case !x.msg.request():
		if x.msg.method == "notifications/cancelled" {
			x.session.cancel(get(x.msg.params, "requestId"))
		}
		x.taken(http.StatusAccepted)
	default:
		f.request(x, r)
	}
}

// enter finds the session of a request, or answers that there is none.
func (f *Face) enter(x *exchange, r *http.Request) bool {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		x.fail(&fault{Code: codeInvalidRequest, Message: "The header Mcp-Session-Id is missing: begin with initialize, or speak revision " + modernVersion + ", which has no sessions.", status: http.StatusBadRequest})
		return false
	}
	room, e := f.session(r.Context(), x, id)
	if e != nil {
		x.fail(e)
		return false
	}
	x.session = room
	return true
}

// request serves one request of a session. A client that hangs up does not cancel
// it; one that says so does.
func (f *Face) request(x *exchange, r *http.Request) {
	ctx, finish, ok := x.session.begin(context.WithoutCancel(r.Context()), x.msg.id)
	if !ok {
		x.fail(invalid("The id of the request is in use."))
		return
	}
	defer finish()
	switch x.msg.method {
	case "ping":
		x.reply([]byte(`{}`))
	case "logging/setLevel":
		f.setLevel(x)
	case "resources/subscribe", "resources/unsubscribe":
		f.subscribe(x)
	default:
		f.answer(ctx, x)
		if ctx.Err() != nil && !x.begun() {
			x.taken(http.StatusAccepted) // a cancelled request has no answer
		}
	}
}

// initialize opens a session.
func (f *Face) initialize(x *exchange) {
	if x.mount != "" {
		if _, err := f.o.Catalog.Server(x.mount); err != nil {
			e := x.faultOf(err)
			e.status = http.StatusNotFound
			x.fail(e)
			return
		}
	}
	version := getString(x.msg.params, "protocolVersion")
	if !slices.Contains(legacyVersions(), version) {
		version = legacyNewest
	}
	capabilities := get(x.msg.params, "capabilities")
	if !isObject(capabilities) {
		capabilities = nil
	}
	room := f.rooms.add(x, version, slices.Clone(capabilities))
	if room == nil {
		x.fail(tooManySessions())
		return
	}
	f.share(x.r.Context(), room)
	x.w.Header()[sessionHeader] = []string{room.id}
	b := appendQuoted([]byte(`{"protocolVersion":`), version)
	b = append(append(b, `,"capabilities":`...), f.capabilities(x)...)
	b = append(append(b, `,"serverInfo":`...), f.info(x)...)
	b = append(b, f.instructions(x)...)
	x.reply(append(b, '}'))
}

// endSession is DELETE: the client has done.
func (f *Face) endSession(x *exchange, r *http.Request) {
	if r.Header.Get(sessionHeader) == "" || isModern(r.Header.Get("Mcp-Protocol-Version")) {
		f.notAllowed(x)
		return
	}
	if f.enter(x, r) {
		if e := f.endShared(r.Context(), x.session); e != nil {
			x.fail(e)
			return
		}
		x.taken(http.StatusNoContent)
	}
}

func (f *Face) notAllowed(x *exchange) {
	x.w.Header().Set("Allow", "POST")
	x.refuse(http.StatusMethodNotAllowed, schema.Errorf(schema.KindInvalidRequest, "This method belongs to a session of the legacy era; send requests with POST."))
}

// getStream is GET: the stream of what happens outside of requests.
func (f *Face) getStream(x *exchange, r *http.Request) {
	if r.Header.Get(sessionHeader) == "" || isModern(r.Header.Get("Mcp-Protocol-Version")) || !x.streams {
		f.notAllowed(x)
		return
	}
	if !f.enter(x, r) {
		return
	}
	room := x.session
	defer room.enter()()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	room.mu.Lock()
	if room.stream != nil {
		room.stream() // the newer one counts: the client may not have noticed the end of the other
	}
	room.stream = cancel
	room.mu.Unlock()
	ear := f.hub.add(f, x.mount, wants{tools: true, prompts: true, resources: true, room: room})
	defer f.hub.remove(ear)
	if x.hello() != nil {
		return
	}
	beat := time.NewTicker(f.o.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-room.done:
			return
		case <-f.leaving.Done():
			return
		case <-beat.C:
			err = x.hello()
		case <-ear.wake:
			err = ear.each(func(method string, params []byte) error {
				if params == nil {
					params = []byte(`{}`)
				}
				return x.notify(method, params)
			})
		}
		if err != nil {
			return // the client left
		}
	}
}

// hello sends a comment, which begins the stream.
func (x *exchange) hello() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.streamLocked().Beat()
}
