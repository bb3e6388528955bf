package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxSubscribed limits the resource subscriptions of one client.
	maxSubscribed = 200
	// wantEvery is the interval at which workers are sent all current subscriptions.
	wantEvery = 20 * time.Second
	// wantBytes is the approximate maximum size of one message to the workers.
	wantBytes = 128 << 10
)

// maxListenTasks limits the tasks of one subscription.
const maxListenTasks = 1000

// subscriptions notifies the listeners of changes.
type subscriptions struct {
	log       *slog.Logger
	keys      *callers.Callers
	calls     *calls.Calls
	want      func(bus.Resources) error // if nil, no client is notified of resource updates
	waits     *waits.Limit
	heartbeat time.Duration
	leaving   context.Context
	lists     *lists
	sessions  *sessions
	tasks     *tasks

	mu        sync.Mutex
	listeners map[*listener]struct{}
}

func newSubscriptions(leaving context.Context, o Options, lists *lists, sessions *sessions, tasks *tasks) *subscriptions {
	return &subscriptions{
		log: o.Log, keys: o.Keys, calls: o.Calls, want: o.Want, waits: o.Waits, heartbeat: o.Heartbeat, leaving: leaving, lists: lists, sessions: sessions, tasks: tasks,
		listeners: make(map[*listener]struct{}),
	}
}

// listen serves subscriptions/listen, the notification stream of the modern era.
func (s *subscriptions) listen(ctx context.Context, x *exchange) *fault {
	if !x.res.streams {
		return invalid("A subscription requires a client that reads events: send Accept: text/event-stream.")
	}
	given := x.msg.param("notifications")
	if !isObject(given) {
		return invalidParams("The params have no notifications object.")
	}
	approve := func(name string) bool { return string(get(given, name)) == "true" }
	w := filter{tools: approve("toolsListChanged"), prompts: approve("promptsListChanged"), resources: approve("resourcesListChanged")}
	if raw := get(given, "taskIds"); raw != nil {
		if json.Unmarshal(raw, &w.tasks) != nil || len(w.tasks) > maxListenTasks {
			return invalidParams(fmt.Sprintf("taskIds must be a list of at most %d task ids.", maxListenTasks))
		}
	}
	done, err := s.waits.Take(&x.principal)
	if err != nil {
		return x.faultOf(err)
	}
	defer done()
	about := append(append([]byte(`"_meta":{"`+mcpwire.MetaSubscriptionID+`":`), x.msg.id...), '}')
	l := s.add(x, w)
	defer s.remove(l)
	if len(w.tasks) > 0 {
		defer s.tasks.watch(ctx, x, l)()
	}
	if x.notify(mcpwire.NotifyAcknowledged, acknowledged(&w, about)) != nil {
		return &fault{silent: true}
	}
	if s.follow(ctx, x, l, nil, func(method string, params []byte) error {
		if params == nil {
			return x.notify(method, append(append([]byte{'{'}, about...), '}'))
		}
		// Callyard built params as an object without _meta.
		return x.notify(method, append(append(append(slices.Clone(params[:len(params)-1]), ','), about...), '}'))
	}) {
		x.reply(append(append([]byte(`{"resultType":"complete",`), about...), '}'))
	}
	return &fault{silent: true}
}

// follow sends the notifications of a listener. It returns when the client disconnects, its
// credential becomes invalid, or ctx or over ends. It returns true if the front door shuts down.
func (s *subscriptions) follow(ctx context.Context, x *exchange, l *listener, over <-chan struct{}, send func(method string, params []byte) error) (leaving bool) {
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return false
		case <-s.leaving.Done():
			return true
		case <-look.C:
			if s.keys != nil && s.keys.Follows(x.r, &x.principal) != nil {
				return false // the credential was revoked, replaced or narrowed, has expired, or its access was withdrawn
			}
		case <-beat.C:
			err = x.res.comment()
		case <-l.wake:
			err = l.each(send)
		}
		if err != nil {
			return false // the client disconnected
		}
	}
}

