package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/pkg/schema"
)

// era is the assumed protocol era of a server that did not answer server/discover.
type era int

const (
	eraUnknown era = iota
	eraLegacy      // do not send server/discover again
)

// startError is the reason why a session could not be opened.
type startError struct {
	err     error
	timeout bool
	tail    string // end of the child's stderr
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// open opens one session: it starts the process if there is one, performs the handshake and, the
// first time, reads the definitions.
func (k *keeper) open() (*session, error) {
	p := k.pool
	p.mu.Lock()
	guess, probes := p.guess, p.probes
	p.mu.Unlock()
	if p.cfg.Spec.Type == "sse" {
		guess = eraLegacy // the transport belongs to that era
	}
	probe := min(p.cfg.ProbeTimeout<<min(probes, maxProbes), p.cfg.StartTimeout/2)
	s, how, err := p.attempt(guess, probe)
	if how == probeLate {
		p.log.Info("the answer to server/discover was late; starting again with a longer timeout for it", "waited", probe)
		p.mu.Lock()
		p.probes = maxProbes
		p.mu.Unlock()
		s, how, err = p.attempt(eraUnknown, p.cfg.StartTimeout/2)
	} else if how == probeUnanswered {
		p.mu.Lock()
		p.probes++
		p.mu.Unlock()
	}
	switch {
	case err == nil && how == probeUnanswered:
		k.believe(eraLegacy)
	case err == nil:
	case guess == eraLegacy:
		k.believe(eraUnknown) // a newer server may have replaced it
	case how == probeUnanswered && p.stateful() && p.ctx.Err() == nil:
		// The server ignored server/discover and then stopped reading.
		p.log.Debug("server/discover went unanswered; starting again with the legacy handshake")
		if s, _, err = p.attempt(eraLegacy, 0); err == nil {
			k.believe(eraLegacy)
		}
	}
	return s, err
}

// stateful reports whether the first message can break a server, so that a retry needs a new
// connection or process.
func (p *Pool) stateful() bool {
	return p.cfg.Spec.Type == "stdio" || p.cfg.Spec.Type == launch.TypeWebSocket
}

func (k *keeper) believe(e era) {
	p := k.pool
	p.mu.Lock()
	p.guess = e
	p.mu.Unlock()
}

// maxProbes is the number of probes after which the probe timeout stops growing.
const maxProbes = 8

// errLate ends a legacy handshake with a server that turned out to be modern.
var errLate = errors.New("it answered server/discover too late")

// attempt opens one session in one way. how is the result of its server/discover, for which it
// waits at most probe.
func (p *Pool) attempt(guess era, probe time.Duration) (_ *session, how probeResult, err error) {
	return p.attemptOver(nil, guess, probe)
}

// attemptOver is attempt over the connection of an attached program if a is not nil. The
// definitions of the program are then kept in a, not in the pool.
func (p *Pool) attemptOver(a *attachment, guess era, probe time.Duration) (_ *session, how probeResult, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.StartTimeout)
	defer cancel()
	s := newSession(p)
	switch {
	case a != nil:
		how, err = opening{s}.overProgram(ctx, a, guess, probe)
	case p.cfg.Native != nil:
		err = opening{s}.overFunctions()
	case p.cfg.Program != nil, p.cfg.Spec.Type == "stdio":
		how, err = opening{s}.overPipes(ctx, guess, probe)
		if how == probeLate && !p.cutOff { // with cutOff the program serves one call: any session is better than none
			err = errLate
		}
	case p.cfg.Spec.Type == "sse":
		err = opening{s}.overEvents(ctx)
	case p.cfg.Spec.Type == launch.TypeWebSocket:
		how, err = opening{s}.overDialed(ctx, guess, probe)
	default:
		how, err = opening{s}.overHTTP(ctx, guess, probe)
	}
	if err == nil {
		p.mu.Lock()
		p.all[s] = struct{}{}
		known := p.offers.defs != nil
		p.mu.Unlock()
		if a != nil {
			err = a.read(ctx, s)
		} else if !known || p.cfg.Pinned {
			err = p.offers.read(ctx, s)
		} else {
			s.reread = true
		}
	}
	if err == nil {
		return s, how, nil
	}
	if errors.Is(err, errClosed) || errors.Is(err, mcp.ErrConnectionClosed) {
		sleep.For(p.cfg.exitWait, s.dead) // the reader is about to report the reason
	}
	slow := ctx.Err() != nil && p.ctx.Err() == nil
	if why := s.cause(); why != nil && !errors.Is(why, errClosed) {
		err = why
	}
	fault := &startError{err: err, timeout: slow}
	var sentence *schema.Error
	if !errors.As(err, &sentence) {
		fault.err = errors.New(p.plain(err))
	}
	if slow {
		fault.err = fmt.Errorf("it was not ready within %v; if it is only slow to start, raise startTimeout in its entry of the servers file", p.cfg.StartTimeout)
	}
	if a != nil {
		a.conn.Close(attach.CodeFailed, fault.Error())
	}
	s.failed.Store(true)
	s.retire(errClosed)
	s.endCalls(errClosed, func(*Running) Outcome {
		return Outcome{Err: schema.Errorf(schema.KindServerFailed, "The server %q did not start.", p.cfg.Spec.ID)}
	})
	s.close()
	if s.child != nil {
		fault.tail = s.child.StderrTail()
	}
	p.mu.Lock()
	delete(p.all, s)
	p.mu.Unlock()
	return nil, how, fault
}

