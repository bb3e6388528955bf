// Package admission is the gate: it decides whether a call may run, and how.
//
// It promises that each call, whichever way it takes (REST by tool, REST by body, MCP,
// batches), is checked in one order: the tool known and enabled, the arguments well formed
// and valid by the tool's schema, the policy. The result is a [Verdict], which travels with
// the call, so that it is not checked again.
//
// It refuses to act on its verdict: it holds, stores, counts and runs nothing, and it does
// not change a call beyond filling in the fields that the caller left open. Arguments leave
// as the bytes that came.
package admission

import (
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Limits bounds one call. Zero fields get the defaults named.
type Limits struct {
	// ArgumentBytes is the maximum size of the arguments of a call (1 MiB).
	ArgumentBytes int
	// ArgumentDepth is how deep they may nest (64).
	ArgumentDepth int
	// MaxTimeout is the longest timeout that a caller may ask for (1 h).
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

// Catalog knows the servers and their tools. Errors are of KindNotFound for what there is
// not, and of KindServerFailed for a schema that cannot be read.
type Catalog interface {
	Server(id schema.ServerID) (catalog.Server, error)
	Tool(server schema.ServerID, name string) (catalog.Tool, error)
	Schema(tool catalog.Tool) (*validate.Schema, error)
}

// Options says what a gate decides by. Catalog is required.
type Options struct {
	Catalog Catalog
	Limits  Limits
	// Policy assesses calls; without it only the riskLevel of servers counts.
	Policy *risk.Holder
	// Tenants says which servers tenants see; without it every tenant sees all.
	Tenants Tenants
}

// Tenants says which servers tenants see. It is [catalog.Tenants].
type Tenants interface {
	// All reports whether the tenant sees every server.
	All(tenant schema.TenantID) bool
	// Sees reports whether the tenant sees the server, whether or not it exists.
	Sees(tenant schema.TenantID, server schema.ServerID) bool
	// Hidden returns the error for a server that does not exist where the tenant does not see
	// it, else nil.
	Hidden(tenant schema.TenantID, server schema.ServerID) error
}

// Gate decides on calls. It is safe for concurrent use.
type Gate struct {
	catalog Catalog
	limits  Limits
	policy  *risk.Holder
	tenants Tenants // nil: every tenant sees all
}

// NewGate returns a gate.
func NewGate(o Options) *Gate {
	o.Limits.fill()
	return &Gate{o.Catalog, o.Limits, o.Policy, o.Tenants}
}

// Limits returns the limits in force.
func (g *Gate) Limits() Limits { return g.limits }

// Verdict is what the gate decided on a call. That of a request which is no call of a tool
// is empty.
type Verdict struct {
	Tool       catalog.Tool
	Assessment risk.Assessment
}

// Admit checks a call of any method as it came from its caller, its timeout included; see
// [Gate.Check] and [Gate.CheckMethod].
func (g *Gate) Admit(call *schema.Call) (Verdict, error) {
	if call.Timeout < 0 || call.Timeout > g.limits.MaxTimeout {
		return Verdict{}, schema.Errorf(schema.KindInvalidRequest, "timeout_ms must be between 1 and %d.", g.limits.MaxTimeout.Milliseconds())
	}
	if call.Method == "" || call.Method == schema.MethodCallTool {
		return g.Check(call)
	}
	if err := g.CheckMethod(call); err != nil {
		return Verdict{}, err
	}
	return Verdict{}, validate.Arguments(call.Arguments, g.limits.ArgumentBytes, g.limits.ArgumentDepth)
}

// mayName checks what is refused alike whether or not the server and the tool are there: what
// the tenant does not see, as if it were not there, and what the credential leaves out.
func (g *Gate) mayName(call *schema.Call, tool string) error {
	if g.tenants != nil {
		if err := g.tenants.Hidden(call.Principal.Tenant, call.Server); err != nil {
			return err
		}
	}
	return call.Principal.MayCall(call.Server, tool)
}

// CheckMethod checks a request that is no call of a tool, except for its params.
func (g *Gate) CheckMethod(call *schema.Call) error {
	if err := g.mayName(call, ""); err != nil {
		return err
	}
	s, err := g.catalog.Server(call.Server)
	if err != nil {
		return err
	}
	// The worker knows for certain whether it runs in a sandbox, and checks it again.
	if e := risk.CheckMethod(g.policy, s.HighestRisk, s.BestSandbox != nil, call); e != nil {
		return e
	}
	return s.Refusal()
}

// Check checks a call of a tool, and fills in the properties of the tool and the default
// timeout. It refuses a call that must not run, or cannot run in the isolation that the
// policy requires. A call whose verdict asks for an approval must be held.
func (g *Gate) Check(call *schema.Call) (v Verdict, err error) {
	if err := g.mayName(call, call.Tool); err != nil {
		return v, err
	}
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

// refusal returns why a call with the assessment must not run, or cannot run in the
// isolation that it requires; nil where it may.
func (g *Gate) refusal(tool *catalog.Tool, call *schema.Call, a *risk.Assessment) error {
	switch {
	case a.Deny:
		return schema.Errorf(schema.KindForbidden, "The policy forbids this call: %s", strings.Join(a.Reasons, "; "))
	case a.Level >= risk.High || a.Sandbox != "":
		return isolated(call, tool.Sandbox, a)
	}
	return nil
}

func (g *Gate) assess(tool *catalog.Tool, call *schema.Call) risk.Assessment {
	return risk.Assess(g.policy, tool.Risk, tool.TrustAnnotations, tool.Raw, call)
}

// Reassess is the [approval.AssessFunc] of the gate: it assesses a held call with the
// tool as its server defines it now.
func (g *Gate) Reassess(_ context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
	b := a.Binding
	tool, err := g.catalog.Tool(b.Server, b.Tool)
	if err != nil {
		return risk.Assessment{}, err
	}
	return g.assess(&tool, &schema.Call{Server: b.Server, Tool: b.Tool, Arguments: args, Principal: approval.Requester(a)}), nil
}

// PolicyVersion names the policy in force, "" where there is none.
func (g *Gate) PolicyVersion() string {
	if g.policy == nil {
		return ""
	}
	return g.policy.Version()
}

// isolated returns why a call that must run in isolation cannot, nil where some worker has
// a sandbox for it. The worker checks the call again and never runs it in less, so this is
// for the message and not for safety.
func isolated(call *schema.Call, sandbox *schema.Sandbox, a *risk.Assessment) error {
	switch reasons := strings.Join(a.Reasons, "; "); {
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