// acknowledged encodes the accepted parts of a filter.
func acknowledged(w *filter, about []byte) []byte {
	inner := []byte{'{'}
	for _, kind := range []struct {
		name string
		on   bool
	}{{"toolsListChanged", w.tools}, {"promptsListChanged", w.prompts}, {"resourcesListChanged", w.resources}} {
		if kind.on {
			inner = appendMember(inner, kind.name, []byte("true"))
		}
	}
	if len(w.tasks) > 0 {
		ids, _ := json.Marshal(w.tasks) // strings only
		inner = appendMember(inner, "taskIds", ids)
	}
	b := append([]byte(`{"notifications":`), append(inner, "},"...)...)
	return append(append(b, about...), '}')
}

// subscribe serves resources/subscribe and resources/unsubscribe of a session. Subscriptions
// belong to the session at this front door. The workers are notified of them.
func (s *subscriptions) subscribe(x *exchange) {
	uri, bad := resourceURI(x.msg.params)
	if bad != nil {
		x.fail(bad)
		return
	}
	if x.msg.method == mcpwire.MethodUnsubscribe {
		x.session.mu.Lock()
		delete(x.session.watched, uri)
		x.session.mu.Unlock()
		x.reply([]byte(`{}`))
		return
	}
	to, bad := s.lists.resource(x, uri)
	if bad != nil {
		x.fail(bad)
		return
	}
	if to.server == "" {
		x.fail(x.noResource(uri))
		return
	}
	if err := s.mayRead(to, x.principal); err != nil {
		x.fail(x.faultOf(err))
		return
	}
	x.session.mu.Lock()
	_, known := x.session.watched[uri]
	full := !known && len(x.session.watched) >= maxSubscribed
	if !full {
		if x.session.watched == nil {
			x.session.watched = make(map[string]target)
		}
		x.session.watched[uri] = to
	}
	x.session.mu.Unlock()
	if full {
		x.fail(x.faultOf(schema.Errorf(schema.KindInvalidRequest, "A session can subscribe to at most %d resources; unsubscribe from some.", maxSubscribed)))
		return
	}
	s.announce(map[schema.ServerID][]string{to.server: {to.name}})
	x.reply([]byte(`{}`))
}

// mayRead returns an error if the principal may not read a resource. It then may not learn of
// changes either.
func (s *subscriptions) mayRead(to target, who schema.Principal) error {
	return s.calls.CheckMethod(&schema.Call{Method: schema.MethodReadResource, Server: to.server, Principal: who, Arguments: uriParams(to.name)})
}

// announce notifies the workers of the resources that have subscribers, by server.
func (s *subscriptions) announce(wanted map[schema.ServerID][]string) {
	if s.want == nil {
		return
	}
	for server, uris := range wanted {
		for len(uris) > 0 {
			n, size := 0, 0
			for n < len(uris) && size < wantBytes {
				size += len(uris[n])
				n++
			}
			if err := s.want(bus.Resources{Server: server, URIs: uris[:n]}); err != nil {
				s.log.Debug("workers could not be notified of a subscription", "error", err)
			}
			uris = uris[n:]
		}
	}
}

// announceAll notifies the workers of all current subscriptions.
func (s *subscriptions) announceAll() {
	found := make(map[schema.ServerID]map[string]bool)
	for _, sess := range s.sessions.all() {
		sess.mu.Lock()
		for _, to := range sess.watched {
			if found[to.server] == nil {
				found[to.server] = make(map[string]bool)
			}
			found[to.server][to.name] = true
		}
		sess.mu.Unlock()
	}
	wanted := make(map[schema.ServerID][]string, len(found))
	for server, uris := range found {
		wanted[server] = slices.Sorted(maps.Keys(uris))
	}
	s.announce(wanted)
}

// updated notifies the subscribers of changed resources that may still read them: the policy may
// have changed.
func (s *subscriptions) updated(r bus.Resources) {
	for _, e := range s.all() {
		if e.filter.session == nil {
			continue
		}
		for _, uri := range r.URIs {
			for _, known := range [...]string{uri, ownURI(r.Server, uri)} {
				to := target{r.Server, uri}
				if e.filter.session.watches(known, to) && s.mayRead(to, e.who) == nil {
					e.notify(mcpwire.NotifyResourceUpdated, uriParams(known))
				}
			}
		}
	}
}

// watches reports whether the client subscribed to the resource by the URI known.
func (s *session) watches(known string, to target) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watched[known] == to
}
