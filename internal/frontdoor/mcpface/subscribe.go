package mcpface

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// mostSubscribed bounds the resources that one client hears of.
	mostSubscribed = 200
	// wantEvery is how often workers are told what is wanted still.
	wantEvery = 20 * time.Second
	// wantBytes is about how much goes into one word to the workers.
	wantBytes = 128 << 10
)

// subscribe is resources/subscribe and resources/unsubscribe of a session: they
// count for the session, at this front door. The workers are told what is wanted.
func (f *Face) subscribe(x *exchange) {
	uri, bad := x.uri()
	if bad != nil {
		x.fail(bad)
		return
	}
	if x.msg.method == "resources/unsubscribe" {
		x.session.mu.Lock()
		delete(x.session.watched, uri)
		x.session.mu.Unlock()
		x.reply([]byte(`{}`))
		return
	}
	to, bad := f.resource(x.mount, uri)
	if bad != nil {
		x.fail(bad)
		return
	}
	if to.server == "" {
		x.fail(&fault{Code: codeNoResource, Message: "Resource not found", Data: append(append([]byte(`{"uri":`), quote(uri)...), '}')})
		return
	}
	if err := f.mayRead(to, x.principal); err != nil {
		x.fail(x.faultOf(err))
		return
	}
	x.session.mu.Lock()
	x.session.subscriber = x.principal
	_, known := x.session.watched[uri]
	full := !known && len(x.session.watched) >= mostSubscribed
	if !full {
		if x.session.watched == nil {
			x.session.watched = make(map[string]target)
		}
		x.session.watched[uri] = to
	}
	x.session.mu.Unlock()
	if full {
		x.fail(x.faultOf(schema.Errorf(schema.KindInvalidRequest, "A session hears of at most %d resources; unsubscribe from some.", mostSubscribed)))
		return
	}
	f.want(map[string][]string{to.server: {to.name}})
	x.reply([]byte(`{}`))
}

// mayRead returns why the principal may not read a resource: whoever may not hears
// nothing of its changes either.
func (f *Face) mayRead(to target, who schema.Principal) error {
	return f.o.Calls.CheckMethod(&schema.Call{Method: schema.MethodReadResource, Server: to.server, Principal: who, Arguments: append(append([]byte(`{"uri":`), quote(to.name)...), '}')})
}

// want tells the workers which resources somebody wants to hear of, by server.
func (f *Face) want(wanted map[string][]string) {
	if f.o.Want == nil {
		return
	}
	for server, uris := range wanted {
		for len(uris) > 0 {
			n, size := 0, 0
			for n < len(uris) && size < wantBytes {
				size += len(uris[n])
				n++
			}
			if err := f.o.Want(bus.Resources{Server: server, URIs: uris[:n]}); err != nil {
				f.log.Debug("workers were not told of a subscription", "error", err)
			}
			uris = uris[n:]
		}
	}
}

// wantAll says again what is wanted.
func (f *Face) wantAll() {
	found := make(map[string]map[string]bool)
	for _, room := range f.rooms.all() {
		room.mu.Lock()
		for _, to := range room.watched {
			if found[to.server] == nil {
				found[to.server] = make(map[string]bool)
			}
			found[to.server][to.name] = true
		}
		room.mu.Unlock()
	}
	wanted := make(map[string][]string, len(found))
	for server, uris := range found {
		wanted[server] = slices.Sorted(maps.Keys(uris))
	}
	f.want(wanted)
}

// Updated tells those who subscribed that resources have changed, and may read them still:
// the policy may be another one by now.
func (f *Face) Updated(r bus.Resources) {
	for _, e := range f.hub.all() {
		if e.wants.room == nil {
			continue
		}
		for _, uri := range r.URIs {
			for _, known := range [...]string{uri, ownURI(r.Server, uri)} {
				to := target{r.Server, uri}
				if who, ok := e.wants.room.watches(known, to); ok && f.mayRead(to, who) == nil {
					e.sayOnce("notifications/resources/updated", append(append([]byte(`{"uri":`), quote(known)...), '}'))
				}
			}
		}
	}
}

// watches reports whether the client subscribed to the resource by the URI known, and who
// it is.
func (s *session) watches(known string, to target) (who schema.Principal, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscriber, s.watched[known] == to
}

// sayOnce has a notification sent, unless the same one waits already.
func (e *ear) sayOnce(method string, params []byte) {
	e.mu.Lock()
	waits := slices.ContainsFunc(e.words, func(w word) bool { return w.method == method && bytes.Equal(w.params, params) })
	e.mu.Unlock()
	if !waits {
		e.say(method, params)
	}
}
