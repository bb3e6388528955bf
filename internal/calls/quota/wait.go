package quota

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// interactiveWait is the maximum time that an interactive call that was accepted earlier waits.
const interactiveWait = 30 * time.Second

// lookAgain is the poll interval of a call that waits for a slot, because the slot may be released
// at another front door.
const lookAgain = 2 * deniedFor

// lineKey identifies a line of waiting calls. Each server has separate lines, so that a server at its
// limit does not delay calls to others.
type lineKey struct {
	principal string
	server    schema.ServerID
	class     class
}

// line is a FIFO queue of calls that wait for the same limits. Only the first of them polls.
type line struct {
	turn chan struct{}
	n    int
}

// Wait acquires slots for a call that was accepted earlier and must not be refused: a call of a batch,
// from a journal, or approved. It waits until both the principal and the server have a free slot. A
// bulk call waits until ctx ends, and then gets an error of KindCanceled. An interactive call gives
// up after 30 s and gets the refusal. After an error, the call has not started.
func (q *Quota) Wait(ctx context.Context, p *schema.Principal, server schema.ServerID, isBulk bool) (Pass, error) {
	if q == nil {
		return Pass{}, nil
	}
	c := interactive
	if isBulk {
		c = bulk
	}
	if q.limiting(p, server) == (Pass{}) {
		return Pass{}, nil
	}
	k := lineKey{p.Name, server, c}
	l, first := q.join(k)
	defer q.leave(k)
	if first {
		if pass, refused, _ := q.admit(ctx, p, server, c, true); refused == nil {
			return pass, nil
		}
	}
	var late <-chan time.Time
	if c == interactive {
		t := time.NewTimer(interactiveWait)
		defer t.Stop()
		late = t.C
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return Pass{}, errWaitEnded()
	case <-late:
		pass, refused, v := q.admit(ctx, p, server, c, true)
		if refused == nil {
			return pass, nil
		}
		return Pass{}, refused.refusal(v)
	}
	return q.await(ctx, p, server, c, late, false)
}

// recall is Enter for a call of a tenant whose nominal slots were lent: it waits for a borrowed call
// to end. The number of waiters is limited to the number of nominal slots that the tenant does not
// use.
func (q *Quota) recall(ctx context.Context, p *schema.Principal, m *member) (Pass, error) {
	s := m.subject
	waiting := m.recalls.Add(1)
	defer m.recalls.Add(-1)
	if !m.mayRecall(int(waiting)) {
		return Pass{}, s.refusal(verdict{wait: guess})
	}
	t := time.NewTimer(interactiveWait)
	defer t.Stop()
	return q.await(ctx, p, "", interactive, t.C, true)
}

// Limits reports whether a call of the principal to the server may have to wait.
func (q *Quota) Limits(p *schema.Principal, server schema.ServerID) bool {
	if q == nil {
		return false
	}
	return q.limiting(p, server) != Pass{}
}

// await is Wait for the first call of a line. If recall is set, it waits only for slots that the tenant
// has lent. Of the lines that wait for the same tenant, only the first one polls.
func (q *Quota) await(ctx context.Context, p *schema.Principal, server schema.ServerID, c class, late <-chan time.Time, recall bool) (Pass, error) {
	var turn chan struct{} // semaphore of the tenant, nil while not held
	var waits *member      // the tenant whose slot it waits for
	yield := func() {
		if turn != nil {
			<-turn
			turn = nil
		}
		if waits != nil {
			waits.waiting.Add(-1)
			waits = nil
		}
	}
	defer yield()
	for {
		pass, refused, v := q.admit(ctx, p, server, c, true)
		switch {
		case refused == nil:
			return pass, nil
		case recall && !v.lent:
			return Pass{}, refused.refusal(v)
		case refused.member == nil:
			yield()
		case turn == nil:
			if waits == nil {
				waits = refused.member
				waits.waiting.Add(1)
			}
			select {
			case refused.member.turns[c] <- struct{}{}:
				turn = refused.member.turns[c]
				continue
			case <-ctx.Done():
				return Pass{}, errWaitEnded()
			case <-late:
				return Pass{}, refused.refusal(v)
			}
		}
		wait := v.wait
		if !v.rate {
			wait = lookAgain
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-v.freed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return Pass{}, errWaitEnded()
		case <-late:
			timer.Stop()
			return Pass{}, refused.refusal(v)
		}
	}
}

// limiting returns the subjects whose limits apply to single calls of the principal, and to calls to
// the server unless it is "".
func (q *Quota) limiting(p *schema.Principal, server schema.ServerID) (by Pass) {
	if s := q.principal(p); s != nil && s.terms().perCall() {
		by.principal = s
	}
	by.tenant = q.cohort.of(p.Tenant)
	if server == "" {
		return by
	}
	if s := q.server(server); s != nil && s.terms().perCall() {
		by.server = s
	}
	return by
}

// admit takes a slot of every subject that limits the call, or of none. On failure it returns the
// subject that refused.
func (q *Quota) admit(ctx context.Context, p *schema.Principal, server schema.ServerID, c class, signal bool) (Pass, *subject, verdict) {
	for {
		by := q.limiting(p, server)
		refused, v := by.take(ctx, c, signal)
		switch {
		case refused == nil:
			return by, nil, v
		case !v.gone:
			return Pass{}, refused, v
		}
	}
}

// take takes a slot of each subject of the Pass, or of none.
func (p *Pass) take(ctx context.Context, c class, signal bool) (refused *subject, v verdict) {
	all := p.subjects()
	for i, s := range all {
		if s == nil {
			continue
		}
		if v = s.try(ctx, c, signal); v.ok {
			continue
		}
		for _, before := range all[:i] {
			if before != nil {
				before.undo(c)
			}
		}
		return s, v
	}
	return nil, verdict{ok: true}
}

// join adds a call to a line. first reports whether the line was empty.
func (q *Quota) join(k lineKey) (l *line, first bool) {
	q.linesMu.Lock()
	defer q.linesMu.Unlock()
	if l = q.lines[k]; l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		q.lines[k] = l
	}
	l.n++
	return l, l.n == 1
}

func (q *Quota) leave(k lineKey) {
	q.linesMu.Lock()
	defer q.linesMu.Unlock()
	if l := q.lines[k]; l.n == 1 {
		delete(q.lines, k)
	} else {
		l.n--
	}
}

var errLeft = errors.New("no caller waits")

func errWaitEnded() error {
	return schema.Errorf(schema.KindCanceled, "The call was canceled while it waited for its quota; it did not start. (%w)", errLeft).RetryableAfter(0)
}
