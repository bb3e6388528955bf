package risk

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Assess is the one function that judges a call, at the front door and again in
// the worker. level is the operator's riskLevel of the server (0: none), trusted says
// that the operator trusts its hints, and definition is the tool as the server sent it
// (nil where it is not known). Without a policy of the operator's (nil) it goes by
// level alone, as MCP Bridge does: what has none runs at once. It has no side effects
// and is safe for concurrent use.
func Assess(policy *Holder, level int, trusted bool, definition json.RawMessage, call *schema.Call) Assessment {
	a, _ := AssessKnown(policy, level, trusted, definition, call, Missing{})
	return a
}

// AssessKnown is Assess for a call of which something is missing; see [Policy.AssessKnown].
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

// Decision is what the gate decides on a call of a tool.
type Decision string

// The decisions. The zero value says that none is known.
const (
	Allowed Decision = "allowed" // it runs at once, maybe in a sandbox
	Held    Decision = "held"    // it waits for an approval
	Refused Decision = "refused" // it never runs
)

// defaults are in force where the operator has no policy.
var defaults = Default()

var noPolicy = []string{"there is no policy, and the server has no risk level above 1"}

// CheckMethod says why a request that reads a resource, gets a prompt or completes
// arguments must not run, nil where it may: only calls of tools can wait for an
// approval. sandboxed says that it runs in a container or sandbox of its own; what is of
// high risk runs nowhere else. server is the operator's riskLevel.
func CheckMethod(policy *Holder, server int, sandboxed bool, call *schema.Call) *schema.Error {
	a := Assess(policy, server, false, nil, call)
	reasons := strings.Join(a.Reasons, "; ")
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
