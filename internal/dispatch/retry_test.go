package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// rule repeats a call up to three times after every kind of failure.
func rule() *schema.Retry {
	return &schema.Retry{Attempts: 3, Backoff: 100 * time.Millisecond, MaxBackoff: time.Second, On: schema.RetryKinds()}
}

// answered is the end of a scripted attempt, after a time.
type answered struct {
	takes time.Duration
	res   *schema.Result
	err   *schema.Error
	next  next
}

var (
	works       = answered{res: &schema.Result{Body: []byte(`{"content":[]}`)}}
	toolFails   = answered{res: &schema.Result{Body: []byte(`{"content":[],"isError":true}`), ToolError: true}}
	isFull      = answered{err: &schema.Error{Kind: schema.KindUnavailable, Detail: "It is full."}, next: tryLater}
	isLost      = answered{err: &schema.Error{Kind: schema.KindOutcomeUnknown, Detail: "It was lost."}, next: tryAny}
	isBroken    = answered{err: &schema.Error{Kind: schema.KindOutcomeUnknown, Detail: "The connection broke."}}
	refuses     = answered{err: &schema.Error{Kind: schema.KindProtocol, Detail: "It refused."}}
	limits      = answered{err: &schema.Error{Kind: schema.KindServerFailed, RateLimited: true, RetryAfter: 3 * time.Second}, next: tryOther}
	isWrong     = answered{err: &schema.Error{Kind: schema.KindForbidden, Detail: "It is not allowed."}}
	isSilent    = answered{takes: -1, err: &schema.Error{Kind: schema.KindOutcomeUnknown, Detail: "No answer came."}}
	guardsItOff = answered{err: &schema.Error{Kind: schema.KindDisabled, Detail: "It was switched off."}, next: tryStopped}
)

func (a answered) http(status int, after string) answered {
	a.res = &schema.Result{ToolError: true, Body: fmt.Appendf(nil, `{"content":[],"isError":true,"_meta":{"callyard/http":{"status":%d,"retry-after":%q}}}`, status, after)}
	return a
}

// tried is the outcome of a script of attempts.
type tried struct {
	sent    int
	took    time.Duration
	budgets []time.Duration
	res     *schema.Result
	err     *schema.Error
}

// try runs a call against a script of attempts. The last one is repeated.
func try(t *testing.T, ctx context.Context, stop chan struct{}, c *schema.Call, script ...answered) (got tried) { //nolint:revive // the test comes first
	t.Helper()
	r := &Router{log: slog.New(slog.DiscardHandler), limits: Options{Metrics: telemetry.NewMetrics()}}
	r.limits.fill()
	tr := trial{router: r, call: c, rule: RetryRule(c)}
	began := time.Now()
	res, err := tr.run(ctx, stop, func(n int) (*schema.Result, next, error) {
		a := script[min(n, len(script))-1]
		if a.next != tryLater {
			one := tr.begin()
			got.sent++
			got.budgets = append(got.budgets, one.Timeout)
			if a.takes < 0 {
				a.takes = one.Timeout
			}
		}
		time.Sleep(a.takes)
		if a.err != nil {
			e := *a.err
			return nil, a.next, &e
		}
		one := *a.res
		return &one, a.next, nil
	})
	got.took, got.res = time.Since(began), res
	if err != nil {
		got.err = schema.AsError(err)
	}
	return got
}

func TestRetryRuleRetriesSafeCallsAfterListedFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fails answered
		kind  schema.RetryKind
	}{
		"no lane":             {isFull, schema.RetryUnavailable},
		"not started":         {answered{err: isFull.err}, schema.RetryUnavailable},
		"connection broke":    {isBroken, schema.RetryUnknown},
		"worker lost":         {isLost, schema.RetryUnknown},
		"no answer in time":   {isSilent, schema.RetryTimeout},
		"refused by too many": {limits, schema.RetryRateLimited},
		"JSON-RPC error":      {refuses, schema.RetryProtocol},
		"tool error":          {toolFails, schema.RetryToolError},
		"HTTP 429":            {answered{}.http(429, "2"), schema.RetryRateLimited},
		"HTTP 503":            {answered{}.http(503, ""), schema.RetryUnavailable},
		"HTTP 504":            {answered{}.http(504, ""), schema.RetryTimeout},
		"HTTP 404":            {answered{}.http(404, ""), schema.RetryToolError},
	} {
		synctest.Test(t, func(t *testing.T) {
			one := call(true)
			one.Retry = rule()
			one.Retry.AttemptTimeout = time.Second
			one.Retry.On = []schema.RetryKind{c.kind}
			got := try(t, t.Context(), nil, one, c.fails, works)
			if got.err != nil || got.res.ToolError || c.fails.next != tryLater && (got.sent != 2 || got.res.Attempts != 2) {
				t.Errorf("%s: sent %d times, %+v, %v", name, got.sent, got.res, got.err)
			}
			// A call leaves a lost worker at once, with or without a rule.
			if one.Retry.On = []schema.RetryKind{"none"}; c.fails.next == tryAny {
				return
			}
			if got := try(t, t.Context(), nil, one, c.fails, works); c.fails.next != tryOther && (got.err == nil && !got.res.ToolError || got.sent > 1) {
				t.Errorf("%s without its kind in the rule: sent %d times, %+v, %v", name, got.sent, got.res, got.err)
			}
		})
	}
}

