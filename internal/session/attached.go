package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// unattachedWait limits how long calls wait for a program after the last one has left.
	// Programs reconnect within a fraction of a second.
	unattachedWait = 3 * time.Second
	// maxUnready limits the programs whose last failure is remembered. A program that restarts
	// has another instance each time.
	maxUnready = 256
)

var (
	// errOtherDefinitions ends the session of a program that has changed its lists while other
	// programs still offer the previous ones.
	errOtherDefinitions = errors.New("its lists differ from those of the other programs")
	errReplaced         = errors.New("the program attached again")
	errRevoked          = errors.New("its key is no longer valid")
)

// programs holds the programs attached to a pool. The pool's lock guards it.
type programs struct {
	none    string // error text for a pool without programs
	all     map[string]*attachment
	waiting int           // programs whose definitions differ from the pool's
	flip    chan struct{} // closed and replaced when a program leaves or changes its lists
	since   time.Time     // when the last program in use left
	givenUp bool          // no program has been in use for unattachedWait: calls do not wait
	awaited bool          // [Pool.awaitProgram] is running
	// unready is the reason why a program was not ready at its last attempt, by instance. Programs
	// connect again every few seconds, and the log names a reason once.
	unready map[string]string
}

func newPrograms(server schema.ServerID) *programs {
	return &programs{
		none: fmt.Sprintf("No program is attached to the server %q.", server),
		all:  make(map[string]*attachment), flip: make(chan struct{}), givenUp: true, unready: make(map[string]string),
	}
}

func (g *programs) changedLocked() {
	close(g.flip)
	g.flip = make(chan struct{})
}

// attachment is one attached program.
type attachment struct {
	program attach.Program
	places  int
	end     context.CancelCauseFunc // detaches the program, with a reason

	// Guarded by the pool's lock.
	conn   *attach.Conn // nil before it is accepted
	defs   *schema.Definitions
	digest string // digest of defs
}

// read reads the definitions that the program offers.
func (a *attachment) read(ctx context.Context, s *session) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	asOf := s.pins.begin(&s.pool.cfg)
	defs, err := readDefinitions(ctx, s)
	if err != nil {
		return err
	}
	sum := defs.Digest()
	s.pool.mu.Lock()
	a.defs, a.digest = defs, sum
	s.pool.mu.Unlock()
	if s.pool.cfg.Pinned {
		s.pins.set(defs, sum, asOf, true) // other programs report their own changes
	}
	return nil
}

// readAgain reads the definitions of a program after it reported a change. If other programs
// still offer the previous ones, the program is detached once its calls have ended, and dials
// again.
func (g *programs) readAgain(ctx context.Context, s *session) error {
	p, a := s.pool, s.attached
	if err := a.read(ctx, s); err != nil {
		return err
	}
	p.mu.Lock()
	used, alone := slices.Contains(p.live, s), len(p.live) == 1
	switch {
	case !used || a.digest == p.offers.digest:
	case alone:
		p.offers.defs, p.offers.digest = a.defs, a.digest
	default:
		a.end(errOtherDefinitions)
	}
	g.changedLocked()
	p.mu.Unlock()
	p.changed()
	p.pump()
	return nil
}

// Attach serves calls on the connection of a program until the program disconnects, its key is
// revoked or the pool closes. accept upgrades the connection, which takes messages of at most
// maxMessage bytes. Attach calls it once it has reserved a place. A program whose definitions
// differ from those of the programs in use waits until these have left. The error is a
// *schema.Error of KindUnavailable if the program was not accepted, and may be written as the
// response to its request.
func (p *Pool) Attach(program attach.Program, accept func(maxMessage int) (*attach.Conn, error)) error {
	ctx, end := context.WithCancelCause(p.ctx)
	defer end(nil)
	a := &attachment{program: program, places: p.cfg.InFlight, end: end}
	if n := program.InFlight; n > 0 && n < a.places {
		a.places = n
	}
	old, err := p.admit(a)
	if err != nil {
		return err
	}
	defer p.work.Done()
	defer p.dismiss(a)
	conn, err := accept(p.cfg.MaxResult + frameHeadroom)
	if err != nil {
		p.log.Info("the WebSocket upgrade of a program failed", "error", err)
		return nil // accept has written the response
	}
	if !p.accepted(ctx, a, conn, old) {
		return nil
	}
	log := p.log.With("instance", program.Instance, "language", program.Language, "version", program.Version)
	p.mu.Lock()
	guess, probes := p.guess, p.probes
	p.mu.Unlock()
	s, how, err := p.attemptOver(a, guess, min(p.cfg.ProbeTimeout<<min(probes, maxProbes), p.cfg.StartTimeout/2))
	p.learn(guess, how, err)
	if err != nil {
		level := slog.LevelDebug
		p.mu.Lock()
		if p.programs.newlyUnreadyLocked(program.Instance, err.Error()) {
			level = slog.LevelWarn
		}
		p.mu.Unlock()
		log.Log(context.Background(), level, "a program attached and did not become ready", "error", err.Error())
		return nil
	}
	if p.joinProgram(ctx, s) {
		log.Info("program attached", "protocol", s.about.ProtocolVersion, "in_flight", s.places)
		p.pump()
		p.changed()
	}
	p.monitor(ctx, s)
	why := s.cause()
	log.Info("program detached", "why", why.Error())
	return nil
}

// newlyUnreadyLocked notes that a program is not ready, and reports whether the reason is a new one.
func (g *programs) newlyUnreadyLocked(instance, why string) bool {
	if g.unready[instance] == why {
		return false
	}
	if len(g.unready) >= maxUnready {
		clear(g.unready)
	}
	g.unready[instance] = why
	return true
}

