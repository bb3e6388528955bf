package calls

import (
	"slices"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/kit/notnull"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// ArgumentsState reports whether arguments match the tool's schema.
type ArgumentsState string

// The values of ArgumentsState.
const (
	ArgumentsValid     ArgumentsState = "valid"
	ArgumentsInvalid   ArgumentsState = "invalid"
	ArgumentsUnchecked ArgumentsState = "unchecked" // the call is refused before its arguments are checked
)

// PolicyDecision is the gate's decision on a hypothetical call.
type PolicyDecision struct {
	Decision  risk.Decision      `json:"decision" enum:"allowed,held,refused" doc:"allowed: it would run at once, also in a container; held: it would wait for an approval; refused: it would not run."`
	Arguments ArgumentsState     `json:"arguments" enum:"valid,invalid,unchecked" doc:"Whether the arguments match the schema of the tool. unchecked: the call is refused before they are checked, such as for a disabled tool."`
	Errors    []schema.Fault     `json:"errors" nullable:"false" doc:"The faults of the arguments."`
	Error     *records.ViewError `json:"error,omitempty" doc:"The error that the call would get. A call that is not refused has one if the isolation that it requires is not available at the moment."`
	Version   string             `json:"policy_version,omitempty" doc:"The version of the policy; absent if the call is refused before the policy is evaluated. Then there is no rule, risk level, approval or sandbox, and reasons is empty."`
	Level     int                `json:"risk_level,omitempty" minimum:"1" maximum:"3" doc:"The level of risk: 1 low, 2 medium, 3 high."`
	Rule      string             `json:"rule,omitempty" doc:"The rule that decides, if one does."`
	Reasons   []string           `json:"reasons" nullable:"false" doc:"The reasons for the decision, the decisive one first."`
	Approval  *PolicyApproval    `json:"approval,omitempty" doc:"Who must approve the call, if somebody must."`
	Sandbox   string             `json:"sandbox,omitempty" enum:"container" doc:"The isolation in which the call would run, if it needs one."`
	Durable   bool               `json:"durable" doc:"Whether the policy makes the call durable: it is stored before it runs."`
}

// PolicyApproval describes who must approve a call.
type PolicyApproval struct {
	By        string   `json:"by" enum:"caller,groups" doc:"caller: the caller confirms its own call; groups: members of groups approve it."`
	Groups    []string `json:"groups" nullable:"false" doc:"The groups whose members may approve it."`
	Needed    int      `json:"needed" minimum:"1" doc:"The number of different people who must approve it."`
	ExpiresMS int64    `json:"expires_ms" doc:"The number of milliseconds after which the call expires."`
}

// argumentKinds lists the error kinds for bad arguments.
var argumentKinds = []schema.Kind{schema.KindInvalidArguments, schema.KindInvalidRequest, schema.KindTooLarge}

// TestPolicy returns the decision that the gate would make on the call for its principal now. If
// draft is not nil, it replaces the platform policy. The gate is the one that decides on real
// calls. Nothing is run, held or recorded, and no quota is charged. Standing permissions, which
// can approve a held call, are ignored. Errors: KindNotFound for a server or tool that does not
// exist or that the principal's tenant cannot see.
func TestPolicy(c *Calls, call *schema.Call, draft *risk.Policy) (*PolicyDecision, error) {
	gate := c.o.Gate
	if draft != nil {
		gate = gate.With(draft)
	}
	v, err := gate.Admit(call)
	if schema.KindOf(err) == schema.KindNotFound {
		return nil, err
	}
	d := &PolicyDecision{Arguments: ArgumentsUnchecked, Errors: []schema.Fault{}, Reasons: []string{}}
	if err != nil {
		e := schema.AsError(err)
		d.Error = &records.ViewError{Kind: e.Kind, Detail: e.Detail}
		if slices.Contains(argumentKinds, e.Kind) {
			d.Arguments, d.Errors = ArgumentsInvalid, notnull.List(e.Faults)
		}
	}
	if d.Decision, d.Rule = v.Decision(err); d.Decision == "" { // the policy was not evaluated
		d.Decision = risk.Refused
		return d, nil
	}
	a := &v.Assessment
	d.Arguments, d.Version, d.Level, d.Reasons = ArgumentsValid, a.Version, max(a.Level, risk.Low), notnull.List(a.Reasons)
	if d.Sandbox, d.Durable = a.Sandbox, a.Durable; a.Approval != nil {
		d.Approval = &PolicyApproval{
			By: a.Approval.By, Groups: notnull.List(a.Approval.Groups), Needed: a.Approval.Needed, ExpiresMS: a.Approval.Expires.Milliseconds(),
		}
	}
	return d, nil
}
