// Package admission is the gate: it decides whether a call may proceed.
//
// It promises that every path a call can take (REST by tool, REST by body, the
// MCP face, batches) is judged by the one function [Gate.Call], in one order:
// the caller's quota, the tool known and switched on, the arguments well formed
// and right for the tool's schema, the risk. It refuses to change a call:
// arguments leave as the bytes that came.
package admission

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/cache"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/quota"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// Limits bounds what one call may be. Zero fields get the defaults named.
type Limits struct {
	// ArgumentBytes is the most that the arguments of a call may take (1 MiB).
	ArgumentBytes int
	// ArgumentDepth is how deep they may nest (64).
	ArgumentDepth int
	// MaxTimeout is the longest time a caller may ask for (1 h).
	MaxTimeout time.Duration
}

func (l *Limits) fill() {
	if l.ArgumentBytes == 0 {
		l.ArgumentBytes = 1 << 20
	}
	if l.ArgumentDepth == 0 {
		l.ArgumentDepth = 64
	}
	if l.MaxTimeout == 0 {
		l.MaxTimeout = time.Hour
	}
}

// Options says what a gate stands on. Catalog, Router and Metrics are required.
type Options struct {
	Catalog *catalog.Catalog
	Router  *dispatch.Router
	Metrics *telemetry.Metrics
	Limits  Limits
	// Policy judges calls; without it only the riskLevel of servers counts.
	Policy *risk.Holder
	// Desk holds those that need a yes; without it what would be held is refused.
	Desk *approval.Desk
	// Records is the execution log; without it no call leaves a record.
	Records *record.Recorder
	// Quota holds callers and servers to their limits; without it there are none.
	Quota *quota.Quota
	// Cache keeps results where the policy says so; without it none is kept.
	Cache *cache.Cache
	// Traces makes a span of each admission; nil: there are none.
	Traces *telemetry.Traces
}

// Gate admits calls and hands them to the router. It is safe for concurrent use.
type Gate struct {
	catalog *catalog.Catalog
	router  *dispatch.Router
	metrics *telemetry.Metrics
	limits  Limits
	policy  *risk.Holder
	desk    *approval.Desk
	records *record.Recorder
	quota   *quota.Quota
	cache   *cache.Cache
	traces  *telemetry.Traces

	flying  atomic.Int64
	drained chan struct{}
	closing atomic.Bool
}

// NewGate returns a gate before the router.
func NewGate(o Options) *Gate {
	o.Limits.fill()
	return &Gate{
		catalog: o.Catalog, router: o.Router, metrics: o.Metrics, limits: o.Limits, policy: o.Policy, desk: o.Desk, records: o.Records, quota: o.Quota, cache: o.Cache, traces: o.Traces, drained: make(chan struct{}, 1),
	}
}

// Answer is what came of a call at the gate. Exactly one of its fields is set.
type Answer struct {
	// Result is what the tool answered.
	Result *schema.Result
	// Held says that the call waits for an approval, or has one already.
	Held *approval.Held
	// Durable is the verdict on a call that the policy wants stored before it runs;
	// nothing was run.
	Durable *Verdict
}

// Limits returns what is in force.
func (g *Gate) Limits() Limits { return g.limits }

// Call admits the call, and has it run where it may run at once. It fills in what the
// caller left open: the id, the default time, what is known of the tool. The error is
// a *schema.Error that names the call.
func (g *Gate) Call(ctx context.Context, call *schema.Call) (Answer, error) {
	if call.ID == "" {
		call.ID = schema.NewCallID()
	}
	began := time.Now()
	g.flying.Add(1)
	defer g.left()
	room, err := g.quota.Enter(ctx, &call.Principal)
	if err != nil {
		return Answer{}, schema.AsError(err).WithCall(call.ID)
	}
	defer room.Leave()
	g.metrics.CallStarted()
	a, err := g.admitTraced(ctx, call)
	switch {
	case err != nil:
		g.count(call, nil, err, began)
		g.noteRefused(call, err)
		return Answer{}, schema.AsError(err).WithCall(call.ID)
	case a.held != nil:
		g.metrics.CallDeferred(call.Server, "held")
		g.noteHeld(call, a.held)
		return Answer{Held: a.held}, nil
	case a.durable != nil:
		g.metrics.CallDeferred(call.Server, "stored")
		return Answer{Durable: a.durable}, nil
	}
	note := g.noteBegin(call, nil)
	res, err := g.answer(ctx, call, a.keep)
	note.End(record.Outcome{Result: res, Err: err})
	g.count(call, res, err, began)
	return Answer{Result: res}, err
}

// admitted is what is to become of a call that was not refused: it is held or to be
// stored, or runs at once.
type admitted struct {
	held    *approval.Held
	durable *Verdict
	keep    *risk.Cache // how long the result may be kept, nil where it may not
}

// count puts the end of a call into the metrics. Names that callers made up do
// not become labels.
func (g *Gate) count(call *schema.Call, res *schema.Result, err error, began time.Time) {
	server, tool := call.Server, call.Tool
	if tool == "" {
		tool = call.Method
	}
	if schema.KindOf(err) == schema.KindNotFound {
		server, tool = "unknown", "unknown"
	}
	g.metrics.CallEnded(server, tool, outcome(res, err), time.Since(began))
}

func outcome(res *schema.Result, err error) string {
	switch {
	case err != nil && schema.AsError(err).CancelRequested:
		return "cancel-requested" // nobody is to be alarmed: its caller wanted it
	case err != nil:
		return string(schema.KindOf(err))
	case res.ToolError:
		return "tool-error"
	}
	return "ok"
}