// admit reserves a place for a program. old is the previous attachment of the same program, or
// nil.
func (p *Pool) admit(a *attachment) (old *attachment, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old = p.programs.all[a.program.Instance]
	switch {
	case p.closing:
		err = p.busy("The server %q accepts no programs at the moment; connect again.", p.cfg.Spec.ID)
	case old == nil && len(p.programs.all) >= p.cfg.Sessions:
		err = p.busy("The server %q has %d attached programs, which is the limit (\"sessions\" in its entry).", p.cfg.Spec.ID, p.cfg.Sessions)
	default:
		p.programs.all[a.program.Instance] = a
		p.work.Add(1) // The pool is not closing here, so Close does not wait for p.work yet.
	}
	return old, err
}

func (p *Pool) busy(format string, args ...any) error {
	return schema.Errorf(schema.KindUnavailable, format, args...).RetryableAfter(time.Second)
}

// accepted records the connection of a program and ends its previous one. It returns false if
// the program has attached again in the meantime.
func (p *Pool) accepted(ctx context.Context, a *attachment, conn *attach.Conn, old *attachment) bool {
	p.mu.Lock()
	a.conn = conn
	var before *attach.Conn
	if old != nil {
		old.end(errReplaced)
		before = old.conn
	}
	p.mu.Unlock()
	if before != nil {
		before.Abort() // the program no longer answers on it
	}
	if ctx.Err() != nil {
		conn.Abort()
		return false
	}
	return true
}

// dismiss releases the place of a program.
func (p *Pool) dismiss(a *attachment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.programs.all[a.program.Instance] == a {
		delete(p.programs.all, a.program.Instance)
	}
}

// learn records what an attempt revealed about the protocol era of the server's programs.
func (p *Pool) learn(guess era, how probeResult, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case how == probeLate:
		p.probes = maxProbes
	case how == probeUnanswered:
		p.probes++
		if err == nil {
			p.guess = eraLegacy
		}
	case err != nil && guess == eraLegacy:
		p.guess = eraUnknown
	}
}

// joinProgram puts a session into use once no program in use has other definitions. It returns
// false if the session or the pool ended before that.
func (p *Pool) joinProgram(ctx context.Context, s *session) bool {
	g, a, waits := p.programs, s.attached, false
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if waits {
			g.waiting--
		}
	}()
	for len(p.live) > 0 && p.offers.digest != a.digest {
		if !waits {
			waits = true
			g.waiting++
			p.log.Warn("an attached program is not used yet: its lists differ from those of the programs in use", "instance", a.program.Instance, "offers", a.digest, "in_use", p.offers.digest)
		}
		flip := g.flip
		p.mu.Unlock()
		p.changed()
		ended := false
		select {
		case <-flip:
		case <-s.dead:
			ended = true
		case <-ctx.Done():
			ended = true
		}
		p.mu.Lock()
		if ended {
			return false
		}
	}
	if ctx.Err() != nil {
		return false
	}
	p.offers.defs, p.offers.digest = a.defs, a.digest
	p.live = append(p.live[:len(p.live):len(p.live)], s)
	g.givenUp = false
	delete(g.unready, a.program.Instance)
	p.greeted(s)
	p.subscriptions.wakeLocked()
	return true
}

// monitor monitors a session until it ends, and closes it once its calls have ended.
func (p *Pool) monitor(ctx context.Context, s *session) {
	health := time.NewTicker(p.cfg.HealthEvery)
	defer health.Stop()
	k := &keeper{pool: p}
	for ended := false; !ended; {
		select {
		case <-s.dead:
			ended = true
		case <-ctx.Done():
			ended = true
			why := context.Cause(ctx)
			if p.ctx.Err() != nil {
				why = errClosed
			}
			s.retire(why)
			s.sendElsewhere()
		case <-s.suspect:
			k.examine(s)
		case <-health.C:
			if s.silence() >= p.cfg.HealthEvery {
				k.examine(s)
			}
		}
	}
	p.mu.Lock()
	p.drop(s)
	lost := s.takeBound()
	if s.failed.Load() {
		p.restarts++
	}
	if len(p.live) == 0 && p.state == schema.StateInitialized {
		p.state, p.fault = schema.StateStarting, p.programs.none
		p.programs.since = time.Now()
		if !p.programs.awaited {
			p.programs.awaited = true
			p.work.Go(p.awaitProgram)
		}
	}
	p.programs.changedLocked()
	p.mu.Unlock()
	for _, r := range lost {
		r.end(r.req.bound.outcomeOfLeft())
	}
	p.changed()
	k.part(s)
}

// awaitProgram refuses the waiting calls if no program attaches within unattachedWait.
func (p *Pool) awaitProgram() {
	g := p.programs
	for {
		p.mu.Lock()
		rest := unattachedWait - time.Since(g.since)
		attached := len(p.live) > 0
		var waiting []*Running
		if attached || rest <= 0 {
			g.awaited = false
		}
		if !attached && rest <= 0 {
			g.givenUp = true
			waiting, p.queue = p.queue, nil
		}
		awaited := g.awaited
		p.mu.Unlock()
		(&keeper{pool: p}).giveUp(waiting)
		if !awaited || !sleep.For(rest, p.ctx.Done()) {
			return
		}
	}
}

// Expel detaches each attached program for which valid returns false, once its calls have ended.
func (p *Pool) Expel(valid func(attach.Program) bool) {
	if p.programs == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.programs.all {
		if !valid(a.program) {
			a.end(errRevoked)
		}
	}
}
