package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// mostSessions bounds the sessions of the legacy era at one front door.
	mostSessions = 10_000
	// droppedAtOnce is how many make room for those that follow.
	droppedAtOnce = 128
)

// sessions are those of the legacy era that are in use at this front door; see
// [Endpoint.ShareSessions]. A client whose session is not known opens a new one.
type sessions struct {
	log   *slog.Logger
	table *sessiontable.Table // of all front doors; nil: sessions live at this one alone

	mu    sync.Mutex
	by    map[string]*session
	ended map[string]time.Time // keys of those that ended a short while ago, at any front door
}

func newSessions(log *slog.Logger) *sessions {
	return &sessions{log: log, by: make(map[string]*session), ended: make(map[string]time.Time)}
}

// session is one client of the legacy era.
type session struct {
	id           string
	mount        string
	principal    string
	tenant       schema.TenantID // of it
	version      string
	capabilities []byte
	asks         bool   // they name something that the client can be asked
	name         string // by which workers know it; unlike the id it opens nothing
	key          string // in the table of all front doors

	mu      sync.Mutex
	used    time.Time
	active  int // requests under way, streams among them
	calls   map[string]context.CancelFunc
	early   []earlyCancel           // cancellations of requests that have not come yet
	asked   map[string]chan message // what the client was asked, by id
	next    int
	watched map[string]target // resources of whose changes the client wants to hear, by the URI that it knows
	// subscriber is who subscribed to them.
	subscriber schema.Principal
	level      string // of the log messages that the client wants, "" for none
	stream     func() // ends the stream of its GET, nil where there is none
	over       bool
	known      uint64        // revision in the table that this front door goes by
	written    uint64        // the last one that the table told of
	done       chan struct{} // closed at the end
}

func newSession(id string, r sessiontable.Session) *session {
	return &session{
		id: id, mount: r.Mount, principal: r.Principal, tenant: r.Tenant, version: r.Version, capabilities: r.Capabilities, level: r.Level,
		asks: askable(r.Capabilities) != nil, name: r.Name, key: sessiontable.Key(id), used: time.Now(),
		calls: make(map[string]context.CancelFunc), asked: make(map[string]chan message), done: make(chan struct{}),
	}
}

// add opens a session; nil when there are too many.
func (s *sessions) add(x *exchange, version string, capabilities []byte) *session {
	sess := newSession(rand.Text(), sessiontable.Session{Principal: x.principal.Identity(), Tenant: x.principal.Tenant.Stored(), Mount: x.mount, Version: version, Capabilities: capabilities, Name: rand.Text()})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.evictLocked() {
		return nil
	}
	s.by[sess.id] = sess
	return sess
}

// caller is the principal of a session.
type caller struct {
	tenant    schema.TenantID
	principal string
}

// evictLocked drops sessions where there are too many: of the principal with the most that have
// no request under way, those that were not used for the longest time. So nobody keeps others
// out. A dropped one is loaded again with its next request, or its client begins again. It
// reports whether there is room. s.mu is held.
func (s *sessions) evictLocked() bool {
	if len(s.by) < mostSessions {
		return true
	}
	type unused struct {
		sess *session
		time.Duration
	}
	of, now := make(map[caller][]unused), time.Now()
	var most []unused
	for _, sess := range s.by {
		if since := sess.idleSince(now); since > 0 {
			c := caller{sess.tenant, sess.principal}
			of[c] = append(of[c], unused{sess, since})
			if len(of[c]) > len(most) {
				most = of[c]
			}
		}
	}
	slices.SortFunc(most, func(a, b unused) int { return cmp.Compare(b.Duration, a.Duration) })
	for _, u := range most[:min(len(most), droppedAtOnce)] {
		delete(s.by, u.sess.id)
		u.sess.end()
	}
	return len(most) > 0
}

// find returns the session of an exchange, nil where there is none that is the
// caller's.
func (s *sessions) find(x *exchange, id string) *session {
	s.mu.Lock()
	sess := s.by[id]
	s.mu.Unlock()
	if sess == nil || sess.principal != x.principal.Identity() || !sess.tenant.Is(x.principal.Tenant) || sess.mount != x.mount {
		return nil
	}
	return sess
}

