// Package release runs held calls: those that a caller confirms at this front door, and approved
// ones, at the front door that claims them first.
//
// A call runs under one claim only. If the tool or the policy changed since the approval, the call
// does not run. The outcome is stored. The package does not decide who may approve; that is
// the responsibility of internal/approval.
package release

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	reconcileEvery = time.Second
	// recordTimeout bounds a round of reconciliation, the read of a call, and the time that Close
	// waits for the write of an outcome.
	recordTimeout = 20 * time.Second
	// recordAgain is the first pause between two attempts to read a call or write an outcome.
	// recordAgainMost is the longest one.
	recordAgain     = 250 * time.Millisecond
	recordAgainMost = 5 * time.Second
	// tryTimeout bounds one read or write of the ledger. A request to a failed NATS node is never
	// answered; the next attempt goes to another node.
	tryTimeout = 3 * time.Second
	// silenceMost is the longest silence of a front door after which its calls may still end. Front doors
	// are silent while NATS restarts or is frozen.
	silenceMost = 15 * time.Second
	// releasing limits the approved calls that this front door runs concurrently.
	releasing = 64
)

// Options configures a [Runner]. All fields but Records and Traces are required.
type Options struct {
	// FrontDoor is the id with which calls are claimed.
	FrontDoor string
	Gate      *admission.Gate
	Chain     *execution.Chain
	Desk      *approval.Desk
	Ledger    *ledger.Ledger
	Catalog   *catalog.Catalog
	// Records is the store of call records, for the outcome of held calls that did not run. It may be
	// nil.
	Records *records.Recorder
	Traces  *telemetry.Traces
	Log     *slog.Logger
}

// Runner runs the released calls of one front door. It is safe for concurrent use.
type Runner struct {
	o Options

	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	slots   chan struct{}
	unwatch func()
	wake    chan struct{}
	ends    ends
}

// Start starts a runner that claims approved calls until [Runner.Close].
func Start(o Options) *Runner {
	r := &Runner{o: o, slots: make(chan struct{}, releasing), wake: make(chan struct{}, 1), ends: ends{records: o.Records, wake: make(chan struct{}, 1)}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.unwatch = o.Ledger.Watch(schema.AllTenants(), func(a *ledger.Approval) {
		if neverRan(a) {
			r.ends.add(a.Clone())
		}
		if a.State == ledger.Approved {
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
	})
	r.ends.catchUp(o.Ledger)
	r.work.Go(r.reconcile)
	r.work.Go(func() { r.ends.run(r.ctx) })
	return r
}

// Close stops claiming calls and waits for running ones.
func (r *Runner) Close() {
	r.unwatch()
	r.stop()
	r.work.Wait()
}

// reconcile claims approved calls, and expires or gives up approvals that are due.
func (r *Runner) reconcile() {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	version := r.o.Gate.PolicyVersion()
	var renewing, reconciling warnings.Spacing
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		case <-tick.C:
			ctx, cancel := context.WithTimeout(r.ctx, recordTimeout)
			if now := r.o.Gate.PolicyVersion(); now != version {
				err := r.o.Desk.Renew(ctx)
				if err == nil {
					version = now
				}
				if r.ctx.Err() == nil {
					renewing.Report(r.o.Log, err, "assessing held calls under the changed policy failed; it is tried again", "held calls were assessed under the changed policy")
				}
			}
			if _, err := r.o.Desk.Reconcile(ctx, r.mayLive); r.ctx.Err() == nil {
				reconciling.Report(r.o.Log, err, "processing approvals failed; it is tried again", "approvals are processed again")
			}
			cancel()
		}
		r.claimAll()
	}
}

// mayLive reports whether the front door that runs a call may be alive.
func (r *Runner) mayLive(frontDoor string) bool {
	return catalog.RouterMayLive(r.o.Catalog, frontDoor, silenceMost)
}

// claimAll claims approved calls, the oldest first, and runs them. Calls that cannot be claimed do not keep
// others waiting.
func (r *Runner) claimAll() {
	oldest := ledger.Filter{States: []ledger.State{ledger.Approved}, OldestFirst: true, Limit: releasing}
	for after := (ledger.Cursor{}); ; {
		approved, next := r.o.Ledger.List(schema.AllTenants(), oldest, after)
		for _, a := range approved {
			select {
			case r.slots <- struct{}{}:
			default:
				return // left to the next tick or another front door
			}
			r.claim(a)
		}
		if after = next; after.IsZero() || r.ctx.Err() != nil {
			return
		}
	}
}

// claim claims an approved call, runs it, and releases its slot.
func (r *Runner) claim(a *ledger.Approval) {
	claimed, err := r.o.Desk.Claim(r.ctx, a.Binding.Tenant, a.ID, r.o.FrontDoor)
	if err != nil {
		<-r.slots
		return // claimed by another front door, or its tool is not known yet
	}
	r.work.Go(func() {
		defer func() { <-r.slots }()
		_, err := r.run(claimed, schema.Trace{}, nil)
		if err != nil {
			r.o.Log.Info("an approved call did not succeed", "call", claimed.CallID, "error", err)
		}
	})
}