// admit checks the call and completes it, and holds it when it needs an approval.
func (g *Gate) admit(ctx context.Context, call *schema.Call) (a admitted, err error) {
	if call.Timeout < 0 || call.Timeout > g.limits.MaxTimeout {
		return a, schema.Errorf(schema.KindInvalidRequest, "timeout_ms must be between 1 and %d.", g.limits.MaxTimeout.Milliseconds())
	}
	if call.Method != "" && call.Method != schema.MethodCallTool {
		if err := g.CheckMethod(call); err != nil {
			return a, err
		}
		return a, validate.Arguments(call.Arguments, g.limits.ArgumentBytes, g.limits.ArgumentDepth)
	}
	verdict, err := g.Check(call)
	switch {
	case err != nil:
		return a, err
	case verdict.Assessment.Approval != nil:
		if err := g.quota.Accept(&call.Principal, 1, 0); err != nil {
			return a, err
		}
		a.held, err = g.Hold(ctx, call, verdict, "")
		return a, err
	case verdict.Assessment.Durable:
		durable := verdict // so that verdict itself stays on the stack
		a.durable = &durable
	}
	a.keep = verdict.Assessment.Cache
	return a, nil
}

// CheckMethod looks at a request that is no call of a tool. Nothing is counted or run.
func (g *Gate) CheckMethod(call *schema.Call) error {
	s, err := g.catalog.Server(call.Server)
	if err != nil {
		return err
	}
	// Whether it is boxed is for the worker to say, which judges it again.
	if e := risk.CheckMethod(g.policy, s.HighestRisk, s.BestBox != nil, call); e != nil {
		return e
	}
	return s.Refusal()
}

// Verdict is what the gate thinks of a call of a tool.
type Verdict struct {
	Tool       catalog.Tool
	Assessment risk.Assessment
}

// Check looks at a call of a tool and completes it with what is known of the
// tool. It refuses a call that must not run, or cannot run as safely as was asked
// for. A call whose verdict asks for an approval must be held. Nothing is
// counted, stored or run.
func (g *Gate) Check(call *schema.Call) (v Verdict, err error) {
	if v.Tool, err = g.catalog.Tool(call.Server, call.Tool); err != nil {
		return v, err
	}
	tool := &v.Tool
	if err := tool.Refusal(); err != nil {
		return v, err
	}
	if err := validate.Arguments(call.Arguments, g.limits.ArgumentBytes, g.limits.ArgumentDepth); err != nil {
		return v, err
	}
	s, err := g.catalog.Schema(*tool)
	if err != nil {
		return v, err
	}
	if faults := s.Validate(call.Arguments); len(faults) > 0 {
		e := schema.Errorf(schema.KindInvalidArguments, "The arguments do not fit the schema of tool %q: %s", call.Tool, faults[0].Message)
		e.Faults = faults
		return v, e
	}
	call.ToolDigest, call.Safe = tool.Digest, tool.Safe
	if call.Timeout == 0 {
		call.Timeout = tool.Timeout
	}
	v.Assessment = risk.Assess(g.policy, tool.Risk, tool.TrustAnnotations, tool.Raw, call)
	switch a := &v.Assessment; {
	case a.Deny:
		return v, schema.Errorf(schema.KindForbidden, "The policy forbids this call: %s", strings.Join(a.Reasons, "; "))
	case a.Level >= risk.High || a.Sandbox != "":
		return v, boxable(call, tool.Box, a)
	}
	return v, nil
}

// Reassess is the [approval.AssessFunc] of the gate: it assesses a held call with the
// tool as its server defines it now.
func (g *Gate) Reassess(_ context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
	b := a.Binding
	tool, err := g.catalog.Tool(b.Server, b.Tool)
	if err != nil {
		return risk.Assessment{}, err
	}
	call := &schema.Call{Server: b.Server, Tool: b.Tool, Arguments: args, Principal: approval.Requester(a)}
	return risk.Assess(g.policy, tool.Risk, tool.TrustAnnotations, tool.Raw, call), nil
}

// PolicyVersion names the policy in force, "" where there is none.
func (g *Gate) PolicyVersion() string {
	if g.policy == nil {
		return ""
	}
	return g.policy.Current().Version()
}

// Hold holds the call until those whom the verdict names approve it. The error says why
// it cannot be held.
func (g *Gate) Hold(ctx context.Context, call *schema.Call, v Verdict, callbackURL string) (*approval.Held, error) {
	if g.desk == nil {
		return nil, schema.Errorf(schema.KindUnavailable, "This call needs a confirmation, and confirmations are not available here.")
	}
	return g.desk.Open(ctx, call, v.Tool.Raw, &v.Assessment, callbackURL)
}

// Run runs a call that was judged before: it was held and has been released, or
// stands in a journal. It counts like any other call, and waits where others are
// refused: a bulk call as long as it takes. place is what the execution log says of
// it beside the call itself.
func (g *Gate) Run(ctx context.Context, call *schema.Call, place *record.Record) (*schema.Result, error) {
	g.flying.Add(1)
	defer g.left()
	room, err := g.quota.Wait(ctx, &call.Principal, call.Server, call.Bulk)
	if err != nil {
		return nil, schema.AsError(err).WithCall(call.ID)
	}
	defer room.Leave()
	began := time.Now()
	g.metrics.CallStarted()
	note := g.noteBegin(call, place)
	res, err := g.router.Do(ctx, call)
	note.End(record.Outcome{Result: res, Err: err})
	g.count(call, res, err, began)
	return res, err
}

// InFlight is how many calls are under way or waiting here.
func (g *Gate) InFlight() int { return int(g.flying.Load()) }

// Drain waits until no call is under way, or ctx ends.
func (g *Gate) Drain(ctx context.Context) error {
	g.closing.Store(true)
	for g.flying.Load() > 0 {
		select {
		case <-g.drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