// This test fails without the check in repeatable.
func TestRetryRuleNeverRetriesUnsafeOrApprovedCalls(t *testing.T) {
	for _, fails := range []answered{toolFails, isBroken, refuses, isSilent, {err: isFull.err}, answered{}.http(429, "1")} {
		synctest.Test(t, func(t *testing.T) {
			unsafe, approved := call(false), call(true)
			approved.Approval = "appr_x"
			for _, c := range []*schema.Call{unsafe, approved} {
				c.Retry = rule()
				c.Retry.AttemptTimeout = time.Second
				if got := try(t, t.Context(), nil, c, fails, works); got.sent != 1 || got.took != max(fails.takes, 0) && got.took != c.Timeout {
					t.Errorf("safe %v, approval %q, after %+v: sent %d times in %v", c.Safe, c.Approval, fails, got.sent, got.took)
				}
			}
		})
	}
}

func TestRetryBackoffAndAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(true)
		c.Retry = rule()
		c.Retry.Attempts, c.Retry.Backoff, c.Retry.MaxBackoff = 5, 100*time.Millisecond, 250*time.Millisecond
		got := try(t, t.Context(), nil, c, refuses)
		if got.sent != 5 || got.err.Kind != schema.KindProtocol || got.err.Attempts != 5 || !strings.HasSuffix(got.err.Detail, " It was sent 5 times.") || got.err.CallID != "call_x" {
			t.Errorf("%d, %+v", got.sent, got.err)
		}
		if most := (100 + 200 + 250 + 250) * time.Millisecond; got.took > most || got.took < most/2 {
			t.Errorf("its pauses were %v", got.took)
		}
	})
}

func TestRetryWaitsAsLongAsTheServerRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(true)
		c.Retry, c.Timeout = rule(), 10*time.Second
		for name, x := range map[string]struct {
			fails answered
			wait  time.Duration
		}{
			"error":   {limits, 3 * time.Second},
			"seconds": {answered{}.http(429, "4"), 4 * time.Second},
			"date":    {answered{}, 5 * time.Second},
		} {
			if name == "date" {
				x.fails = answered{}.http(503, time.Now().Add(5*time.Second).UTC().Format(http.TimeFormat))
			}
			if got := try(t, t.Context(), nil, c, x.fails, works); got.err != nil || got.sent != 2 || got.took != x.wait {
				t.Errorf("%s: sent %d times in %v, %v", name, got.sent, got.took, got.err)
			}
		}
		// The delay is longer than the call's timeout, so the call ends at once.
		if got := try(t, t.Context(), nil, c, answered{}.http(429, "60"), works); got.sent != 1 || got.took != 0 || !got.res.ToolError {
			t.Errorf("sent %d times in %v", got.sent, got.took)
		}
	})
}

func TestAllAttemptsShareTheTimeoutOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(true)
		c.Retry, c.Timeout = rule(), 10*time.Second
		c.Retry.Attempts, c.Retry.AttemptTimeout = 10, 4*time.Second
		got := try(t, t.Context(), nil, c, isSilent)
		if got.sent != 3 || got.took > c.Timeout || got.err.Kind != schema.KindOutcomeUnknown || got.budgets[0] != 4*time.Second || got.budgets[2] >= 2*time.Second {
			t.Errorf("sent %d times in %v with %v: %v", got.sent, got.took, got.budgets, got.err)
		}
		// The context of the caller may end earlier.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := try(t, ctx, nil, c, limits, works); got.sent != 1 || got.took != 0 {
			t.Errorf("sent %d times in %v", got.sent, got.took)
		}
		// Without a limit for each attempt, the first may take all the time.
		c.Retry.AttemptTimeout = 0
		if got := try(t, t.Context(), nil, c, isSilent); got.sent != 1 || got.took != c.Timeout {
			t.Errorf("sent %d times in %v", got.sent, got.took)
		}
	})
}

func TestAttemptsWithoutARuleShareTheTimeoutOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(true)
		c.Timeout = 10 * time.Second
		lost, busy, hop := isLost, isFull, isFull
		lost.takes, busy.takes, busy.next, hop.next = 4*time.Second, 10*time.Second, tryOther, tryOther
		got := try(t, t.Context(), nil, c, lost)
		if want := []time.Duration{10 * time.Second, 6 * time.Second, 2 * time.Second}; got.err.Kind != schema.KindOutcomeUnknown || !slices.Equal(got.budgets, want) {
			t.Errorf("sent with %v: %v", got.budgets, got.err)
		}
		if got := try(t, t.Context(), nil, c, busy, works); got.sent != 1 || got.err.Kind != schema.KindUnavailable {
			t.Errorf("a call that waited at a worker for all of its time was sent %d times: %v", got.sent, got.err)
		}
		if got := try(t, t.Context(), nil, c, hop, hop, works); got.err != nil || got.budgets[2] != c.Timeout {
			t.Errorf("refusals that took no time cost some: %v, %v", got.budgets, got.err)
		}
	})
}