// Run runs a call that this front door has claimed, and returns its result. If ctx ends, the error is
// of KindCanceled, but the call continues and its result is stored. progress may be nil; otherwise it
// receives the progress of the call, even after ctx has ended.
func (r *Runner) Run(ctx context.Context, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error) {
	type end struct {
		res *schema.Result
		err error
	}
	ended := make(chan end, 1)
	parent := telemetry.Carried(ctx)
	r.work.Go(func() {
		res, err := r.run(a, parent, progress)
		ended <- end{res, err}
	})
	select {
	case e := <-ended:
		return e.res, e.err
	case <-ctx.Done():
		return nil, schema.Errorf(schema.KindCanceled, "The caller disconnected; the confirmed call continues, and GET /calls/%s returns its outcome.", a.CallID).WithCall(a.CallID)
	}
}

// run runs an approved call as a child of the parent span, if set. The span of the run links to the
// request that submitted the call.
func (r *Runner) run(a *ledger.Approval, parent schema.Trace, progress func(params []byte)) (*schema.Result, error) {
	// Shutdown waits for the call, which has its own timeout.
	ctx := context.WithoutCancel(r.ctx)
	call, err := r.callOf(ctx, a)
	var res *schema.Result
	if err == nil {
		err = r.unchanged(ctx, a, call.Arguments)
	}
	if span := r.o.Traces.Follow(parent, schema.Trace{Parent: a.Trace, State: a.TraceState}, "run approved call"); span != nil {
		defer span.End()
		defer func() { span.Outcome(res, err) }()
		span.Text(telemetry.KeyCall, string(a.CallID))
		span.Text(telemetry.KeyApproval, string(a.ID))
		if call != nil {
			call.Trace = span.Trace()
		}
	}
	if err != nil {
		r.ends.refused(a, err)
	} else {
		rec := namedOf(a)
		rec.Decision = risk.Held
		call.Progress = progress
		res, err = r.o.Chain.Run(ctx, call, execution.Plan{Record: &rec})
	}
	r.work.Go(func() { r.record(a, res, err) })
	return res, err
}

// callOf reads the call of an approval. It retries, because an approved call must not fail if the
// ledger is unavailable for a moment, as when a NATS node stops.
func (r *Runner) callOf(ctx context.Context, a *ledger.Approval) (*schema.Call, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, tryTimeout)
		call, err := r.o.Desk.Call(try, a)
		done()
		if schema.KindOf(err) != schema.KindUnavailable || ctx.Err() != nil {
			return call, err
		}
		sleep.For(recordAgain, ctx.Done())
	}
}

// unchanged is the last check before the call is sent. It refuses the call if its tool was redefined
// or disabled since the call was held, or if the policy now requires more than the approval met.
func (r *Runner) unchanged(ctx context.Context, a *ledger.Approval, args []byte) error {
	b := a.Binding
	tool, err := r.o.Catalog.Tool(b.Server, b.Tool)
	if err != nil {
		return err
	}
	if !tool.Switch.Enabled {
		return schema.Errorf(schema.KindDisabled, "Tool %q was disabled after the call was held; it was not run.", b.Tool).WithCall(a.CallID)
	}
	if tool.Digest != b.ToolDefinitionDigest {
		return schema.Errorf(schema.KindConflict, "The server changed the definition of tool %q after the call was held; it was not run. Send the call again.", b.Tool).WithCall(a.CallID)
	}
	now, err := r.o.Gate.Reassess(ctx, a, args)
	switch {
	case err != nil:
		return err
	case now.Deny:
		return schema.Errorf(schema.KindForbidden, "The policy in force forbids this call, and it was not run: %s", risk.JoinReasons(now.Reasons)).WithCall(a.CallID)
	case !approval.Covered(a, &now):
		return schema.Errorf(schema.KindForbidden, "The policy in force has stricter requirements than the approval of this call met; it was not run. Send the call again.").WithCall(a.CallID)
	}
	return nil
}

// record stores the outcome of a call. If the ledger cannot be written, it tries again until the
// runner has been closed for recordTimeout: the outcome is known only here, and would count as
// unknown.
func (r *Runner) record(a *ledger.Approval, res *schema.Result, callErr error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(r.ctx, func() {
		if sleep.For(recordTimeout, ctx.Done()) {
			cancel()
		}
	})
	defer stop()
	log := r.o.Log.With("call", a.CallID)
	err := untilStored(ctx, log, func(try context.Context) error {
		_, err := r.o.Desk.Finish(try, a.Binding.Tenant, a.ID, res, callErr)
		return err // unwrapped: untilStored checks its kind
	})
	if err != nil {
		log.Error("the outcome of a call could not be recorded; it will count as unknown", "error", err)
	}
}

// untilStored calls finish until it succeeds, fails for another reason than an unavailable ledger,
// or ctx ends.
func untilStored(ctx context.Context, log *slog.Logger, finish func(context.Context) error) error {
	began, warned := time.Now(), false
	for again := recordAgain; ; again = min(2*again, recordAgainMost) {
		try, done := context.WithTimeout(ctx, tryTimeout)
		err := finish(try)
		done()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case schema.AsError(err).Retryable: // also a conflict with many writers, or with an attempt that a cluster still stores
		case schema.KindOf(err) == schema.KindConflict && again > recordAgain:
			return nil // an earlier attempt had stored it, but its reply was lost
		case schema.KindOf(err) != schema.KindUnavailable:
			return err
		}
		if !warned && time.Since(began) >= recordTimeout {
			warned = true
			log.Warn("the outcome of a call could not be recorded yet; it is tried again until this process stops", "error", err)
		}
		sleep.For(again, ctx.Done())
	}
}
