package mcp

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// filter selects the notifications of a listener.
type filter struct {
	tools, prompts, resources bool
	tasks                     []schema.CallID
	session                   *session // whose resource subscriptions apply; nil if there is no session
}

// listener is a subscriber to notifications. wake holds one signal, which may stand for several
// changes.
type listener struct {
	at     place
	who    schema.Principal // the owner of the lists
	filter filter
	wake   chan struct{}

	mu      sync.Mutex
	seen    marks
	waiting []notification
}

// maxWaiting limits the notifications that are queued for a slow listener.
const maxWaiting = 256

func (s *subscriptions) add(x *exchange, w filter) *listener {
	w.tools = w.tools && !x.searching // the list of tools in search mode is always the same
	l := &listener{at: s.lists.place(x), who: x.principal, filter: w, wake: make(chan struct{}, 1), seen: s.lists.seen(x).marks}
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	return l
}

func (s *subscriptions) remove(e *listener) {
	s.mu.Lock()
	delete(s.listeners, e)
	s.mu.Unlock()
}

func (s *subscriptions) all() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.listeners))
}

// listsChanged checks for each listener whether its lists changed, and notifies it.
func (s *subscriptions) listsChanged() {
	for _, e := range s.all() {
		now := s.lists.part(e.at, catalog.SeenBy(s.lists.catalog, e.who.Tenant, calls.Judge(s.calls, &e.who))).marks
		e.mu.Lock()
		was := e.seen
		e.seen = now
		e.mu.Unlock()
		if e.filter.tools && was.tools != now.tools {
			e.notify(mcpwire.NotifyToolsChanged, nil)
		}
		if e.filter.resources && was.resources != now.resources {
			e.notify(mcpwire.NotifyResourcesChanged, nil)
		}
		if e.filter.prompts && was.prompts != now.prompts {
			e.notify(mcpwire.NotifyPromptsChanged, nil)
		}
	}
}

// readLists are the marks of the lists that the client of a session has read, by method.
// elsewhere is set if it may have read other lists at another front door, or here before the
// session was dropped from memory.
type readLists struct {
	marks     map[string]marks
	elsewhere bool
}

// readList records that the client begins to read a list with these marks.
func (s *session) readList(method string, m marks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists.marks == nil {
		s.lists.marks = make(map[string]marks)
	}
	s.lists.marks[method] = m
}

// outdatedLists returns the notifications for lists that the client has read and that may have
// changed since.
func (s *session) outdatedLists(now marks) (notifications []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range []struct {
		method, notification string
		of                   func(marks) uint64
	}{
		{mcpwire.MethodListTools, mcpwire.NotifyToolsChanged, func(m marks) uint64 { return m.tools }},
		{mcpwire.MethodListResources, mcpwire.NotifyResourcesChanged, func(m marks) uint64 { return m.resources }},
		{mcpwire.MethodListResourceTemplates, mcpwire.NotifyResourcesChanged, func(m marks) uint64 { return m.resources }},
		{mcpwire.MethodListPrompts, mcpwire.NotifyPromptsChanged, func(m marks) uint64 { return m.prompts }},
	} {
		read, here := s.lists.marks[l.method]
		if here && l.of(read) != l.of(now) || !here && s.lists.elsewhere {
			notifications = append(notifications, l.notification)
		}
	}
	s.lists.elsewhere = false // the client is told once
	return notifications
}

// catchUp notifies a listener of changes to lists while its client had no stream, or a broken one.
func (e *listener) catchUp() {
	e.mu.Lock()
	now := e.seen
	e.mu.Unlock()
	for _, method := range e.filter.session.outdatedLists(now) {
		if method != mcpwire.NotifyToolsChanged || e.filter.tools {
			e.notify(method, nil)
		}
	}
}

// notify queues a notification, unless an identical one is queued.
func (e *listener) notify(method string, params []byte) {
	e.mu.Lock()
	known := slices.ContainsFunc(e.waiting, func(w notification) bool { return w.method == method && bytes.Equal(w.params, params) })
	if known || len(e.waiting) >= maxWaiting {
		e.mu.Unlock()
		return
	}
	e.waiting = append(e.waiting, notification{method, params})
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// each sends all queued notifications.
func (e *listener) each(send func(method string, params []byte) error) error {
	e.mu.Lock()
	waiting := e.waiting
	e.waiting = nil
	e.mu.Unlock()
	for _, w := range waiting {
		if err := send(w.method, w.params); err != nil {
			return err
		}
	}
	return nil
}
