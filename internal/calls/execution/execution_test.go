package execution

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/cache"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errBusy = schema.Errorf(schema.KindUnavailable, "No worker is there.")
	quiet   = slog.New(slog.DiscardHandler)
)

// inner is a Runner and a Router that a test can inspect.
type inner struct {
	runs    int
	plan    Plan
	err     error
	failing bool // the tool returns an error
	sent    int  // number of attempts, as counted by a retry rule
	placed  *dispatch.AsyncCall
	during  func()
}

func (i *inner) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	i.plan = plan
	return i.Do(ctx, call)
}

func (i *inner) Do(context.Context, *schema.Call) (*schema.Result, error) {
	i.runs++
	if i.during != nil {
		i.during()
	}
	if i.err != nil {
		return nil, i.err
	}
	return &schema.Result{Body: []byte(`{}`), ToolError: i.failing, Attempts: i.sent}, nil
}

func (i *inner) Place(a *dispatch.AsyncCall) { i.placed = a }

// fixedVerdict is an admission with a fixed verdict.
type fixedVerdict struct {
	admitted
	err error
}

func (a fixedVerdict) admit(context.Context, *schema.Call) (admitted, error) {
	return a.admitted, a.err
}

func call() *schema.Call {
	return &schema.Call{ID: schema.NewCallID(), Server: "bank", Tool: "pay", Safe: true, Arguments: []byte(`{"amount":1}`), Principal: schema.Principal{Name: "ada"}}
}

func limits(t *testing.T, l settings.Limits) *quota.Quota {
	t.Helper()
	q := quota.Open(quota.Options{Rules: l, Log: quiet})
	t.Cleanup(q.Close)
	return q
}

// oneAtATime is a quota of one call in flight for the server bank.
func oneAtATime(t *testing.T) *quota.Quota {
	t.Helper()
	return limits(t, settings.Limits{Servers: []settings.ServerRule{{Servers: []string{"bank"}, InFlight: 1}}})
}

