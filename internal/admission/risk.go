package admission

import (
	"encoding/json"
	"fmt"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Assess is the one function that judges a call, at the front door and again in
// the worker. Without a policy of the operator's it goes by the server's
// riskLevel alone, as MCP Bridge does: what has none runs at once.
func Assess(policy *risk.Holder, level int, trusted bool, definition json.RawMessage, call *schema.Call) risk.Assessment {
	if policy == nil && level <= risk.Low {
		return risk.Assessment{Level: risk.Low, Reasons: noPolicy, Version: defaults.Version()}
	}
	p := defaults
	if policy != nil {
		p = policy.Current()
	}
	a := p.Assess(&risk.Input{
		Server: call.Server, ServerRisk: level, TrustAnnotations: trusted, Tool: call.Tool, Definition: definition,
		Arguments: call.Arguments, Principal: call.Principal,
	})
	if len(a.Reasons) == 0 {
		a.Reasons = []string{fmt.Sprintf("riskLevel %d", level)}
	}
	a.ServerRisk, a.TrustAnnotations = level, trusted
	return a
}

// defaults are in force where the operator has no policy.
var defaults = risk.Default()

var noPolicy = []string{"there is no policy, and the server has no risk level above 1"}
