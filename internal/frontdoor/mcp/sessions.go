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

	"golang.org/x/time/rate"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxSessions limits the sessions of the legacy era at one front door.
	maxSessions = 10_000
	// droppedAtOnce is the number of sessions that are dropped when the limit is reached.
	droppedAtOnce = 128
	// askerLength is the length of session.asker: 50 random bits.
	askerLength = 10
	// logEvery is the interval at which a fault that occurs again and again is logged.
	logEvery = time.Minute
)

// sessions holds the sessions of the legacy era that are used at this front door; see
// [Endpoint.ShareSessions]. A client whose session is not known opens a new one.
type sessions struct {
	log   *slog.Logger
	table *sessiontable.Table // shared by all front doors; if nil, sessions exist only at this one

	// One cause can repeat these faults for each request, so each is logged once per logEvery.
	unshared rate.Sometimes // sessions that only this front door knows
	unended  rate.Sometimes // sessions whose end the other front doors do not know

	mu     sync.Mutex
	by     map[string]*session  // by key
	ended  map[string]time.Time // by key: sessions that ended recently, at any front door
	pruned time.Time            // the last time at which old entries of ended were removed
}

func newSessions(log *slog.Logger) *sessions {
	return &sessions{log: log, unshared: rate.Sometimes{Interval: logEvery}, unended: rate.Sometimes{Interval: logEvery}, by: make(map[string]*session), ended: make(map[string]time.Time)}
}

// session is a session of a client of the legacy era.
type session struct {
	id           string
	mount        string
	principal    string
	tenant       schema.TenantID // of the principal
	version      string
	capabilities []byte
	asks         bool   // the capabilities allow input requests
	name         string // identifies the session to workers; unlike the ID it grants no access
	key          string // in the shared table

	mu     sync.Mutex
	used   time.Time
	active int // number of requests in flight, including streams
	calls  map[string]context.CancelFunc
	early  []earlyCancel           // cancellations of requests that have not arrived yet
	asked  map[string]chan message // open requests to the client, by ID
	next   int
	// asker is part of the IDs of these requests. All front doors that load the session ask the same
	// client, which must not get one ID twice: an approval would be taken for that of another call.
	asker   string
	watched map[string]target // resources that the client subscribed to, by the URI that it uses
	lists   readLists         // that the client has read
	level   string            // of the log messages that the client wants; "" if it set none
	roots   string            // identifies the roots of the client; "" until they change
	stream  func()            // ends the stream of its GET; nil if there is none
	over    bool
	known   uint64        // revision of the table record that this front door has applied
	written uint64        // latest revision that the table reported
	done    chan struct{} // closed when the session ends
}

func newSession(id string, r sessiontable.Session) *session {
	return &session{
		id: id, mount: r.Mount, principal: r.Principal, tenant: r.Tenant, version: r.Version, capabilities: r.Capabilities, level: r.Level,
		asks: askable(r.Capabilities) != nil, name: r.Name, key: sessiontable.Key(id), used: time.Now(), asker: rand.Text()[:askerLength],
		calls: make(map[string]context.CancelFunc), asked: make(map[string]chan message), done: make(chan struct{}),
	}
}

// add opens a session. It returns nil if there are too many.
func (s *sessions) add(x *exchange, version string, capabilities []byte) *session {
	sess := newSession(rand.Text(), sessiontable.Session{Principal: x.principal.Identity(), Tenant: x.principal.Tenant.Stored(), Mount: x.mount, Version: version, Capabilities: capabilities, Name: rand.Text()})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.evictLocked() {
		return nil
	}
	s.by[sess.key] = sess
	return sess
}

// caller identifies the principal of a session.
type caller struct {
	tenant    schema.TenantID
	principal string
}

