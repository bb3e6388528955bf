package execution

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/cache"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Runner runs an admitted call and returns its result. The call must not be changed while
// it runs. The error is a *schema.Error that names the call.
type Runner interface {
	Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error)
}

// Plan is what is known of a call besides the call itself. The zero Plan is of a call of
// which nothing more is known.
type Plan struct {
	// Cache is how long the result may be kept; nil: it is not kept.
	Cache *risk.Cache
	// Record has the fields of the execution record that the call does not tell; nil: none.
	Record *records.Record
	// Judged is what the policy decided on a call that was just admitted.
	Judged records.Judged
}

// routerRunner is the innermost Runner.
type routerRunner struct{ router Router }

func (r routerRunner) Run(ctx context.Context, call *schema.Call, _ Plan) (*schema.Result, error) {
	return r.router.Do(ctx, call)
}

// quotaLayer holds calls to a quota while they run: enter has a call wait for it, or
// refuses the call.
type quotaLayer struct {
	next  Runner
	enter func(ctx context.Context, call *schema.Call) (quota.Pass, error)
}

func (l *quotaLayer) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	pass, err := l.enter(ctx, call)
	if err != nil {
		return nil, schema.AsError(err).WithCall(call.ID)
	}
	defer pass.Leave()
	return l.next.Run(ctx, call, plan)
}

// ofServer refuses a call whose server is at its limit. It is for calls that passed the
// quota of their principal before they were admitted.
func ofServer(q *quota.Quota) func(context.Context, *schema.Call) (quota.Pass, error) {
	return func(ctx context.Context, call *schema.Call) (quota.Pass, error) { return q.Serve(ctx, call.Server) }
}

// ofBoth has a call wait until neither its principal nor its server is at its limit.
func ofBoth(q *quota.Quota) func(context.Context, *schema.Call) (quota.Pass, error) {
	return func(ctx context.Context, call *schema.Call) (quota.Pass, error) {
		return q.Wait(ctx, &call.Principal, call.Server, call.Bulk)
	}
}

// cacheLayer answers calls from the cache where their results may be kept.
type cacheLayer struct {
	next  Runner
	cache *cache.Cache
	// personal says that calls of a server run with the credential of the person behind them:
	// their results are nobody else's, and end with the credential. Nil: none do.
	personal func(schema.ServerID) bool
}

func (l *cacheLayer) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	// Progress belongs to one run and one caller, and a call that may not be repeated has
	// a result of its own each time.
	if plan.Cache == nil || !call.Safe || call.Progress != nil || call.Hear != nil || l.personal != nil && l.personal(call.Server) {
		return l.next.Run(ctx, call, plan)
	}
	return l.cache.Do(ctx, call, *plan.Cache, func(ctx context.Context) (*schema.Result, error) { return l.next.Run(ctx, call, plan) })
}

// recordLayer keeps the execution record of each run.
type recordLayer struct {
	next Runner
	log  log
}

func (l *recordLayer) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	entry := l.log.begin(call, plan.Record, &plan.Judged)
	res, err := l.next.Run(ctx, call, plan)
	entry.End(records.Outcome{Result: res, Err: err, Attempt: attempt(plan.Record, res, err)})
	return res, err
}

// attempt is the number of the last attempt at a call that a rule repeated, counted from the
// first one of known; 0 where no rule counted.
func attempt(known *records.Record, res *schema.Result, err error) int {
	sent := 0
	if err != nil {
		sent = schema.AsError(err).Attempts
	} else if res != nil {
		sent = res.Attempts
	}
	if known == nil || sent == 0 {
		return sent
	}
	return max(known.Attempt, 1) + sent - 1
}

// metricsLayer counts each run.
type metricsLayer struct {
	next  Runner
	meter meter
}

func (l *metricsLayer) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	began := time.Now()
	l.meter.start()
	res, err := l.next.Run(ctx, call, plan)
	l.meter.end(call, res, err, began)
	return res, err
}

// log writes execution records. Without a recorder it does nothing.
type log struct {
	recorder *records.Recorder
	// traced is whether there are traces. Without them a call may carry the trace context of
	// its caller, which has no span of this process.
	traced bool
}

// recordOf is the execution record of a call, in addition to the fields of known, and to
// what the policy decided where known does not say that.
func (l log) recordOf(call *schema.Call, known *records.Record, judged *records.Judged) records.Record {
	var rec records.Record
	if known != nil {
		rec = *known
	}
	if rec.Decision == "" {
		rec.Judged = *judged
	}
	if rec.ID == "" {
		rec.ID = call.ID
	}
	rec.Principal, rec.Owner, rec.Server, rec.Tool, rec.Method = call.Principal.Name, call.Principal.Owner, call.Server, call.Tool, call.Method
	rec.Durable, rec.Tenant, rec.ReplayOf = rec.Durable || call.Durable, call.Principal.Tenant.Stored(), call.ReplayOf
	if rec.Decision != "" {
		rec.Groups = records.JoinGroups(call.Principal.Groups)
	}
	if l.traced {
		rec.Trace = telemetry.SampledID(call.Trace)
	}
	return rec
}

// begin records that a call runs. The argument bytes do not change any more, so their
// digest may be made later. The entry may be nil, and is ended all the same.
func (l log) begin(call *schema.Call, known *records.Record, judged *records.Judged) *records.Call {
	if l.recorder == nil {
		return nil
	}
	rec := l.recordOf(call, known, judged)
	return l.recorder.BeginWith(&rec, call.Arguments, true)
}

// refused records a call that never ran. Names that callers made up are not kept.
func (l log) refused(call *schema.Call, known *records.Record, judged *records.Judged, err error) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, judged)
	if schema.KindOf(err) == schema.KindNotFound {
		rec.Server, rec.Tool = "", ""
	}
	l.recorder.Begin(&rec).End(records.Outcome{Err: err})
}

// held records a call that waits for an approval.
func (l log) held(call *schema.Call, known *records.Record, judged *records.Judged, held *approval.Held) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, judged)
	rec.State, rec.Approval = schema.StateHeld, held.Approval.ID
	l.recorder.Add(&rec)
}

// meter counts calls.
type meter struct{ metrics *telemetry.Metrics }

func (m meter) start() { m.metrics.CallStarted() }

func (m meter) deferred(call *schema.Call, state string) {
	m.metrics.CallDeferred(string(call.Server), state)
}

// end counts a call that has ended. Names that callers made up do not become labels.
func (m meter) end(call *schema.Call, res *schema.Result, err error, began time.Time) {
	server, tool := call.Server, call.Tool
	if tool == "" {
		tool = call.Method
	}
	if schema.KindOf(err) == schema.KindNotFound {
		server, tool = "unknown", "unknown"
	}
	m.metrics.CallEnded(string(server), tool, label(res, err), time.Since(began))
}

// label is the value of the metrics' outcome label.
func label(res *schema.Result, err error) string {
	switch {
	case err != nil && schema.AsError(err).CancelRequested:
		return "cancel-requested" // its caller wanted it, so nobody is to be alarmed
	case err != nil:
		return string(schema.KindOf(err))
	case res.ToolError:
		return "tool-error"
	}
	return "ok"
}