func recorder(t *testing.T) *records.Recorder {
	t.Helper()
	r, err := records.Open(t.Context(), bustest.Start(t).Connect(t, "frontdoor"), records.Options{FrontDoor: "frontdoor-1", Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func recorded(t *testing.T, r *records.Recorder, id schema.CallID) *records.Record {
	t.Helper()
	rec, err := r.Get(t.Context(), schema.AllTenants(), id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// counted reports whether the metrics have a line with all the words.
func counted(m *telemetry.Metrics, words ...string) bool {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(w.Body)
	for line := range strings.Lines(string(text)) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}

func TestServerQuotaRefusesExcessCallsAndReleasesSlots(t *testing.T) {
	next := &inner{}
	l := &quotaLayer{next, ofServer(oneAtATime(t))}
	next.during = func() {
		next.during = nil
		c := call()
		_, err := l.Run(t.Context(), c, Plan{})
		if e := schema.AsError(err); e == nil || e.Kind != schema.KindUnavailable || e.CallID != c.ID {
			t.Errorf("a second call: %+v", e)
		}
	}
	for range 2 {
		if _, err := l.Run(t.Context(), call(), Plan{}); err != nil {
			t.Fatal(err)
		}
	}
	if next.runs != 2 {
		t.Errorf("%d calls ran", next.runs)
	}
}

func TestTheQuotaLayerWaitsAndABulkCallEndsWithItsContext(t *testing.T) {
	next := &inner{}
	l := &quotaLayer{next, enterPrincipalAndServer(oneAtATime(t))}
	next.during = func() {
		next.during = nil
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := call()
		c.Bulk = true
		if _, err := l.Run(ctx, c, Plan{}); schema.KindOf(err) != schema.KindCanceled || schema.AsError(err).CallID != c.ID {
			t.Errorf("a bulk call whose context has ended: %v", err)
		}
	}
	if _, err := l.Run(t.Context(), call(), Plan{}); err != nil {
		t.Fatal(err)
	}
	entered := make(chan struct{})
	leave := make(chan struct{})
	next.during = func() { close(entered); <-leave }
	first := make(chan error, 1)
	go func() {
		_, err := l.Run(t.Context(), call(), Plan{})
		first <- err
	}()
	<-entered
	next.during = nil
	second := make(chan error, 1)
	go func() {
		_, err := l.Run(t.Context(), call(), Plan{})
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestCacheLayerStoresOnlyCacheableResults(t *testing.T) {
	c := cache.Open(cache.Options{Log: quiet})
	t.Cleanup(c.Close)
	minute := Plan{Cache: &risk.Cache{TTL: time.Minute}}
	for name, test := range map[string]struct {
		plan   Plan
		change func(*schema.Call)
		runs   int
	}{
		"kept":          {minute, func(*schema.Call) {}, 1},
		"no rule":       {Plan{}, func(*schema.Call) {}, 2},
		"not safe":      {minute, func(c *schema.Call) { c.Safe = false }, 2},
		"with progress": {minute, func(c *schema.Call) { c.Progress = func([]byte) {} }, 2},
		"with a listener": {minute, func(c *schema.Call) {
			c.Hear = func([]byte, func([]byte)) {}
		}, 2},
		"with the credential of a person": {minute, func(c *schema.Call) { c.Server = "personal" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			next := &inner{}
			l := &cacheLayer{next, c, func(server schema.ServerID) bool { return server == "personal" }}
			for range 2 {
				one := call()
				one.Tool = name // a separate cache entry
				test.change(one)
				if _, err := l.Run(t.Context(), one, test.plan); err != nil {
					t.Fatal(err)
				}
			}
			if next.runs != test.runs {
				t.Errorf("the tool ran %d times, want %d", next.runs, test.runs)
			}
		})
	}
}

func TestTheRecordLayerWritesOneRecordForEachRun(t *testing.T) {
	r := recorder(t)
	next := &inner{}
	l := &recordLayer{next, log{recorder: r}}
	good, bad, known := call(), call(), call()
	known.Method = schema.MethodReadResource
	if _, err := l.Run(t.Context(), good, Plan{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Run(t.Context(), known, Plan{Record: &records.Record{Approval: "approval_1"}}); err != nil {
		t.Fatal(err)
	}
	next.err = errBusy
	if _, err := l.Run(t.Context(), bad, Plan{}); err == nil {
		t.Fatal("the error was lost")
	}
	if rec := recorded(t, r, good.ID); rec.State != schema.StateSucceeded || rec.Principal != "ada" || rec.Server != "bank" || rec.Tool != "pay" || rec.ArgumentBytes != int64(len(good.Arguments)) {
		t.Errorf("%+v", rec)
	}
	if rec := recorded(t, r, bad.ID); rec.State != schema.StateFailed || rec.Error != schema.KindUnavailable {
		t.Errorf("%+v", rec)
	}
	if rec := recorded(t, r, known.ID); rec.Approval != "approval_1" || rec.Method != schema.MethodReadResource {
		t.Errorf("%+v", rec)
	}
}

func TestRecordHasTheTraceIDIfTraced(t *testing.T) {
	r := recorder(t)
	sampled := func(flags string) *schema.Call {
		c := call()
		c.Trace = schema.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-" + flags}
		return c
	}
	traced, unsampled, untraced, refused := sampled("01"), sampled("00"), sampled("01"), sampled("01")
	on, off := log{recorder: r, traced: true}, log{recorder: r}
	for c, l := range map[*schema.Call]log{traced: on, unsampled: on, untraced: off} {
		if _, err := (&recordLayer{&inner{}, l}).Run(t.Context(), c, Plan{Record: &records.Record{Batch: "batch_1"}}); err != nil {
			t.Fatal(err)
		}
	}
	on.refused(refused, nil, &records.PolicyDecision{}, errBusy)
	for id, want := range map[schema.CallID]string{traced.ID: "4bf92f3577b34da6a3ce929d0e0e4736", refused.ID: "4bf92f3577b34da6a3ce929d0e0e4736", unsampled.ID: "", untraced.ID: ""} {
		if rec := recorded(t, r, id); rec.Trace.String() != want {
			t.Errorf("the trace is %s, want %q", rec.Trace, want)
		}
	}
	if with, without := testing.AllocsPerRun(100, func() { on.recordOf(traced, nil, &records.PolicyDecision{}) }), testing.AllocsPerRun(100, func() { off.recordOf(traced, nil, &records.PolicyDecision{}) }); with != without {
		t.Errorf("%v allocations with traces, %v without", with, without)
	}
}

func TestARecordHasTheNumberOfAttemptsThatARuleMade(t *testing.T) {
	r := recorder(t)
	next := &inner{sent: 3}
	l := &recordLayer{next, log{recorder: r}}
	plain, stored, bad := call(), call(), call()
	if _, err := l.Run(t.Context(), plain, Plan{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Run(t.Context(), stored, Plan{Record: &records.Record{Attempt: 2}}); err != nil {
		t.Fatal(err)
	}
	next.err = &schema.Error{Kind: schema.KindProtocol, Attempts: 4}
	if _, err := l.Run(t.Context(), bad, Plan{}); err == nil {
		t.Fatal("the error was lost")
	}
	for id, want := range map[schema.CallID]int{plain.ID: 3, stored.ID: 4, bad.ID: 4} {
		if rec := recorded(t, r, id); rec.Attempt != want {
			t.Errorf("attempt %d, want %d: %+v", rec.Attempt, want, rec)
		}
	}
}

func TestRetryableCallIsNotStartedAsynchronously(t *testing.T) {
	next := &inner{}
	c, _ := chain(next, fixedVerdict{}, nil, nil)
	ruled := call()
	ruled.Safe, ruled.Retry = true, &schema.Retry{Attempts: 2}
	if c.Start(&dispatch.AsyncCall{Call: ruled}, Plan{}) || next.placed != nil {
		t.Error("it was started, and nobody would repeat it")
	}
	ruled.Safe = false // no retry rule applies
	if async := (&dispatch.AsyncCall{Call: ruled, Ended: func(*dispatch.AsyncCall, dispatch.End) {}}); !c.Start(async, Plan{}) {
		t.Error("it was not started")
	} else {
		async.Ended(async, dispatch.End{Result: &schema.Result{}})
	}
}

func TestTheMetricsLayerCountsEachEndOnce(t *testing.T) {
	m := telemetry.NewMetrics()
	next := &inner{}
	l := &metricsLayer{next, meter{m}}
	run := func(c *schema.Call) { _, _ = l.Run(t.Context(), c, Plan{}) }
	run(call())
	next.failing = true
	run(call())
	next.err = errBusy
	run(call())
	stopped := *errBusy
	stopped.CancelRequested = true
	next.err = &stopped
	run(call())
	next.err = schema.Errorf(schema.KindNotFound, "There is no such tool.")
	made := call()
	made.Tool = "made-up"
	run(made)
	for _, want := range []string{"ok", "tool-error", "unavailable", "cancel-requested"} {
		if !counted(m, `"bank"`, `"pay"`, `"`+want+`"`, " 1\n") {
			t.Errorf("%s is not counted once", want)
		}
	}
	if counted(m, "made-up") || !counted(m, `"unknown"`, `"not-found"`, " 1\n") {
		t.Error("a name that a caller made up is a label")
	}
}

// chain returns a chain around next with a fixed admission.
func chain(next *inner, a fixedVerdict, r *records.Recorder, q *quota.Quota) (*Chain, *telemetry.Metrics) {
	m := telemetry.NewMetrics()
	c := New(Options{Router: next, Metrics: m, Records: r, Quota: q})
	c.admit = a
	return c, m
}

func TestACallThatIsHeldStoredOrRefusedDoesNotRun(t *testing.T) {
	r := recorder(t)
	next := &inner{}
	held := call()
	c, m := chain(next, fixedVerdict{admitted: admitted{held: &approval.Held{Approval: &ledger.Approval{ID: "approval_1"}}}}, r, nil)
	if o, err := c.Submit(t.Context(), held); err != nil || o.Held == nil || o.Result != nil || o.Durable != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if rec := recorded(t, r, held.ID); rec.State != schema.StateHeld || rec.Approval != "approval_1" || !counted(m, `"bank"`, `"held"`, " 1\n") {
		t.Errorf("%+v", rec)
	}
	stored := call()
	c, m = chain(next, fixedVerdict{admitted: admitted{durable: &admission.Verdict{}}}, r, nil)
	if o, err := c.Submit(t.Context(), stored); err != nil || o.Durable == nil || o.Result != nil || o.Held != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := r.Get(t.Context(), schema.AllTenants(), stored.ID); schema.KindOf(err) != schema.KindNotFound || !counted(m, `"bank"`, `"stored"`, " 1\n") {
		t.Errorf("a call that is to be stored has a record: %v", err)
	}
	unknown := call()
	c, _ = chain(next, fixedVerdict{err: schema.Errorf(schema.KindNotFound, "There is no tool.")}, r, nil)
	if _, err := c.Submit(t.Context(), unknown); schema.KindOf(err) != schema.KindNotFound || schema.AsError(err).CallID != unknown.ID {
		t.Errorf("%v", err)
	}
	if rec := recorded(t, r, unknown.ID); rec.State != schema.StateFailed || rec.Server != "" || rec.Tool != "" {
		t.Errorf("%+v", rec)
	}
	if next.runs != 0 || c.InFlight() != 0 {
		t.Errorf("%d ran, %d in flight", next.runs, c.InFlight())
	}
}

func TestASubmittedCallGetsAnIDAndTheCacheRuleOfItsVerdict(t *testing.T) {
	next := &inner{}
	rule := &risk.Cache{TTL: time.Minute}
	c, m := chain(next, fixedVerdict{admitted: admitted{cache: rule}}, nil, nil)
	c.fresh = next
	one := call()
	one.ID = ""
	if o, err := c.Submit(t.Context(), one); err != nil || o.Result == nil || !strings.HasPrefix(string(one.ID), "call_") {
		t.Errorf("%+v, %v, %q", o, err, one.ID)
	}
	if next.plan.Cache != rule || !counted(m, `"pay"`, `"ok"`, " 1\n") {
		t.Errorf("%+v", next.plan)
	}
}

func TestAPrincipalOverItsQuotaIsRefusedBeforeAdmission(t *testing.T) {
	next := &inner{}
	q := limits(t, settings.Limits{Principals: []settings.PrincipalRule{{InFlight: 1}}})
	c, _ := chain(next, fixedVerdict{}, nil, q)
	next.during = func() {
		next.during = nil
		c.admit = fixedVerdict{err: schema.Errorf(schema.KindInternal, "It was asked.")}
		second := call()
		if _, err := c.Submit(t.Context(), second); schema.KindOf(err) != schema.KindQuota || schema.AsError(err).CallID != second.ID {
			t.Errorf("%v", err)
		}
		if c.InFlight() != 1 {
			t.Errorf("%d in flight", c.InFlight())
		}
	}
	if _, err := c.Submit(t.Context(), call()); err != nil {
		t.Fatal(err)
	}
	async := &dispatch.AsyncCall{Call: call()}
	if c.Start(async, Plan{}) || next.placed != nil {
		t.Error("an asynchronous call was started that a quota can delay")
	}
}

func TestAsynchronousCallIsCountedBeforeItsCallback(t *testing.T) {
	next := &inner{}
	r := recorder(t)
	c, m := chain(next, fixedVerdict{}, r, nil)
	told := false
	async := &dispatch.AsyncCall{Call: call(), Ended: func(*dispatch.AsyncCall, dispatch.End) {
		told = true
		if !counted(m, `"pay"`, `"ok"`, " 1\n") || c.InFlight() != 1 {
			t.Error("its owner was told too early")
		}
	}}
	if !c.Start(async, Plan{Record: &records.Record{Batch: "batch_1"}}) || next.placed != async {
		t.Fatal("it was not started")
	}
	async.Ended(async, dispatch.End{Result: &schema.Result{Body: []byte(`{}`)}})
	if rec := recorded(t, r, async.Call.ID); !told || c.InFlight() != 0 || rec.Batch != "batch_1" || rec.State != schema.StateSucceeded {
		t.Errorf("told %v, %d in flight, %+v", told, c.InFlight(), rec)
	}
}

func TestARunOfAnAcceptedCallIsCountedAndRecorded(t *testing.T) {
	next := &inner{}
	r := recorder(t)
	c, m := chain(next, fixedVerdict{err: schema.Errorf(schema.KindInternal, "It was asked again.")}, r, nil)
	one := call()
	if _, err := c.Run(t.Context(), one, Plan{Record: &records.Record{Approval: "approval_1"}}); err != nil {
		t.Fatal(err)
	}
	if rec := recorded(t, r, one.ID); rec.Approval != "approval_1" || rec.State != schema.StateSucceeded || !counted(m, `"pay"`, `"ok"`, " 1\n") {
		t.Errorf("%+v", rec)
	}
}
