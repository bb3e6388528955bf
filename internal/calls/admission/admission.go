// Package admission is the gate: it decides whether a call may run, and how.
//
// Every call, on every path (REST by tool, REST by body, MCP, batches), is checked in the same
// order: the tool is known and enabled, the arguments are well formed and match the tool's schema,
// the policy. The result is a [Verdict], which travels with the call, so that it is not checked
// again.
//
// The gate does not act on its verdict: it holds, stores, counts and runs nothing. It changes a
// call only to fill in fields that the caller left empty. Argument bytes are never changed.
package admission

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Limits bounds one call. Zero fields select the defaults in parentheses.
type Limits struct {
	// ArgumentBytes is the maximum size of the arguments of a call (1 MiB).
	ArgumentBytes int
	// ArgumentDepth is the maximum nesting depth of the arguments (64).
	ArgumentDepth int
	// MaxTimeout is the maximum timeout that a caller may request (1 h).
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

// Catalog looks up servers and their tools. Errors are of KindNotFound for a server or tool that does
// not exist, and of KindServerFailed for a schema that cannot be read.
type Catalog interface {
	Server(id schema.ServerID) (catalog.Server, error)
	Tool(server schema.ServerID, name string) (catalog.Tool, error)
	Schema(tool catalog.Tool) (*validate.Schema, error)
}

// Options configures a gate. Catalog is required.
type Options struct {
	Catalog Catalog
	Limits  Limits
	// Policy assesses calls. If nil, only the riskLevel of servers counts.
	Policy *risk.Holder
	// Tenants decides which servers a tenant sees. If nil, every tenant sees all servers.
	Tenants *catalog.Tenants
}

// Gate decides on calls. It is safe for concurrent use.
type Gate struct {
	catalog Catalog
	limits  Limits
	policy  *risk.Holder
	tenants *catalog.Tenants // if nil, every tenant sees all servers
}

// NewGate returns a gate.
func NewGate(o Options) *Gate {
	o.Limits.fill()
	return &Gate{o.Catalog, o.Limits, o.Policy, o.Tenants}
}

// Limits returns the effective limits.
func (g *Gate) Limits() Limits { return g.limits }

// Verdict is the gate's decision on a call. It is empty for a request other than tools/call.
type Verdict struct {
	Tool       catalog.Tool
	Assessment risk.Assessment
}

// Admit checks a call of any method as its caller sent it, including its timeout; see [Gate.Check]
// and [Gate.CheckMethod].
func (g *Gate) Admit(call *schema.Call) (Verdict, error) {
	if call.Timeout < 0 || call.Timeout > g.limits.MaxTimeout {
		return Verdict{}, g.verify(call, call.Tool, schema.Errorf(schema.KindInvalidRequest, "timeout_ms must be between 1 and %d.", g.limits.MaxTimeout.Milliseconds()))
	}
	if call.Method == "" || call.Method == schema.MethodCallTool {
		return g.Check(call)
	}
	if err := g.CheckMethod(call); err != nil {
		return Verdict{}, err
	}
	return Verdict{}, validate.Arguments(call.Arguments, g.limits.ArgumentBytes, g.limits.ArgumentDepth)
}

// mayName makes the checks whose result must not depend on whether the server and the tool exist:
// servers that the tenant does not see, which are treated as nonexistent, and tools that the
// credential does not include.
func (g *Gate) mayName(call *schema.Call, tool string) error {
	if g.tenants != nil {
		if err := g.tenants.Hidden(call.Principal.Tenant, call.Server); err != nil {
			return err
		}
	}
	if err := call.Principal.MayCall(call.Server, tool); err != nil {
		return g.verify(call, tool, err)
	}
	return nil
}

// CheckMethod checks a request other than tools/call, except for its params.
func (g *Gate) CheckMethod(call *schema.Call) error {
	if err := g.mayName(call, ""); err != nil {
		return err
	}
	s, err := g.catalog.Server(call.Server)
	if err != nil {
		return err
	}
	// Only the worker knows for certain whether it runs in a sandbox, so it checks this again.
	if e := risk.CheckMethod(g.policy, s.HighestRisk, s.BestSandbox != nil, call); e != nil {
		return e
	}
	return s.Refusal()
}

// Check checks a tool call, and sets the tool properties and the default timeout. It refuses a call
// that must not run, or that cannot run in the isolation that the policy requires. If the verdict
// requires an approval, the call must be held.
func (g *Gate) Check(call *schema.Call) (v Verdict, err error) {
	if err := g.mayName(call, call.Tool); err != nil {
		return v, err
	}
	if v.Tool, err = g.catalog.Tool(call.Server, call.Tool); err != nil {
		return v, g.verify(call, call.Tool, err)
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
		e := schema.Errorf(schema.KindInvalidArguments, "The arguments do not match the schema of tool %q: %s", call.Tool, faults[0].Message)
		e.Faults = faults
		return v, e
	}
	call.ToolDigest, call.Safe, call.Retry = tool.Digest, tool.Safe, tool.Retry
	if call.Timeout == 0 {
		call.Timeout = tool.Timeout
	}
	v.Assessment = g.assess(tool, call)
	return v, g.refusal(tool, call, &v.Assessment)
}

// refusal returns an error if a call with the assessment must not run, or cannot run in the
// required isolation, and nil if it may run.
func (g *Gate) refusal(tool *catalog.Tool, call *schema.Call, a *risk.Assessment) error {
	switch {
	case a.Deny:
		return schema.Errorf(schema.KindForbidden, "The policy forbids this call: %s", risk.JoinReasons(a.Reasons))
	case a.Level >= risk.High || a.Sandbox != "":
		return isolated(call, tool.Sandbox, a)
	}
	return nil
}

func (g *Gate) assess(tool *catalog.Tool, call *schema.Call) risk.Assessment {
	return risk.Assess(g.policy, tool.Risk, tool.TrustAnnotations, tool.Raw, call)
}

// Reassess is the gate's [approval.AssessFunc]: it assesses a held call with the current tool
// definition.
func (g *Gate) Reassess(_ context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
	b := a.Binding
	tool, err := g.catalog.Tool(b.Server, b.Tool)
	if err != nil {
		return risk.Assessment{}, err
	}
	return g.assess(&tool, &schema.Call{Server: b.Server, Tool: b.Tool, Arguments: args, Principal: approval.Requester(a)}), nil
}

// PolicyVersion returns the version of the effective policy, or "" if there is none.
func (g *Gate) PolicyVersion() string {
	if g.policy == nil {
		return ""
	}
	return g.policy.Version()
}

// isolated returns an error if a call that requires isolation cannot get it, and nil if some worker
// has a suitable sandbox. This check gives the caller an early error and is not a security boundary:
// the worker checks the call again and never runs it with less isolation.
func isolated(call *schema.Call, sandbox *schema.Sandbox, a *risk.Assessment) error {
	switch reasons := risk.JoinReasons(a.Reasons); {
	case sandbox == nil:
		return schema.Errorf(schema.KindForbidden, "This call must run in a container, and server %q has none; it was not run with weaker isolation. Add a docker section with an image to the server's entry. (%s)", call.Server, reasons)
	case a.Container && sandbox.Isolation != schema.IsolationContainer:
		return schema.Errorf(schema.KindForbidden, "The policy requires a container, and calls of server %q run in weaker isolation (%s); the call was not run. Add a docker section with an image to the server's entry. (%s)", call.Server, sandbox.Isolation, reasons)
	case !sandbox.Ready:
		kind := "container"
		if sandbox.Isolation == schema.IsolationBubblewrap {
			kind = "sandbox"
		}
		return schema.Errorf(schema.KindUnavailable, "This call must run in a %s, and none is available now; it was not run with weaker isolation: %s (%s)", kind, sandbox.Error, reasons).RetryableAfter(time.Second)
	}
	return nil
}