// opening connects a new session and performs the handshake.
type opening struct{ s *session }

// overPipes starts the child process and performs the handshake.
func (o opening) overPipes(ctx context.Context, guess era, probe time.Duration) (how probeResult, err error) {
	s := o.s
	if s.child, err = s.pool.start(); err != nil {
		return probeAnswered, err
	}
	l := newPipeLink(s, s.child)
	s.sdk = newSDKConn(s, probe, l.sdkWrite)
	l.start()
	// A server that has sent nothing yet is not stopped before the timeout: it may still be
	// downloading, as with npx and uvx.
	err = o.handshake(ctx, s.sdk, guess)
	return s.sdk.result(), err
}

// overEvents opens the event stream and performs the handshake.
func (o opening) overEvents(ctx context.Context) error {
	s := o.s
	l, err := newEventLink(ctx, s, s.pool.client)
	if err != nil {
		return err
	}
	s.sdk = newSDKConn(s, 0, l.sdkWrite)
	l.start()
	return o.handshake(ctx, s.sdk, eraLegacy)
}

// overHTTP performs the handshake through the SDK's own transport, because a wrapper would hide
// its private hooks. Our link then uses the same endpoint next to it.
func (o opening) overHTTP(ctx context.Context, guess era, probe time.Duration) (how probeResult, err error) {
	s := o.s
	shake := func(ctx context.Context, guess era) error {
		client, answered := recordAnswers(s.pool.client, s.pool.cfg.MaxResult+frameHeadroom)
		t := &keptTransport{StreamableClientTransport: mcp.StreamableClientTransport{
			Endpoint: s.pool.cfg.Spec.URL, HTTPClient: client, MaxEventSize: s.pool.cfg.MaxResult + frameHeadroom,
			DisableStandaloneSSE: true, // remoteLink.listen reads it
		}}
		err := o.handshake(ctx, t, guess)
		fault := answered.fault.Load()
		if err != nil && t.conn != nil {
			_ = t.conn.Close() // the transport is abandoned
		}
		if err != nil && fault != nil {
			return errors.New(*fault)
		}
		return err
	}
	if guess == eraUnknown {
		brief, cancel := context.WithTimeout(ctx, probe)
		err = shake(brief, guess)
		if err != nil && errors.Is(brief.Err(), context.DeadlineExceeded) {
			how = probeUnanswered
		}
		cancel()
	}
	if guess == eraLegacy || how == probeUnanswered && ctx.Err() == nil {
		err = shake(ctx, eraLegacy)
	}
	if err == nil {
		newRemoteLink(s, s.pool.client, s.about.ProtocolVersion, s.cs.ID()).listen(ctx)
	}
	return how, err
}

// keptTransport keeps the connection that it made.
type keptTransport struct {
	mcp.StreamableClientTransport
	conn mcp.Connection
}

func (t *keptTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.StreamableClientTransport.Connect(ctx)
	t.conn = conn
	return conn, err
}

// handshake lets the SDK discover the server or perform the legacy handshake.
func (o opening) handshake(ctx context.Context, t mcp.Transport, guess era) error {
	s := o.s
	opts := &mcp.ClientSessionOptions{}
	if guess == eraLegacy {
		opts.ProtocolVersion = mcpwire.LegacyNewest
	}
	impl := &mcp.Implementation{Name: clientName, Version: s.pool.version}
	client := mcp.NewClient(impl, o.clientOptions())
	cs, err := client.Connect(ctx, t, opts)
	if err != nil {
		return err
	}
	s.cs, s.about = cs, cs.InitializeResult()
	if s.sdk != nil {
		s.sdk.handshaken()
	}
	if mcpwire.IsModern(s.about.ProtocolVersion) {
		s.env = modernEnvelope(s.about.ProtocolVersion, impl.Name, impl.Version)
		s.env.tells = s.pool.cfg.Tells
	}
	return nil
}

// clientName is our client name in the handshake.
const clientName = "callyard"

// close closes the connection and waits for everything that belongs to it.
func (s *session) close() {
	if s.sdk != nil {
		s.sdk.handshaken()
		_ = s.sdk.Close() // it fails if the connection is gone, which is the goal
	}
	if s.link != nil {
		s.link.close()
	}
	if s.cs != nil {
		if err := s.cs.Close(); err != nil {
			s.pool.log.Debug("closing the session", "error", s.pool.plain(err))
		}
	}
}

// plain returns the bounded text of an error, without the server's address, which may hold a
// secret.
func (p *Pool) plain(err error) string {
	text := urls.WithoutURL(err).Error()
	if p.cfg.Spec.URL != "" {
		text = strings.ReplaceAll(text, p.cfg.Spec.URL, "its address")
	}
	return bounded(text)
}
