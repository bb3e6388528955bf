package quota

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// patience is how long a call that somebody waits for, and that was accepted
// before, waits for its turn.
const patience = 30 * time.Second

// lookAgain is how often a call that waits for a slot looks, because it may be
// given back at another front door.
const lookAgain = 2 * deniedFor

// lineKey names a line of calls that wait. Those of different servers wait apart:
// a server that has no room must not hold up the calls to others.
type lineKey struct {
	principal string
	server    schema.ServerID
	class     class
}

// line is calls that wait for the same limits, first come, first served: only the
// first of them looks.
type line struct {
	turn chan struct{}
	n    int
}

// Wait takes room for a call that was accepted before and must not be refused: of
// a batch, from a journal, or approved. It waits until there is room both for the
// principal and at the server. A bulk call waits until ctx ends, and then gets an
// error of KindCanceled; one that somebody waits for gives up after 30 s, with the
// refusal. Nothing started then.
func (q *Quota) Wait(ctx context.Context, p *schema.Principal, server schema.ServerID, isBulk bool) (Pass, error) {
	if q == nil {
		return Pass{}, nil
	}
	c := interactive
	if isBulk {
		c = bulk
	}
	if ps, ss := q.limiting(p, server); ps == nil && ss == nil {
		return Pass{}, nil
	}
	l, first := q.join(lineKey{p.Name, server, c})
	defer q.leave(lineKey{p.Name, server, c})
	if first {
		if pass, refused, _ := q.both(ctx, p, server, c); refused == nil {
			return pass, nil
		}
	}
	var late <-chan time.Time
	if c == interactive {
		t := time.NewTimer(patience)
		defer t.Stop()
		late = t.C
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return Pass{}, errWaitEnded()
	case <-late:
		pass, refused, v := q.both(ctx, p, server, c)
		if refused == nil {
			return pass, nil
		}
		return Pass{}, refused.refusal(v)
	}
	return q.await(ctx, p, server, c, late)
}

// Limits says whether a call of the principal to the server can have to wait.
func (q *Quota) Limits(p *schema.Principal, server schema.ServerID) bool {
	if q == nil {
		return false
	}
	ps, ss := q.limiting(p, server)
	return ps != nil || ss != nil
}

// await is Wait for the first of a line.
func (q *Quota) await(ctx context.Context, p *schema.Principal, server schema.ServerID, c class, late <-chan time.Time) (Pass, error) {
	for {
		pass, refused, v := q.both(ctx, p, server, c)
		if refused == nil {
			return pass, nil
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

// limiting returns what limits single calls, nil where nothing does.
func (q *Quota) limiting(p *schema.Principal, server schema.ServerID) (ps, ss *subject) {
	if ps = q.principal(p); ps != nil && !ps.terms().perCall() {
		ps = nil
	}
	if ss = q.server(server); ss != nil && !ss.terms().perCall() {
		ss = nil
	}
	return ps, ss
}

// both takes room at both, or at neither; then it says which refused.
func (q *Quota) both(ctx context.Context, p *schema.Principal, server schema.ServerID, c class) (Pass, *subject, verdict) {
	for {
		ps, ss := q.limiting(p, server)
		if ps != nil {
			if v := ps.try(ctx, c, true); v.gone {
				continue
			} else if !v.ok {
				return Pass{}, ps, v
			}
		}
		if ss == nil {
			return Pass{principal: ps}, nil, verdict{}
		}
		v := ss.try(ctx, c, true)
		if v.ok {
			return Pass{ps, ss}, nil, v
		}
		if ps != nil {
			ps.undo(c)
		}
		if !v.gone {
			return Pass{}, ss, v
		}
	}
}

// join steps into a line; first says that nobody was there before.
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
	e := schema.Errorf(schema.KindCanceled, "The call was canceled while it waited for its quota; it did not start. (%w)", errLeft)
	e.Retryable = true
	return e
}
