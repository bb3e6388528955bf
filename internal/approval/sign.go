package approval

import (
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// warrantGrace is the time that a warrant outlives its approval. A call released at the last
// moment must still reach the worker before the warrant expires.
const warrantGrace = time.Minute

// Signing returns the function for [Options.Sign]. It returns an error if the signer does not
// sign for the way in which the approval was given, so that the approval does not count. It
// returns nil if s is nil.
func Signing(s *warrant.Signer) func(*ledger.Approval) ([]byte, error) {
	if s == nil {
		return nil
	}
	return func(a *ledger.Approval) ([]byte, error) {
		rule, err := Rule(a)
		if err != nil {
			return nil, err
		}
		how, err := deciderOf(a, rule)
		if err != nil {
			return nil, err
		}
		b := a.Bound()
		return s.Sign(warrant.Claims{
			ApprovalID: a.ID, CallID: a.CallID, Server: b.Server, Tool: b.Tool,
			ToolDefinitionDigest: b.ToolDefinitionDigest, ArgumentsDigest: b.ArgumentsDigest,
			Requester: b.Requester.Name, Owner: b.Requester.Owner, Level: b.Level, PolicyVersion: b.PolicyVersion, How: how, Requirement: requirement(a, rule).String(),
			Issued: time.Now().UnixMilli(), Deadline: a.Expires.Add(warrantGrace).UnixMilli(),
		})
	}
}

func deciderOf(a *ledger.Approval, rule *risk.Approval) (warrant.Decider, error) {
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
