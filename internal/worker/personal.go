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
	// maxPersonal limits the sessions of people with one server. The one that was unused for
	// the longest time makes room for a new one.
	maxPersonal = 64
	// personalIdle is how long an unused session is kept.
	personalIdle  = 2 * time.Minute
	personalSweep = 15 * time.Second
	// personalAnswer limits the wait for a credential. It is longer than a renewal takes.
	personalAnswer = 35 * time.Second
	// personalClose limits the time to close a session without calls.
	personalClose = 5 * time.Second
)

// personal runs the calls of a server that needs a credential of each person. It asks the front
// door of each call for the credential, and keeps sessions by person and credential, so that no
// call runs on another person's session. The server's shared session only reads the definitions,
// and never takes a call.
type personal struct {
	w   *Worker
	cfg session.Config
	callGroup
	sweeper sync.WaitGroup

	mu       sync.Mutex
	sessions map[personKey]*personSession
	freed    chan struct{} // closed when a session becomes idle; nil if no call waits for one
}

// personKey identifies a person at one server by the identity of the caller. version is the version
// of the credential.
type personKey struct {
	principal string
	version   uint64
}

type personSession struct {
	pool *session.Pool
	auth *personAuth
	use  int // number of calls
	idle time.Time
}

// personAuth sets the credential of one person, and records when the server refuses it.
type personAuth struct {
	server  schema.ServerID
	header  string
	value   string
	refused atomic.Bool
	refusal chan struct{} // closed on the first refusal
}

// Authorize sets the header.
func (a *personAuth) Authorize(_ context.Context, h http.Header) error {
	h[http.CanonicalHeaderKey(a.header)] = []string{a.value}
	return nil
}

// Refused ends the request without a retry, because another credential needs another session.
func (a *personAuth) Refused(_ context.Context, r launch.Refusal) (bool, error) {
	if r.Status != http.StatusUnauthorized {
		return false, nil
	}
	if a.refused.CompareAndSwap(false, true) {
		close(a.refusal)
	}
	return false, a.error()
}

func (a *personAuth) error() *schema.Error {
	return launch.Failed("Server %q: %w. The call did not start.", a.server, launch.ErrRefused)
}

// openPersonal returns the runner for calls with personal credentials. It opens no session yet.
func openPersonal(w *Worker, s *Served) *personal {
	p := &personal{w: w, cfg: s.Session, sessions: make(map[personKey]*personSession)}
	p.cfg.Sessions, p.cfg.OnDemand, p.cfg.IdleStop, p.cfg.Updated = 1, false, 0, nil
	p.calls, p.cut = context.WithCancel(context.Background())
	p.sweeper.Go(p.sweep)
	return p
}

// do runs the call of the job and reports its outcome to the job.
func (p *personal) do(j *job, principal string) {
	if !p.begin(j, p.cfg.CallTimeout, func(ctx context.Context, deadline time.Time) { p.run(ctx, j, principal, deadline) }) {
		j.done(&j.request, session.Outcome{Err: launch.Unavailable("The sessions of server %q are being closed; the call was not started.", p.cfg.Spec.ID)})
	}
}

// run runs the call, and runs it again with a new credential if the server refused the first.
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

// ask requests the credential of the person behind the call from the call's front door.
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

// word returns the error of a call without a credential.
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

// send runs the call on the session. It ends the call early if the session cannot be opened because
// the server refuses the credential.
func (p *personal) send(ctx context.Context, j *job, s *personSession, deadline time.Time) session.Outcome {
	running, over := j.send(s.pool.Do, deadline)
	var look <-chan time.Time
	for refusal := (<-chan struct{})(s.auth.refusal); ; {
		select {
		case out := <-over:
			return out
		case <-ctx.Done():
			running.Cancel()
			return <-over
		case <-refusal:
			refusal, look = nil, time.After(personalRefusal)
		case <-look:
			// A call that was sent ends by itself and may well succeed, because the server refused
			// another request. A call that waits for a session waits in vain.
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

// personalRefusal is how often a call whose session was refused checks whether it still waits.
const personalRefusal = 100 * time.Millisecond

// take returns the session of the key, and opens it if there is none. If all are in use, it waits
// until ctx ends. It must be called from a goroutine of p.work.
func (p *personal) take(ctx context.Context, key personKey, c credential.Credential) (*personSession, error) {
	for {
		s, freed := p.tryTake(key, c)
		if s != nil {
			return s, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, launch.Unavailable("All %d sessions of people with server %q are in use; the call did not start.", maxPersonal, p.cfg.Spec.ID)
		}
	}
}

// tryTake is take without waiting. Without a session, freed is closed when it can be tried again.
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
	case s == nil && len(p.sessions) >= maxPersonal:
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
	auth := &personAuth{server: cfg.Spec.ID, header: c.Header, value: c.Value, refusal: make(chan struct{})}
	cfg.Spec.Auth = auth
	s = &personSession{pool: session.Open(cfg, p.w.launcher, p.w.log, func() {}), auth: auth, use: 1}
	p.sessions[key] = s
	return s, nil
}

// release returns a session. A refused or replaced session is closed once it has no more calls.
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
		p.work.Go(func() { p.end(s) }) // the releasing call does not wait
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

// sweep closes unused sessions.
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

// endIdle closes the sessions that have not been used since the given time.
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

// close stops taking calls, lets running calls continue until ctx ends, aborts the rest, and
// closes the sessions.
func (p *personal) close(ctx context.Context) {
	p.drain(ctx)
	p.sweeper.Wait()
	p.endIdle(time.Now().Add(time.Hour))
}
