package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/pkg/schema"
)

// RetryRule returns the rule for repeating the call when it fails, or nil. Approved calls and calls
// that are not safe to repeat have none, even if the operator configured one.
func RetryRule(call *schema.Call) *schema.Retry {
	if call.Retry == nil || call.Retry.Attempts < 2 || !repeatable(call) {
		return nil
	}
	return call.Retry
}

// retryJitter is the random share that is subtracted from a pause.
const retryJitter = 0.5

// trial runs the attempts of one call. It must be used by one goroutine.
type trial struct {
	router *Router
	call   *schema.Call
	rule   *schema.Retry            // nil if there is none
	avoid  map[schema.WorkerID]bool // workers at which the call did not start

	last, doubt error // doubt is the error of an attempt that may have run

	sent     int           // messages sent
	chosen   time.Time     // time at which the worker of the last message was chosen
	spent    time.Duration // without a rule, the time of all attempts
	budget   time.Duration
	deadline time.Time // the call's timeout after the first worker was chosen
	tries    int       // attempts that count for the rule
	answer   *schema.Result
	refusal  *schema.Error // set instead of answer if the answer was a JSON-RPC error
}

// begin returns the call to send to the chosen worker. Its timeout is limited to the remaining time.
// Without a rule, the time for which the call waits for another worker does not count.
func (t *trial) begin() *schema.Call {
	t.sent++
	t.chosen = time.Now()
	if t.rule == nil {
		if t.spent == 0 {
			return t.call
		}
		one := *t.call
		one.Timeout = max(t.whole()-t.spent, time.Millisecond)
		return &one
	}
	t.clock(t.chosen)
	t.budget = max(t.deadline.Sub(t.chosen), time.Millisecond)
	if t.rule.AttemptTimeout > 0 {
		t.budget = min(t.budget, t.rule.AttemptTimeout)
	}
	one := *t.call
	one.Timeout = t.budget
	return &one
}

// clock sets the deadline of the call, once.
func (t *trial) clock(now time.Time) {
	if t.deadline.IsZero() {
		t.deadline = now.Add(t.whole())
	}
}

// whole returns the timeout of the call, for all attempts together.
func (t *trial) whole() time.Duration {
	if t.call.Timeout > 0 {
		return t.call.Timeout
	}
	return t.router.limits.CallTimeout
}

// spend adds the attempt that has just ended to the time of all attempts.
func (t *trial) spend() {
	if t.rule == nil && !t.chosen.IsZero() {
		t.spent, t.chosen = t.spent+time.Since(t.chosen), time.Time{}
	}
}

// run makes attempts until one succeeds or no further one is allowed; see [Router.Do].
func (t *trial) run(ctx context.Context, stop <-chan struct{}, attempt func(n int) (*schema.Result, next, error)) (*schema.Result, error) {
	hops := 0 // consecutive attempts without a pause
	for n := 1; ; n++ {
		res, next, err := attempt(n)
		switch {
		case err == nil && (t.rule == nil || !res.ToolError || ended(ctx, stop)):
			return t.succeeded(res)
		case next == tryStopped:
			return t.failed(EndOf(t.call, t.doubt, err, false))
		case ended(ctx, stop):
			return t.failed(endOf(t.call, t.doubt, err, true))
		}
		t.spend()
		kind := t.kindOf(res, err)
		if hops++; (next == tryAny || next == tryOther) && hops < maxAttempts && t.spent < t.whole() && !t.pausesBetweenWorkers(kind) {
			t.router.log.Debug("a call is sent again", "call", t.call.ID, "server", t.call.Server, "reason", err)
			t.note(res, err)
			continue
		}
		wait, ok := t.pauseAfter(ctx, kind, res, err)
		switch {
		case !ok && err == nil:
			return t.succeeded(res)
		case !ok:
			return t.failed(endOf(t.call, t.doubt, err, false))
		}
		t.note(res, err)
		if !sleep(ctx, stop, wait) {
			return t.failed(EndOf(t.call, t.doubt, errWaitEnded(), true))
		}
		t.router.log.Debug("a rule sends a call again", "call", t.call.ID, "server", t.call.Server, "kind", kind, "after", wait)
		t.router.limits.Metrics.CallRetried(string(t.call.Server), kind)
		t.avoid, hops = nil, 0
	}
}

// pausesBetweenWorkers reports whether the rule requires a pause after a failure of this kind,
// before another worker is tried. If the call did not start, another worker is tried at once.
func (t *trial) pausesBetweenWorkers(kind schema.RetryKind) bool {
	return t.rule != nil && kind != schema.RetryUnavailable && t.rule.Covers(kind)
}

// note stores the outcome of an attempt.
func (t *trial) note(res *schema.Result, err error) {
	t.last = err
	switch e := schema.AsError(err); {
	case err == nil:
		t.answer, t.refusal, t.doubt = res, nil, nil
	case e.Kind == schema.KindProtocol:
		t.answer, t.refusal, t.doubt = nil, e, nil
	case e.Kind == schema.KindOutcomeUnknown:
		t.answer, t.refusal, t.doubt = nil, nil, err
	}
}

// pauseAfter returns the pause before the next attempt. ok is false if no further attempt is
// allowed.
func (t *trial) pauseAfter(ctx context.Context, kind schema.RetryKind, res *schema.Result, err error) (wait time.Duration, ok bool) {
	if t.rule == nil {
		return 0, false
	}
	if t.tries++; t.tries >= t.rule.Attempts || !t.rule.Covers(kind) {
		return 0, false
	}
	pauses := backoff.Policy{First: t.rule.Backoff, Max: t.rule.MaxBackoff, Jitter: retryJitter}
	wait = pauses.Delay(t.tries - 1)
	if err != nil {
		wait = max(wait, schema.AsError(err).RetryAfter)
	} else {
		wait = max(wait, backoff.RetryAfter(httpAnswerOf(res).After, time.Now(), longestRetryAfter))
	}
	now := time.Now()
	t.clock(now)
	end := t.deadline
	if own, is := ctx.Deadline(); is && own.Before(end) {
		end = own
	}
	return wait, now.Add(wait).Before(end)
}

// succeeded ends the call with a result of its tool.
func (t *trial) succeeded(res *schema.Result) (*schema.Result, error) {
	if t.rule != nil {
		res.Attempts = t.sent
	}
	return res, nil
}

// failed ends the call with an error. An earlier answer of the tool takes precedence over the
// error of a later attempt that did not start.
func (t *trial) failed(e *schema.Error) (*schema.Result, error) {
	if t.rule == nil {
		return nil, e
	}
	switch {
	case !neverStarted(e):
	case t.answer != nil:
		return t.succeeded(t.answer)
	case t.refusal != nil:
		e = t.refusal.WithCall(t.call.ID)
	}
	if e.Attempts = t.sent; t.sent > 1 {
		e.Detail += fmt.Sprintf(" It was sent %d times.", t.sent)
	}
	return nil, e
}

// sleep waits for d. It returns false if the call was canceled.
func sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !ended(ctx, stop)
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
