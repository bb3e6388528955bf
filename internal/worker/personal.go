package worker

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// mostPersonal bounds the sessions of people with one server; the longest unused makes
	// room.
	mostPersonal = 64
	// personalIdle is how long an unused one stays.
	personalIdle  = 2 * time.Minute
	personalSweep = 15 * time.Second
	// personalAnswer bounds the wait for a credential: longer than a renewal takes.
	personalAnswer = 35 * time.Second
	// personalClose bounds the end of one that has no calls.
	personalClose = 5 * time.Second
)

// personal runs the calls of a server to which each person has a credential of their own.
// It asks the front door of each call for the credential, and keeps sessions by person and
// credential, so that nobody's call meets another one's session. The server's shared session
// reads what the server offers, and never takes a call.
type personal struct {
	w   *Worker
	cfg session.Config
	apart
	sweeper sync.WaitGroup

	mu       sync.Mutex
	sessions map[personKey]*personSession
	freed    chan struct{} // closed when a session gets idle; nil where nobody waits for one
}

// personKey names a person at one server, by the identity of the caller; the version is that of
// the credential.
type personKey struct {
	principal string
	version   uint64
}

type personSession struct {
	pool *session.Pool
	auth *personAuth
	use  int // calls
	idle time.Time
}

// personAuth sets the credential of one person. It notes that the server refused it.
type personAuth struct {
	server  schema.ServerID
	header  string
	value   string
	refused atomic.Bool
	told    chan struct{} // closed with the first refusal
}

// Authorize sets the header.
func (a *personAuth) Authorize(_ context.Context, h http.Header) error {
	h[http.CanonicalHeaderKey(a.header)] = []string{a.value}
	return nil
}

// Refused ends the request: another credential has a session of its own.
func (a *personAuth) Refused(_ context.Context, r launch.Refusal) (bool, error) {
	if r.Status != http.StatusUnauthorized {
		return false, nil
	}
	if a.refused.CompareAndSwap(false, true) {
		close(a.told)
	}
	return false, a.error()
}

func (a *personAuth) error() *schema.Error {
	return launch.Failed("Server %q: %w. The call did not start.", a.server, launch.ErrRefused)
}

// openPersonal returns what runs the calls; no session is opened yet.
func openPersonal(w *Worker, s *Served) *personal {
	p := &personal{w: w, cfg: s.Session, sessions: make(map[personKey]*personSession)}
	p.cfg.Sessions, p.cfg.OnDemand, p.cfg.IdleStop, p.cfg.Updated = 1, false, 0, nil
	p.calls, p.cut = context.WithCancel(context.Background())
	p.sweeper.Go(p.sweep)
	return p
}

// do runs the call of the job; the job is told its end.
func (p *personal) do(j *job, principal string) {
	if !p.begin(j, p.cfg.CallTimeout, func(ctx context.Context, deadline time.Time) { p.run(ctx, j, principal, deadline) }) {
		j.done(&j.request, session.Outcome{Err: launch.Unavailable("The sessions of server %q are being closed; the call was not started.", p.cfg.Spec.ID)})
	}
}

// run runs the call, a second time with a new credential where the server refused the first.
func (p *personal) run(ctx context.Context, j *job, principal string, deadline time.Time) {
	var refused uint64
	for {
		c, err := p.ask(ctx, j, refused)
		if err != nil {
			j.done(&j.request, session.Outcome{Err: p.word(j, err)})
			return
		}
		s, err := p.take(ctx, personKey{principal, c.Version}, c)
		if err != nil {
			j.done(&j.request, session.Outcome{Err: p.word(j, err)})
			return
		}
		out := p.send(ctx, j, s, deadline)
		rejected := s.auth.refused.Load()
		p.release(personKey{principal, c.Version}, s)
		if rejected && out.Err != nil && !out.Started && refused == 0 && !j.ended.Load() {
			refused = c.Version
			continue
		}
		j.done(&j.request, out)
		return
	}
}

// ask gets the credential of the person behind the call from the call's front door.
func (p *personal) ask(ctx context.Context, j *job, refused uint64) (credential.Credential, error) {
	q, err := credential.Ask(j.id, p.cfg.Spec.ID, p.cfg.Spec.URL, refused)
	if err != nil {
		return credential.Credential{}, err
	}
	answer := make(chan []byte, 1)
	j.credential.Store(&answer)
	defer j.credential.Store(nil)
	if !p.w.listener.Said(j.to, j.seq, bus.CredentialNumber, q.Message) {
		return credential.Credential{}, launch.Failed("The question for the credential is too large. The call did not start.")
	}
	late := time.NewTimer(personalAnswer)
	defer late.Stop()
	select {
	case object := <-answer:
		return q.Open(object)
	case <-ctx.Done():
		return credential.Credential{}, ctx.Err()
	case <-late.C:
		return credential.Credential{}, launch.Unavailable("The front door did not answer the question for the caller's credential. The call did not start.")
	}
}

