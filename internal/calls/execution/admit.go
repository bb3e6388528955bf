package execution

import (
	"context"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// admitter admits calls. The error is the refusal; the policy decision is returned with it.
type admitter interface {
	admit(ctx context.Context, call *schema.Call) (admitted, error)
}

// admitted is the verdict on a call that was not refused: it is held, must be stored, or runs
// immediately.
type admitted struct {
	held    *approval.Held
	durable *admission.Verdict
	cache   *risk.Cache // how long the result may be cached; nil means not at all
	judged  records.PolicyDecision
}

// holding asks the gate, and holds calls that need an approval.
type holding struct {
	gate  *admission.Gate
	quota *quota.Quota
	desk  *approval.Desk
}

func (h *holding) admit(ctx context.Context, call *schema.Call) (a admitted, err error) {
	verdict, err := h.gate.Admit(call)
	a.judged = DecisionOf(&verdict, err)
	switch {
	case err != nil:
		return a, err
	case verdict.Assessment.Approval != nil:
		if err := h.quota.Accept(&call.Principal, 1, 0); err != nil {
			return a, err
		}
		v := verdict // a copy, so that verdict itself stays on the stack
		a.held, err = h.desk.Open(ctx, call, v.Tool.Raw, &v.Assessment, "")
		return a, err
	case verdict.Assessment.Durable:
		v := verdict
		a.durable = &v
	}
	a.cache = verdict.Assessment.Cache
	return a, nil
}

// tracedAdmission records a span for each admission.
type tracedAdmission struct {
	next   admitter
	traces *telemetry.Traces
}

func (t *tracedAdmission) admit(ctx context.Context, call *schema.Call) (admitted, error) {
	span := t.traces.Begin(call.Trace, telemetry.Internal, "admit")
	defer span.End()
	span.Text(telemetry.KeyCall, string(call.ID))
	a, err := t.next.admit(ctx, call)
	switch {
	case err != nil:
		span.Text(telemetry.KeyAdmitted, "refused")
		span.Outcome(nil, err)
	case a.held != nil:
		span.Text(telemetry.KeyAdmitted, "held")
		span.Text(telemetry.KeyApproval, string(a.held.Approval.ID))
	case a.durable != nil:
		span.Text(telemetry.KeyAdmitted, "stored")
	default:
		span.Text(telemetry.KeyAdmitted, "run")
	}
	return a, err
}