func TestCancelDuringBackoffEndsWithTheLastOutcome(t *testing.T) {
	for name, x := range map[string]struct {
		fails answered
		kind  schema.Kind
	}{"did not start": {isFull, schema.KindCanceled}, "may have run": {isBroken, schema.KindOutcomeUnknown}, "refused": {refuses, schema.KindProtocol}, "tool error": {toolFails, ""}} {
		synctest.Test(t, func(t *testing.T) {
			c := call(true)
			c.Retry = rule()
			c.Retry.Backoff, c.Retry.MaxBackoff = 4*time.Second, 4*time.Second
			stop := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(stop) })
			got := try(t, t.Context(), stop, c, x.fails, works)
			if got.took != time.Second || got.sent > 1 || x.kind != "" && (got.err == nil || got.err.Kind != x.kind) || x.kind == "" && !got.res.ToolError {
				t.Errorf("%s: sent %d times in %v, %+v, %v", name, got.sent, got.took, got.res, got.err)
			}
			if x.kind == schema.KindOutcomeUnknown && !got.err.CancelRequested {
				t.Errorf("%+v", got.err)
			}
		})
	}
}

func TestToolAnswerIsKeptIfLaterAttemptNeverStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(true)
		c.Retry = rule()
		if got := try(t, t.Context(), nil, c, toolFails, isFull); got.err != nil || !got.res.ToolError || got.res.Attempts != 1 {
			t.Errorf("%+v, %v", got.res, got.err)
		}
		if got := try(t, t.Context(), nil, c, refuses, guardsItOff); got.err == nil || got.err.Kind != schema.KindProtocol {
			t.Errorf("%+v, %v", got.res, got.err)
		}
		if got := try(t, t.Context(), nil, c, toolFails, isBroken, isFull); got.err == nil || !errors.Is(got.err, UncertainErrorOf(got.err)) || UncertainErrorOf(got.err) == nil {
			t.Errorf("a later attempt that may have run is forgotten: %+v, %v", got.res, got.err)
		}
		if got := try(t, t.Context(), nil, c, isWrong, works); got.sent != 1 || got.err.Kind != schema.KindForbidden {
			t.Errorf("what no rule can name was repeated: %+v", got)
		}
	})
}

func TestRetriesOverTheBusAreCounted(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	r.limits.Metrics = telemetry.NewMetrics()
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		switch f.Attempt {
		case 1:
			w.l.Result(to, f.Seq, &schema.Result{Body: []byte(`{"isError":true}`), ToolError: true})
		case 2:
			e := schema.Errorf(schema.KindServerFailed, "too many")
			e.RateLimited = true
			w.l.Error(to, f.Seq, e, false, 0)
		default:
			echo(w, f, to)
		}
	})
	c := call(true)
	c.Retry = rule()
	c.Retry.Backoff = time.Millisecond
	res, err := r.Do(t.Context(), c)
	if err != nil || res.Attempts != 3 || w.calls.Load() != 3 || string(res.Body) != string(c.Arguments) {
		t.Errorf("%+v, %v", res, err)
	}
	idle(t, r)
	page := scrape(t, r.limits.Metrics)
	for _, line := range []string{`callyard_call_retries_total{kind="tool-error",server="s"} 1`, `callyard_call_retries_total{kind="rate-limited",server="s"} 1`} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s", line)
		}
	}
	unsafe := call(false)
	unsafe.Retry = c.Retry
	if res, err := r.Do(t.Context(), unsafe); err != nil || !res.ToolError || w.calls.Load() != 4 {
		t.Errorf("%+v, %v, sent %d times", res, err, w.calls.Load()-3)
	}
}

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

func FuzzHTTPAnswerGivesKindAndBoundedWait(f *testing.F) {
	f.Add(`{"_meta":{"callyard/http":{"status":429,"retry-after":"3"}}}`)
	f.Add(`{"_meta":{"callyard/http":{"status":"429","retry-after":-3}}}`)
	f.Add(`{"_meta":{"callyard/http":{"status":503,"retry-after":"Fri, 31 Dec 9999 23:59:59 GMT"}}}`)
	f.Add(`{"_meta":{"callyard/http":7}`)
	f.Fuzz(func(t *testing.T, body string) {
		a := httpAnswerOf(&schema.Result{Body: []byte(body)})
		if wait := backoff.RetryAfter(a.After, time.Now(), longestRetryAfter); wait < 0 || wait > longestRetryAfter {
			t.Errorf("%q: %v", body, wait)
		}
		if kind := kindOfStatus(a.Status); !slices.Contains(schema.RetryKinds(), kind) {
			t.Errorf("%q: %q", body, kind)
		}
	})
}