// word is how a call ends for which there is no credential.
func (p *personal) word(j *job, err error) *schema.Error {
	if j.ended.Load() {
		return session.CanceledEarly()
	}
	e := schema.AsError(err)
	if e.Kind == schema.KindInternal {
		return launch.Unavailable("The caller's credential for server %q was not received: %w. The call did not start.", p.cfg.Spec.ID, err)
	}
	return e
}

// send runs the call on the session, and ends it early where the session cannot be opened
// because the server refuses the credential.
func (p *personal) send(ctx context.Context, j *job, s *personSession, deadline time.Time) session.Outcome {
	running, over := j.send(s.pool.Do, deadline)
	var look <-chan time.Time
	for told := (<-chan struct{})(s.auth.told); ; {
		select {
		case out := <-over:
			return out
		case <-ctx.Done():
			running.Cancel()
			return <-over
		case <-told:
			told, look = nil, time.After(personalRefusal)
		case <-look:
			// A call that is on its way ends by itself, and may well succeed: it was another request
			// that the server refused. One that waits for a session waits in vain.
			if !running.CancelWaiting() {
				look = time.After(personalRefusal)
				continue
			}
			out := <-over
			if !out.Started && out.Err != nil && out.Err.Kind == schema.KindCanceled && !j.ended.Load() {
				out.Err = s.auth.error()
			}
			return out
		}
	}
}

// personalRefusal is how often a call whose session was refused looks whether it still waits.
const personalRefusal = 100 * time.Millisecond

// take returns the session of the key, a new one where there is none. Where all are in use it
// waits until ctx ends. The caller is one of p.work.
func (p *personal) take(ctx context.Context, key personKey, c credential.Credential) (*personSession, error) {
	for {
		s, freed := p.tryTake(key, c)
		if s != nil {
			return s, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, launch.Unavailable("All %d sessions of people with server %q are in use; the call did not start.", mostPersonal, p.cfg.Spec.ID)
		}
	}
}

// tryTake is take without waiting; with no session, freed is closed when it is worth another try.
func (p *personal) tryTake(key personKey, c credential.Credential) (s *personSession, freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var old *personSession
	switch s = p.sessions[key]; {
	case s != nil && !s.auth.refused.Load():
		s.use++
		return s, nil
	case s != nil && s.use == 0:
		old = s
	case s == nil && len(p.sessions) >= mostPersonal:
		var oldest personKey
		for k, o := range p.sessions {
			if o.use == 0 && (old == nil || o.idle.Before(old.idle)) {
				oldest, old = k, o
			}
		}
		if old == nil {
			if p.freed == nil {
				p.freed = make(chan struct{})
			}
			return nil, p.freed
		}
		delete(p.sessions, oldest)
	}
	if old != nil {
		p.work.Go(func() { p.end(old) })
	}
	cfg := p.cfg
	auth := &personAuth{server: cfg.Spec.ID, header: c.Header, value: c.Value, told: make(chan struct{})}
	cfg.Spec.Auth = auth
	s = &personSession{pool: session.Open(cfg, p.w.launcher, p.w.log, func() {}), auth: auth, use: 1}
	p.sessions[key] = s
	return s, nil
}

// release gives a session back. One that was refused ends.
func (p *personal) release(key personKey, s *personSession) {
	p.mu.Lock()
	s.use--
	s.idle = time.Now()
	if s.use == 0 && p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
	ends := s.use == 0 && (s.auth.refused.Load() || p.sessions[key] != s)
	if ends && p.sessions[key] == s {
		delete(p.sessions, key)
	}
	p.mu.Unlock()
	if ends {
		p.work.Go(func() { p.end(s) }) // the call that gives it back does not wait
	}
}

func (p *personal) end(s *personSession) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), personalClose)
	defer cancel()
	_ = s.pool.Close(ctx)
}

// sweep ends sessions that nobody uses.
func (p *personal) sweep() {
	tick := time.NewTicker(personalSweep)
	defer tick.Stop()
	for {
		select {
		case <-p.calls.Done():
			return
		case now := <-tick.C:
			p.endIdle(now.Add(-personalIdle))
		}
	}
}

// endIdle ends the sessions that were not used since.
func (p *personal) endIdle(since time.Time) {
	var old []*personSession
	p.mu.Lock()
	for k, s := range p.sessions {
		if s.use == 0 && s.idle.Before(since) {
			delete(p.sessions, k)
			old = append(old, s)
		}
	}
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range old {
		ending.Go(func() { p.end(s) })
	}
	ending.Wait()
}

// close takes no more calls, lets those that it has run until ctx ends, and closes the
// sessions.
func (p *personal) close(ctx context.Context) {
	p.drain(ctx)
	p.sweeper.Wait()
	p.endIdle(time.Now().Add(time.Hour))
}
