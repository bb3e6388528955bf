package worker

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// do runs the call of a job in the process of a lease. If the lease has ended, the call does not
// start, because its state is lost.
func (l *leases) do(j *job, id string, v *verdict) {
	var one *lease
	if l != nil {
		l.mu.Lock()
		if one = l.open[id]; one != nil {
			one.busy++
			one.used = time.Now()
			l.calls++
		}
		l.mu.Unlock()
	}
	if one == nil {
		j.done(&j.request, session.Outcome{Err: schema.Errorf(schema.KindServerFailed, "The lease of the call has ended, so it did not start.")})
		return
	}
	if refusal := l.refuses(j, one, v); refusal != nil {
		l.leave(one)
		j.done(&j.request, session.Outcome{Err: refusal})
		return
	}
	running := one.do(&j.request, func(req *session.Request, out session.Outcome) {
		l.leave(one)
		if out.Err != nil && out.Err.Kind == schema.KindUnavailable && !out.Started {
			out.Err.Kind, out.Err.Retryable = schema.KindServerFailed, false // no other session has its state
		}
		j.done(req, out)
	})
	j.running.Store(running)
	if j.ended.Load() {
		running.Cancel()
	}
}

// leave records that a call of a lease has ended.
func (l *leases) leave(one *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.busy--
	one.used = time.Now()
	if l.calls--; l.calls == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// drain assigns no more processes and waits until the running calls have ended, or ctx ends.
func (l *leases) drain(ctx context.Context) {
	l.stop()
	l.mu.Lock()
	if l.calls == 0 {
		l.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	l.idle = idle
	l.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
