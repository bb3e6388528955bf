package execution

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/cache"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Router sends calls to workers; see [dispatch.Router].
type Router interface {
	Do(ctx context.Context, call *schema.Call) (*schema.Result, error)
	Place(a *dispatch.AsyncCall)
}

// Options configures a chain. Gate, Router and Metrics are required.
type Options struct {
	Gate    *admission.Gate
	Router  Router
	Metrics *telemetry.Metrics
	// Desk holds calls that need an approval. If nil, they are refused.
	Desk *approval.Desk
	// Records is the store of call records. If nil, calls are not recorded.
	Records *records.Recorder
	// Quota enforces limits of principals and servers. If nil, there are none.
	Quota *quota.Quota
	// Cache caches results if the policy allows it. If nil, nothing is cached.
	Cache *cache.Cache
	// Personal reports whether a server is called with credentials of people. If nil, none is.
	Personal func(schema.ServerID) bool
	// Traces records a span for each admission. If nil, there are none.
	Traces *telemetry.Traces
}

// Chain runs calls. It is safe for concurrent use.
type Chain struct {
	admit    admitter
	quota    *quota.Quota
	meter    meter
	log      log
	router   Router
	fresh    Runner // for calls that were just admitted
	accepted Runner // for calls that were admitted earlier
	inFlight atomic.Int64
}

// New builds a chain.
func New(o Options) *Chain {
	c := &Chain{quota: o.Quota, meter: meter{o.Metrics}, log: log{o.Records, o.Traces != nil}, router: o.Router}
	c.admit = &holding{o.Gate, o.Quota, o.Desk}
	if o.Traces != nil {
		c.admit = &tracedAdmission{c.admit, o.Traces}
	}
	recorded := func(next Runner) Runner {
		if o.Records == nil {
			return next
		}
		return &recordLayer{next, c.log}
	}

	c.fresh = routerRunner{o.Router}
	if o.Quota != nil {
		c.fresh = &quotaLayer{c.fresh, ofServer(o.Quota)}
	}
	if o.Cache != nil {
		c.fresh = &cacheLayer{c.fresh, o.Cache, o.Personal}
	}
	c.fresh = recorded(c.fresh)

	c.accepted = &metricsLayer{recorded(routerRunner{o.Router}), c.meter}
	if o.Quota != nil {
		c.accepted = &quotaLayer{c.accepted, enterPrincipalAndServer(o.Quota)}
	}
	return c
}

// Outcome is the outcome of a submitted call. Exactly one of its fields is set.
type Outcome struct {
	// Result is the tool's result.
	Result *schema.Result
	// Held is set if the call waits for an approval, or already has one.
	Held *approval.Held
	// Durable is the verdict on a call that the policy requires to be stored before it runs. The
	// call has not run.
	Durable *admission.Verdict
}

// Submit admits the call and runs it, unless it is held or must be stored first. It sets the fields
// that the caller left empty: the id, the default timeout, and the tool properties. The error is a
// *schema.Error that names the call.
func (c *Chain) Submit(ctx context.Context, call *schema.Call) (Outcome, error) {
	if call.ID == "" {
		call.ID = schema.NewCallID()
	}
	began := time.Now()
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	pass, err := c.quota.Enter(ctx, &call.Principal)
	if err != nil {
		return Outcome{}, schema.AsError(err).WithCall(call.ID)
	}
	defer pass.Leave()
	c.meter.start()
	d, err := c.admit.admit(ctx, call)
	switch {
	case err != nil:
		c.meter.end(call, nil, err, began)
		c.log.refused(call, nil, &d.judged, err)
		return Outcome{}, schema.AsError(err).WithCall(call.ID)
	case d.held != nil:
		c.meter.deferred(call, "held")
		c.log.held(call, nil, &d.judged, d.held)
		return Outcome{Held: d.held}, nil
	case d.durable != nil:
		c.meter.deferred(call, "stored")
		return Outcome{Durable: d.durable}, nil
	}
	res, err := c.fresh.Run(ctx, call, Plan{Cache: d.cache, Judged: d.judged})
	c.meter.end(call, res, err, began)
	return Outcome{Result: res}, err
}

// Run runs a call that was admitted earlier: a held call that was approved, or a call from a
// journal. If a quota is exceeded, Submit refuses the call but Run waits; a bulk call waits until ctx
// ends. The error is a *schema.Error that names the call.
func (c *Chain) Run(ctx context.Context, call *schema.Call, plan Plan) (*schema.Result, error) {
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	return c.accepted.Run(ctx, call, plan)
}

// Start is the asynchronous form of Run for bulk calls: it makes one attempt and needs no goroutine.
// It accepts only calls that no quota can delay and no rule retries; for others it does nothing and
// returns false. a.Ended is called once the attempt is counted.
func (c *Chain) Start(a *dispatch.AsyncCall, plan Plan) bool {
	call := a.Call
	if c.quota.Limits(&call.Principal, call.Server) || dispatch.RetryRule(call) != nil {
		return false
	}
	c.inFlight.Add(1)
	began := time.Now()
	c.meter.start()
	entry := c.log.begin(call, plan.Record, &plan.Judged)
	ended := a.Ended
	a.Ended = func(a *dispatch.AsyncCall, e dispatch.End) {
		plan.end(entry, records.Outcome{Result: e.Result, Err: e.Err})
		c.meter.end(call, e.Result, e.Err, began)
		ended(a, e)
		c.inFlight.Add(-1)
	}
	c.router.Place(a)
	return true
}

// Refused counts and records a call that is stored, or was to be stored, and that the gate refused
// with the verdict and err. record has fields of the execution record that the call does not contain.
func (c *Chain) Refused(call *schema.Call, record *records.Record, verdict *admission.Verdict, err error) {
	c.meter.start()
	c.meter.end(call, nil, err, time.Now())
	judged := DecisionOf(verdict, err)
	c.log.refused(call, record, &judged, err)
}

// Settled records the outcome of a call of a journal that is not the result of an attempt: its last
// attempt failed, its worker reported it later, or nobody knows it. counted is set if the attempt is in
// the metrics of this front door. record is that of Refused, with the state if the outcome does not tell it.
func (c *Chain) Settled(call *schema.Call, record *records.Record, res *schema.Result, err error, counted bool) {
	if !counted {
		c.meter.start()
		c.meter.end(call, res, err, time.Now())
	}
	c.log.settled(call, record, res, err)
}

// Queued records that a call of a journal waits, or, if the record is Dropped, that the call has another
// record instead.
func (c *Chain) Queued(call *schema.Call, record *records.Record) { c.log.queued(call, record) }

// Decided records the state that a person gave to a call whose outcome was unknown, or that was given
// up. record is that of Refused, with this state.
func (c *Chain) Decided(call *schema.Call, record *records.Record) { c.log.decided(call, record) }

// Held counts and records a held call that did not pass through Submit. record is that of Refused.
func (c *Chain) Held(call *schema.Call, record *records.Record, verdict *admission.Verdict, held *approval.Held) {
	c.meter.start()
	c.meter.deferred(call, "held")
	judged := DecisionOf(verdict, nil)
	c.log.held(call, record, &judged, held)
}

// DecisionOf returns the policy decision of a verdict as recorded in the call record. err is the error
// that the gate returned with it.
func DecisionOf(verdict *admission.Verdict, err error) (j records.PolicyDecision) {
	j.Decision, j.Rule = verdict.Decision(err)
	return j
}

// InFlight returns the number of calls that run or wait in this chain.
func (c *Chain) InFlight() int { return int(c.inFlight.Load()) }
