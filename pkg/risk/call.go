package risk

import (
	"encoding/json"
	"fmt"

	"github.com/callyard/callyard/pkg/schema"
)

// Assess is the only function that assesses a call, both at the front door and in the
// worker. level is the server's riskLevel as the operator set it (0 means none). trusted
// means that the operator trusts the server's hints. definition is the tool as the server
// sent it, or nil if it is unknown. If the operator has no policy (nil), only level decides,
// as in MCP Bridge: calls of a server without a level run at once. Assess has no side
// effects and is safe for concurrent use.
func Assess(policy *Holder, level int, trusted bool, definition json.RawMessage, call *schema.Call) Assessment {
	a, _ := AssessKnown(policy, level, trusted, definition, call, Missing{})
	return a
}

// AssessKnown is Assess for a call with missing parts; see [Policy.AssessKnown].
func AssessKnown(policy *Holder, level int, trusted bool, definition json.RawMessage, call *schema.Call, missing Missing) (a Assessment, undecided string) {
	if policy == nil && level <= Low {
		return Assessment{Level: Low, Reasons: noPolicy, Version: defaults.Version()}, ""
	}
	judge := defaults.AssessKnown
	if policy != nil {
		judge = policy.AssessKnown
	}
	a, undecided = judge(&Input{
		Method: call.Method, Server: string(call.Server), ServerRisk: level, TrustAnnotations: trusted, Tool: call.Tool, Definition: definition,
		Arguments: call.Arguments, Principal: call.Principal,
	}, missing)
	if undecided != "" {
		return a, undecided
	}
	if len(a.Reasons) == 0 {
		a.Reasons = []string{fmt.Sprintf("riskLevel %d", level)}
	}
	a.ServerRisk, a.TrustAnnotations = level, trusted
	return a, ""
}

// Decision is the decision of the gate on a tool call.
type Decision string

// The decisions. The zero value means that no decision is known.
const (
	Allowed Decision = "allowed" // runs at once, possibly in a sandbox
	Held    Decision = "held"    // waits for an approval
	Refused Decision = "refused" // never runs
)

// defaults is the effective policy if the operator has none.
var defaults = Default()

var noPolicy = []string{"there is no policy, and the server has no risk level above 1"}

// CheckMethod returns the reason why a request that reads a resource, gets a prompt or
// completes arguments must not run, or nil if it may run. Only tool calls can wait for an
// approval, so a request that requires one is refused. sandboxed means that the request runs
// in its own container or sandbox; a request of high risk runs only there. server is the
// server's riskLevel as the operator set it.
func CheckMethod(policy *Holder, server int, sandboxed bool, call *schema.Call) *schema.Error {
	a := Assess(policy, server, false, nil, call)
	reasons := JoinReasons(a.Reasons)
	switch {
	case a.Deny:
		return schema.Errorf(schema.KindForbidden, "The policy forbids %s of server %q: %s", call.Method, call.Server, reasons)
	case a.Approval != nil || a.Level == Medium:
		return schema.Errorf(schema.KindForbidden, "Server %q requires approval, and %s cannot wait for an approval; it was not run: %s A policy rule with match.method %s and level 1 allows it.", call.Server, call.Method, reasons, call.Method)
	case a.Level > Medium && !sandboxed:
		return schema.Errorf(schema.KindForbidden, "%s of server %q must run in a container, and the server does not run in one; it was not run with weaker isolation: %s A policy rule with match.method %s and level 1 allows it.", call.Method, call.Server, reasons, call.Method)
	}
	return nil
}