func (s *sessions) end(sess *session) {
	s.mu.Lock()
	delete(s.by, sess.id)
	s.mu.Unlock()
	sess.end()
}

// sweep ends sessions that nobody used for a while.
func (s *sessions) sweep(now time.Time, idle time.Duration) {
	s.mu.Lock()
	var old []*session
	for _, sess := range s.by {
		if sess.idleSince(now) > idle {
			old = append(old, sess)
		}
	}
	s.mu.Unlock()
	for _, sess := range old {
		s.end(sess)
	}
}

func (s *sessions) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.by))
}

func (s *sessions) endAll() {
	s.mu.Lock()
	all := s.by
	s.by = make(map[string]*session)
	s.mu.Unlock()
	for _, sess := range all {
		sess.end()
	}
}

// enter notes that a request is under way; leave ends that.
func (s *session) enter() (leave func()) {
	s.mu.Lock()
	s.active++
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.active--
		s.used = time.Now()
		s.mu.Unlock()
	}
}

func (s *session) idleSince(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active > 0 {
		return 0
	}
	return now.Sub(s.used)
}

// end ends the session and everything that runs in it.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	close(s.done)
	for _, cancel := range s.calls {
		cancel()
	}
}

// begin makes the context of a request, which a cancellation by its id ends; ok is
// false for an id that is in use.
func (s *session) begin(ctx context.Context, id []byte) (_ context.Context, finish func(), ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	key := string(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[key] != nil || s.over {
		cancel()
		return ctx, func() {}, false
	}
	s.calls[key] = cancel
	if s.wasCanceled(key, time.Now()) {
		cancel()
	}
	return ctx, func() {
		cancel()
		s.mu.Lock()
		delete(s.calls, key)
		s.mu.Unlock()
	}, true
}

// cancel ends the request of that id. Each message is an HTTP request of its own, so that a
// cancellation may overtake what it cancels: one of a request that is not there counts for
// earlyWithin.
func (s *session) cancel(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[string(id)]; cancel != nil {
		cancel()
		return
	}
	if len(id) > maxEarlyID {
		return
	}
	if len(s.early) == maxEarly {
		s.early = s.early[1:]
	}
	s.early = append(s.early, earlyCancel{string(id), time.Now()})
}

const (
	maxEarly    = 32 // cancellations kept in a session
	maxEarlyID  = 256
	earlyWithin = 5 * time.Second
)

// earlyCancel is a cancellation that came before its request.
type earlyCancel struct {
	id string
	at time.Time
}

// wasCanceled reports whether a request was canceled before it came, once. The caller
// holds s.mu.
func (s *session) wasCanceled(id string, now time.Time) bool {
	i := slices.IndexFunc(s.early, func(e earlyCancel) bool { return e.id == id && now.Sub(e.at) < earlyWithin })
	if i < 0 {
		return false
	}
	s.early = slices.Delete(s.early, i, i+1)
	return true
}

// ask sends a request to the client, on the stream of the request x, and waits for
// the answer. When ctx ends first, it cancels the request.
func (s *session) ask(ctx context.Context, x *exchange, method string, params []byte) (message, error) {
	answer := make(chan message, 1)
	s.mu.Lock()
	s.next++
	id := strconv.Quote("callyard-" + strconv.Itoa(s.next))
	s.asked[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, id)
		s.mu.Unlock()
	}()
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(appendQuoted(append(b, `,"method":`...), method), `,"params":`...)
	if err := x.res.event(b, params, []byte{'}'}); err != nil {
		return message{}, schema.Errorf(schema.KindInputRequired, "The client cannot be reached: it does not read events, or it disconnected.")
	}
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		// The client can close what it shows its user; one that left needs no word.
		_ = x.notify(mcpwire.NotifyCancelled, append(append([]byte(`{"requestId":`), id...), `,"reason":"The answer is not needed any more."}`...))
		return message{}, schema.Errorf(schema.KindCanceled, "The call was canceled while its client was asked for input.")
	case <-s.done:
		return message{}, schema.Errorf(schema.KindCanceled, "The session ended while its client was asked for input.")
	}
}

// answered takes the client's answer to a request of ours.
func (s *session) answered(m message) {
	s.mu.Lock()
	answer := s.asked[string(m.id)]
	delete(s.asked, string(m.id))
	s.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}
