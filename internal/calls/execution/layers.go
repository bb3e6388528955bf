package execution

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/cache"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Runner runs an admitted call and returns its result. The call must not be changed while it runs.
// The error is a *schema.Error that names the call.
type Runner interface {
	Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error)
}

// Plan holds data about a call in addition to the call itself. The zero Plan is valid.
type Plan struct {
	// Cache is the caching rule for the result. If nil, the result is not cached.
	Cache *risk.Cache
	// Record has fields of the execution record that the call does not contain. It may be nil.
	Record *records.Record
	// Judged is the policy decision on a call that was just admitted.
	Judged records.PolicyDecision
	// Stored is set for a call of a journal. An attempt that fails is not recorded as the end of such a
	// call, because it can be repeated, here or by the next owner; see [Chain.Settled].
	Stored bool
}

// end records the end of an attempt.
func (p *Plan) end(entry *records.Call, o records.Outcome) {
	if o.Err != nil && p.Stored {
		o = records.Outcome{State: schema.StateQueued, Attempt: o.Attempt}
	}
	entry.End(o)
}

// routerRunner is the innermost Runner.
type routerRunner struct{ router Router }

func (r routerRunner) Run(ctx context.Context, call *schema.Call, _ Plan) (*schema.Result, error) {
	return r.router.Do(ctx, call)
}

// quotaLayer enforces a quota while calls run. enter waits for the quota, or refuses the call.
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

// ofServer returns an enter function that refuses a call if its server is at its limit. It is for
// calls that passed the quota of their principal before admission.
func ofServer(q *quota.Quota) func(context.Context, *schema.Call) (quota.Pass, error) {
	return func(ctx context.Context, call *schema.Call) (quota.Pass, error) { return q.Serve(ctx, call.Server) }
}

// enterPrincipalAndServer returns an enter function that waits until neither the principal nor the server is at its
// limit.
func enterPrincipalAndServer(q *quota.Quota) func(context.Context, *schema.Call) (quota.Pass, error) {
	return func(ctx context.Context, call *schema.Call) (quota.Pass, error) {
		return q.Wait(ctx, &call.Principal, call.Server, call.Bulk)
	}
}

// cacheLayer answers calls from the cache if their results may be cached.
type cacheLayer struct {
	next  Runner
	cache *cache.Cache
	// personal reports whether calls of a server use the credential of a person. Their results are
	// private to that person and become invalid with the credential, so they are not cached. If nil,
	// no server does.
	personal func(schema.ServerID) bool
}

func (l *cacheLayer) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	// Progress belongs to one run and one caller. A call that must not be repeated has a separate
	// result each time.
	if plan.Cache == nil || !call.Safe || call.Progress != nil || call.Hear != nil || l.personal != nil && l.personal(call.Server) {
		return l.next.Run(ctx, call, plan)
	}
	return l.cache.Do(ctx, call, *plan.Cache, func(ctx context.Context) (*schema.Result, error) { return l.next.Run(ctx, call, plan) })
}

// recordLayer writes the execution record of each run.
type recordLayer struct {
	next Runner
	log  log
}

func (l *recordLayer) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	entry := l.log.begin(call, plan.Record, &plan.Judged)
	res, err := l.next.Run(ctx, call, plan)
	plan.end(entry, records.Outcome{Result: res, Err: err, Attempt: attempt(plan.Record, res, err)})
	return res, err
}

// attempt returns the number of the last attempt at a call that a rule retried, counted from the first
// one of known, or 0 if no rule counted.
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

// log writes execution records. Without a recorder, it does nothing.
type log struct {
	recorder *records.Recorder
	// traced reports whether tracing is enabled. If it is not, a call may still carry the trace
	// context of its caller, which contains no span of this process.
	traced bool
}

// recordOf returns the execution record of a call, with the fields of known. judged supplies the
// policy decision if known does not contain one.
func (l log) recordOf(call *schema.Call, known *records.Record, judged *records.PolicyDecision) records.Record {
	var rec records.Record
	if known != nil {
		rec = *known
	}
	if rec.Decision == "" {
		rec.PolicyDecision = *judged
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

// begin records that a call runs. The argument bytes are immutable, so they may be hashed later. The
// returned entry may be nil, and End may be called on it anyway.
func (l log) begin(call *schema.Call, known *records.Record, judged *records.PolicyDecision) *records.Call {
	if l.recorder == nil {
		return nil
	}
	rec := l.recordOf(call, known, judged)
	return l.recorder.BeginWith(&rec, call.Arguments, true)
}

// refused records a call that never ran. It omits names that do not exist, because callers can make
// them up.
func (l log) refused(call *schema.Call, known *records.Record, judged *records.PolicyDecision, err error) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, judged)
	rec.Server, rec.Tool = admission.Names(call, err)
	l.recorder.Begin(&rec).End(records.Outcome{Err: err})
}

// settled records the outcome of a call of a journal that an earlier attempt did not report.
func (l log) settled(call *schema.Call, known *records.Record, res *schema.Result, err error) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, &records.PolicyDecision{})
	end := records.Outcome{State: rec.State, Result: res, Err: err}
	rec.State = "" // it has not ended yet
	l.recorder.BeginWith(&rec, call.Arguments, true).End(end)
}

// queued records that a call of a journal waits, or the state of known.
func (l log) queued(call *schema.Call, known *records.Record) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, &records.PolicyDecision{})
	l.recorder.Add(&rec)
}

// decided records a state that a person gave to a call.
func (l log) decided(call *schema.Call, known *records.Record) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, &records.PolicyDecision{})
	rec.Ended = time.Now().UnixNano()
	l.recorder.Add(&rec)
}

// held records a call that waits for an approval.
func (l log) held(call *schema.Call, known *records.Record, judged *records.PolicyDecision, held *approval.Held) {
	if l.recorder == nil {
		return
	}
	rec := l.recordOf(call, known, judged)
	rec.State, rec.Approval = schema.StateHeld, held.Approval.ID
	l.recorder.Add(&rec)
}

// unknownName is the label of a server or tool that does not exist.
const unknownName = "unknown"

// meter counts calls in the metrics.
type meter struct{ metrics *telemetry.Metrics }

func (m meter) start() { m.metrics.CallStarted() }

func (m meter) deferred(call *schema.Call, state string) {
	m.metrics.CallDeferred(string(call.Server), state)
}

// end counts a call that has ended. Names that do not exist do not become labels, because callers can
// make them up.
func (m meter) end(call *schema.Call, res *schema.Result, err error, began time.Time) {
	server, tool := admission.Names(call, err)
	if tool == "" && call.Tool == "" {
		tool = call.Method
	}
	if server == "" {
		server, tool = unknownName, unknownName
	} else if tool == "" {
		tool = unknownName
	}
	m.metrics.CallEnded(string(server), tool, label(res, err), time.Since(began))
}

// label returns the value of the outcome label.
func label(res *schema.Result, err error) string {
	switch {
	case err != nil && schema.AsError(err).CancelRequested:
		return "cancel-requested" // requested by the caller, so it must not trigger alerts
	case err != nil:
		return string(schema.KindOf(err))
	case res.ToolError:
		return "tool-error"
	}
	return "ok"
}
