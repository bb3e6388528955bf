package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/pkg/schema"
)

// unattachedWait is how long the calls of a pool wait for a program after the last one has
// left; programs dial again within a fraction of a second.
const unattachedWait = 3 * time.Second

var (
	// errOtherDefinitions ends the session of a program that has changed what it offers
	// while others still offer what it did before.
	errOtherDefinitions = errors.New("its lists differ from those of the other programs")
	errReplaced         = errors.New("the program attached again")
	errRevoked          = errors.New("its key is no longer valid")
)

// programs are the programs attached to a pool, whose lock guards them.
type programs struct {
	none    string // the sentence for a pool without programs
	all     map[string]*attachment
	waiting int           // those whose definitions differ from the pool's
	flip    chan struct{} // closed and replaced when a program leaves or changes what it offers
	since   time.Time     // when the last one in use left
	givenUp bool          // none has been in use for a while: calls do not wait
	awaited bool          // [Pool.awaitProgram] runs
}

func newPrograms(server schema.ServerID) *programs {
	return &programs{
		none: fmt.Sprintf("No program is attached to the server %q.", server),
		all:  make(map[string]*attachment), flip: make(chan struct{}), givenUp: true,
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
	end     context.CancelCauseFunc // of its stay, with a reason

	// Guarded by the pool's lock.
	conn   *attach.Conn // nil before it was accepted
	defs   *schema.Definitions
	digest string // of what it offers
}

// read reads what the program offers.
func (a *attachment) read(ctx context.Context, s *session) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	upTo := s.pins.begin(&s.pool.cfg)
	defs, err := readDefinitions(ctx, s)
	if err != nil {
		return err
	}
	sum := defs.Digest()
	s.pool.mu.Lock()
	a.defs, a.digest = defs, sum
	s.pool.mu.Unlock()
	if s.pool.cfg.Pinned {
		s.pins.set(defs, sum, upTo, true) // other programs tell of their changes themselves
	}
	return nil
}

// readAgain reads what a program offers after it told of a change. Where other programs
// still offer what it did before, it leaves once its calls have ended, and dials again.
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

// Attach serves calls on the connection of a program, until the program, its key or the
// pool ends that. accept makes the connection, which takes messages of at most maxMessage
// bytes; it is called once it is known that there is a place. A program whose definitions differ from those of the programs in use waits
// until these have left. The error is a *schema.Error of KindUnavailable where the program
// was not accepted, and may be written as the answer of its request.
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
		return nil // the answer was written
	}
	if !p.accepted(ctx, a, conn, old) {
		return nil
	}
	log := p.log.With("instance", program.Instance, "language", program.Language, "version", program.Version)
	p.mu.Lock()
	guess, probes := p.guess, p.probes
	p.mu.Unlock()
	s, how, err := p.attemptOver(a, guess, min(p.cfg.ProbeTimeout<<min(probes, patient), p.cfg.StartTimeout/2))
	p.learn(guess, how, err)
	if err != nil {
		log.Warn("a program attached and did not become ready", "error", err.Error())
		return nil
	}
	if p.joinProgram(ctx, s) {
		log.Info("program attached", "protocol", s.about.ProtocolVersion, "in_flight", s.places)
		p.pump()
		p.changed()
	}
	p.stay(ctx, s)
	why := s.cause()
	log.Info("program detached", "why", why.Error())
	return nil
}

// admit gives a program one of the places. old is the connection that the same program
// had before, nil for none.
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
		p.work.Add(1) // before Close waits: the pool is not closing
	}
	return old, err
}

func (p *Pool) busy(format string, args ...any) error {
	return schema.Errorf(schema.KindUnavailable, format, args...).RetryableAfter(time.Second)
}

// accepted notes the connection of a program and ends the one that it had before. It
// returns false where the program has attached again meanwhile.
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
		before.Abort() // the program does not answer on it
	}
	if ctx.Err() != nil {
		conn.Abort()
		return false
	}
	return true
}

// dismiss gives the place of a program back.
func (p *Pool) dismiss(a *attachment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.programs.all[a.program.Instance] == a {
		delete(p.programs.all, a.program.Instance)
	}
}

// learn notes what an attempt showed of the era of the server's programs.
func (p *Pool) learn(guess era, how hearing, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case how == late:
		p.probes = patient
	case how == unheard:
		p.probes++
		if err == nil {
			p.guess = eraLegacy
		}
	case err != nil && guess == eraLegacy:
		p.guess = eraUnknown
	}
}

// joinProgram puts a session into use, as soon as no program in use offers anything else.
// It returns false where the session or the pool ended before.
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
	p.greeted(s)
	p.subscriptions.wakeLocked()
	return true
}

// stay looks after a session until it ends, and closes it once its calls have ended.
func (p *Pool) stay(ctx context.Context, s *session) {
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
			if time.Since(time.Unix(0, s.heard.Load())) >= p.cfg.HealthEvery {
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
		r.end(r.req.bound.left())
	}
	p.changed()
	k.part(s)
}

// awaitProgram refuses the calls that wait for a program where none comes for a while.
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

// Expel ends the stay of the attached programs for which valid returns false, each once
// its calls have ended.
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
