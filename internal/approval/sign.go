package approval

import (
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// leaveWithin is how much longer than the approval its warrant is good: a call
// that was released in the last moment still has its way to the worker before it.
const leaveWithin = time.Minute

// Signing returns what makes the warrants of a desk; see [Options.Sign]. A signer
// that does not sign for the way in which an approval came about is an error, so
// that the approval does not count. Without a signer it returns nil.
func Signing(s *warrant.Signer) func(*ledger.Approval) ([]byte, error) {
	if s == nil {
		return nil
	}
	return func(a *ledger.Approval) ([]byte, error) {
		rule, err := Rule(a)
		if err != nil {
			return nil, err
		}
		how, err := decidedHow(a, rule)
		if err != nil {
			return nil, err
		}
		b := a.Bound()
		return s.Sign(warrant.Claims{
			ApprovalID: a.ID, CallID: a.CallID, Server: b.Server, Tool: b.Tool,
			ToolDefinitionDigest: b.ToolDefinitionDigest, ArgumentsDigest: b.ArgumentsDigest,
			Requester: b.Requester.Name, Owner: b.Requester.Owner, Level: b.Level, PolicyVersion: b.PolicyVersion, How: how, Requirement: requirement(a, rule).String(),
			Issued: time.Now().UnixMilli(), Deadline: a.Expires.Add(leaveWithin).UnixMilli(),
		})
	}
}

func decidedHow(a *ledger.Approval, rule *risk.Approval) (warrant.How, error) {
	switch {
	case a.Permission != "":
		return warrant.Standing, nil
	case rule.By == risk.ByGroups:
		return warrant.People, nil
	case rule.By == risk.ByCaller:
		return warrant.Caller, nil
	}
	return "", schema.Errorf(schema.KindInternal, "The approval rule of %s names no approvers.", a.ID)
}
