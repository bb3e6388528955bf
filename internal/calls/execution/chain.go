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

// Options says what a chain is made of. Gate, Router and Metrics are required.
type Options struct {
	Gate    *admission.Gate
	Router  Router
	Metrics *telemetry.Metrics
	// Desk holds calls that need an approval; without it they are refused.
	Desk *approval.Desk
	// Records is the execution log; without it no call leaves a record.
	Records *records.Recorder
	// Quota holds principals and servers to their limits; without it there are none.
	Quota *quota.Quota
	// Cache keeps results where the policy says so; without it none is kept.
	Cache *cache.Cache
	// Personal says which servers are called with credentials of people; nil: none are.
	Personal func(schema.ServerID) bool
	// Traces makes a span of each admission; nil: there are none.
	Traces *telemetry.Traces
}

// Chain runs calls. It is safe for concurrent use.
type Chain struct {
	admit    admitter
	quota    *quota.Quota
	meter    meter
	log      log
	router   Router
	fresh    Runner // calls that were just admitted
	accepted Runner // calls that were admitted before
	inFlight atomic.Int64
}

// New assembles a chain.
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
		c.accepted = &quotaLayer{c.accepted, ofBoth(o.Quota)}
	}
	return c
}

// Outcome is what came of a submitted call. Exactly one of its fields is set.
type Outcome struct {
	// Result is the answer of the tool.
	Result *schema.Result
	// Held says that the call waits for an approval, or has one already.
	Held *approval.Held
	// Durable is the verdict on a call that the policy wants stored before it runs;
	// nothing was run.
	Durable *admission.Verdict
}

// Submit admits the call and runs it, unless it is held or must be stored first. It fills
// in the fields that the caller left open: the id, the default timeout, and the properties
// of the tool. The error is a *schema.Error that names the call.
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

// Run runs a call that was admitted before: it was held and has been approved, or it is
// stored in a journal. Where Submit refuses a call because of a quota, Run waits: a bulk
// call until ctx ends. record, which may be nil, has the fields of the execution record
// that the call does not tell. The error is a *schema.Error that names the call.
func (c *Chain) Run(ctx context.Context, call *schema.Call, record *records.Record) (*schema.Result, error) {
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	return c.accepted.Run(ctx, call, Plan{Record: record})
}

// Start is Run for one of many calls that nobody waits for: it makes one attempt and
// needs no goroutine. It takes only calls that no quota can delay and no rule repeats; for
// others it does nothing and returns false. The Ended of a is called once the attempt is counted.
func (c *Chain) Start(a *dispatch.AsyncCall, record *records.Record) bool {
	call := a.Call
	if c.quota.Limits(&call.Principal, call.Server) || dispatch.RetryRule(call) != nil {
		return false
	}
	c.inFlight.Add(1)
	began := time.Now()
	c.meter.start()
	entry := c.log.begin(call, record, &records.Judged{})
	ended := a.Ended
	a.Ended = func(a *dispatch.AsyncCall, e dispatch.End) {
		entry.End(records.Outcome{Result: e.Result, Err: e.Err})
		c.meter.end(call, e.Result, e.Err, began)
		ended(a, e)
		c.inFlight.Add(-1)
	}
	c.router.Place(a)
	return true
}

// Refused counts and records a call that is stored, or was to be stored, and that the gate refused:
// it returned the verdict with err. record is that of Run.
func (c *Chain) Refused(call *schema.Call, record *records.Record, verdict *admission.Verdict, err error) {
	c.meter.start()
	c.meter.end(call, nil, err, time.Now())
	judged := JudgedOf(verdict, err)
	c.log.refused(call, record, &judged, err)
}

// Held counts and records a call that is held, and that did not go through Submit. record is that
// of Run.
func (c *Chain) Held(call *schema.Call, record *records.Record, verdict *admission.Verdict, held *approval.Held) {
	c.meter.start()
	c.meter.deferred(call, "held")
	judged := JudgedOf(verdict, nil)
	c.log.held(call, record, &judged, held)
}

// JudgedOf is what the execution log says of a verdict; err is the error that the gate returned
// with it.
func JudgedOf(verdict *admission.Verdict, err error) (j records.Judged) {
	j.Decision, j.Rule = verdict.Decision(err)
	return j
}

// InFlight returns the number of calls that run or wait here.
func (c *Chain) InFlight() int { return int(c.inFlight.Load()) }