// evictLocked drops sessions if there are too many: it picks the principal with the most idle
// sessions and drops those unused for the longest time, so that no principal locks out others. A
// dropped session is loaded again with its next request, or its client initializes again. It
// reports whether another session fits. s.mu is held.
func (s *sessions) evictLocked() bool {
	if len(s.by) < maxSessions {
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
	dropped := 0
	for _, u := range most[:min(len(most), droppedAtOnce)] {
		if u.sess.endUnused(now, 0) {
			delete(s.by, u.sess.key)
			dropped++
		}
	}
	return dropped > 0
}

// find returns the session of an exchange, or nil if the caller has no such session here.
func (s *sessions) find(x *exchange, id string) *session {
	s.mu.Lock()
	sess := s.by[sessiontable.Key(id)]
	s.mu.Unlock()
	if sess == nil || sess.principal != x.principal.Identity() || !sess.tenant.Is(x.principal.Tenant) || sess.mount != x.mount {
		return nil
	}
	return sess
}

func (s *sessions) end(sess *session) {
	s.mu.Lock()
	delete(s.by, sess.key)
	s.mu.Unlock()
	sess.end()
}

// sweep ends sessions that were idle for too long.
func (s *sessions) sweep(now time.Time, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sess := range s.by {
		if sess.endUnused(now, idle) {
			delete(s.by, key)
		}
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

// enter counts a request in flight, which keeps the session in memory. leave ends that. ok is false
// if the session has ended.
func (s *session) enter() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, false
	}
	s.active++
	return func() {
		s.mu.Lock()
		s.active--
		s.used = time.Now()
		s.mu.Unlock()
	}, true
}

func (s *session) idleSince(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idleLocked(now)
}

// idleLocked returns the time since the last request, or 0 if a request is in flight. The caller
// holds s.mu.
func (s *session) idleLocked(now time.Time) time.Duration {
	if s.active > 0 {
		return 0
	}
	return now.Sub(s.used)
}

// endUnused ends the session if it has been idle for longer than idle. It reports whether it did.
func (s *session) endUnused(now time.Time, idle time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idleLocked(now) <= idle {
		return false
	}
	s.endLocked()
	return true
}

// end ends the session and all requests in it.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
}

func (s *session) endLocked() {
	if s.over {
		return
	}
	s.over = true
	close(s.done)
	for _, cancel := range s.calls {
		cancel()
	}
}

// begin creates the context of a request, which a cancellation with its ID cancels. It returns a
// fault if the ID is in use or the session has ended.
func (s *session) begin(ctx context.Context, id []byte) (_ context.Context, finish func(), f *fault) {
	ctx, cancel := context.WithCancel(ctx)
	key := string(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		cancel()
		return nil, nil, noSession()
	case s.calls[key] != nil:
		cancel()
		return nil, nil, invalid("The request id is already in use.")
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
	}, nil
}

// cancel cancels the request with that ID. Each message is a separate HTTP request, so a
// cancellation may overtake its request. A cancellation of an unknown request is kept for
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
	maxEarly   = 32 // maximum of cancellations kept per session
	maxEarlyID = 256
)

// earlyWithin is the time for which a cancellation waits for its request. Tests raise it.
var earlyWithin = 5 * time.Second

// earlyCancel is a cancellation that arrived before its request.
type earlyCancel struct {
	id string
	at time.Time
}

// wasCanceled reports whether a request was canceled before it arrived, and forgets that. The
// caller holds s.mu.
func (s *session) wasCanceled(id string, now time.Time) bool {
	i := slices.IndexFunc(s.early, func(e earlyCancel) bool { return e.id == id && now.Sub(e.at) < earlyWithin })
	if i < 0 {
		return false
	}
	s.early = slices.Delete(s.early, i, i+1)
	return true
}

// ask sends a request to the client, on the stream of the request x, and waits for
// the answer. If ctx or the client's credential ends first, it cancels the request.
func (s *session) ask(ctx context.Context, x *exchange, method string, params []byte) (message, error) {
	ctx, cancel := x.whileValid(ctx)
	defer cancel()
	answer := make(chan message, 1)
	s.mu.Lock()
	s.next++
	id := strconv.Quote("callyard-" + s.asker + "-" + strconv.Itoa(s.next))
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
		// Let the client close its prompt. A failed send does not matter: the client disconnected.
		_ = x.notify(mcpwire.NotifyCancelled, append(append([]byte(`{"requestId":`), id...), `,"reason":"The answer is not needed any more."}`...))
		if err := invalidated(ctx); err != nil {
			return message{}, err
		}
		return message{}, schema.Errorf(schema.KindCanceled, "The call was canceled while its client was asked for input.")
	case <-s.done:
		return message{}, schema.Errorf(schema.KindCanceled, "The session ended while its client was asked for input.")
	}
}

// answered accepts the client's answer to a request.
func (s *session) answered(m message) {
	s.mu.Lock()
	answer := s.asked[string(m.id)]
	delete(s.asked, string(m.id))
	s.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}
