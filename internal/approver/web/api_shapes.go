package web

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/notnull"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Status is the response of the probes.
type Status struct {
	Status string `json:"status"`
}

// Summary is an approval in a list.
type Summary struct {
	ID              schema.ApprovalID `json:"id"`
	CallID          schema.CallID     `json:"call_id"`
	State           ledger.State      `json:"state"`
	Requester       ledger.Requester  `json:"requester"`
	Server          schema.ServerID   `json:"server"`
	Tool            string            `json:"tool"`
	RiskLevel       int               `json:"risk_level" minimum:"1" maximum:"3"`
	Reasons         []string          `json:"reasons"`
	ArgumentsDigest string            `json:"arguments_digest" doc:"Digest of the arguments that would run now; return it with the decision."`
	Edited          bool              `json:"edited"`
	Needed          int               `json:"needed"`
	ApprovalCount   int               `json:"approval_count"`
	Created         time.Time         `json:"created_at"`
	Expires         time.Time         `json:"expires_at"`
	ExpiresIn       int64             `json:"expires_in_ms" doc:"Remaining time by the approver's clock; 0 when it has ended."`
	// Kinds lists the decisions that the caller may make. Blocked is the reason if there are none.
	Kinds   []ledger.DecisionKind `json:"may"`
	Blocked string                `json:"may_not_because,omitempty"`
}

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []Summary `json:"approvals"`
	Next      string    `json:"next_cursor,omitempty"`
}

// Bytes is data with its encoding.
type Bytes struct {
	Digest    string  `json:"digest"`
	Size      int     `json:"size"`
	Base64    string  `json:"base64" doc:"The exact bytes."`
	Text      *string `json:"text,omitempty" doc:"The same as text, if the bytes are UTF-8."`
	Forgotten string  `json:"forgotten,omitempty" doc:"The reason that base64 is empty: arguments over 4096 bytes are deleted when their call has ended."`
}

func bytesOf(b []byte) *Bytes {
	p := &Bytes{Digest: schema.Digest(b), Size: len(b), Base64: base64.StdEncoding.EncodeToString(b)}
	if utf8.Valid(b) {
		text := string(b)
		p.Text = &text
	}
	return p
}

// forgotten is the placeholder for arguments that are no longer stored.
func forgotten(q *approvalView) *Bytes {
	bound, size := q.Bound(), q.ArgumentsSize
	if q.Edited != nil {
		size = q.Edited.Size
	}
	return &Bytes{Digest: bound.ArgumentsDigest, Size: int(size), Forgotten: q.Forgotten}
}

// Rule is the approval rule: the groups that may decide, and the conditions.
type Rule struct {
	By              string   `json:"by" enum:"caller,groups"`
	Groups          []string `json:"groups"`
	Needed          int      `json:"needed"`
	EscalateTo      []string `json:"escalate_to"`
	ReasonRequired  bool     `json:"reason_required"`
	FreshSignInOnly bool     `json:"fresh_sign_in_required"`
}

// Restart is the time and reason of a restart under another rule.
type Restart struct {
	At            time.Time `json:"at"`
	Reason        string    `json:"reason"`
	By            string    `json:"by,omitempty" doc:"The person who edited the arguments; absent if the policy changed."`
	PolicyVersion string    `json:"policy_version"`
}

// Approval holds everything that a person needs to decide.
type Approval struct {
	Summary
	Arguments     *Bytes            `json:"arguments"`
	Asked         *Bytes            `json:"asked_arguments,omitempty" doc:"The requested arguments, if they were edited."`
	EditedBy      *ledger.Edited    `json:"edit,omitempty"`
	Definition    *Bytes            `json:"tool_definition,omitempty" doc:"The server's definition of the tool. It is not verified."`
	ToolDigest    string            `json:"tool_definition_digest"`
	ToolChange    *ToolChange       `json:"tool_change"`
	PolicyVersion string            `json:"policy_version"`
	BindingDigest string            `json:"binding_digest"`
	Rule          Rule              `json:"rule"`
	Escalated     *time.Time        `json:"escalated_at,omitempty"`
	Decisions     []ledger.Decision `json:"decisions"`
	Restarts      []Restart         `json:"restarts,omitempty" doc:"The times and reasons at which the approval started again under another rule, after an edit or a policy change with stricter requirements. Approvals given before the last restart are void."`
	NoPermission  string            `json:"may_not_allow_because,omitempty" doc:"The reason that a decision on this approval cannot have the member allow; absent if it can."`
	Safe          bool              `json:"safe_to_repeat"`
	ToolError     bool              `json:"tool_error"`
	Error         *schema.Error     `json:"error,omitempty"`
}

func (a *api) summaryOf(q *approvalView) Summary {
	b := q.Bound()
	s := Summary{
		ID: q.ID, CallID: q.CallID, State: q.State, Requester: b.Requester, Server: b.Server, Tool: b.Tool, RiskLevel: b.Level,
		Reasons: notnull.List(q.Reasons), ArgumentsDigest: b.ArgumentsDigest, Edited: q.Edited != nil, Needed: max(q.Rule.Needed, 1), ApprovalCount: q.Approvals,
		Created: q.Created, Expires: q.Expires, Kinds: []ledger.DecisionKind{}, Blocked: q.Blocked,
	}
	if !q.State.Ended() {
		s.ExpiresIn = timeLeft(q.Approval, a.o.Now()).Milliseconds()
	}
	if q.Blocked == "" {
		s.Kinds = notnull.List(q.Kinds)
	}
	return s
}

func (a *api) approvalOf(q *approvalView) Approval {
	d := Approval{
		Summary: a.summaryOf(q), Arguments: bytesOf(q.Arguments), EditedBy: q.Edited,
		ToolDigest: q.Binding.ToolDefinitionDigest, ToolChange: q.Change, PolicyVersion: q.Bound().PolicyVersion, BindingDigest: q.BindingDigest,
		Rule: Rule{
			By: q.Rule.By, Groups: notnull.List(q.Rule.Groups), Needed: max(q.Rule.Needed, 1), EscalateTo: notnull.List(q.Rule.EscalateTo),
			ReasonRequired: q.Rule.Reasons, FreshSignInOnly: q.Rule.FreshLogin,
		},
		Decisions: notnull.List(q.Decisions), NoPermission: q.NotAgain(), Safe: q.Safe, ToolError: q.ToolError, Error: q.Approval.Error,
	}
	for _, r := range q.Restarts {
		d.Restarts = append(d.Restarts, Restart{r.At, r.Reason, r.By, r.PolicyVersion})
	}
	if q.Forgotten != "" {
		d.Arguments = forgotten(q)
	}
	if len(q.Asked) > 0 {
		d.Asked = bytesOf(q.Asked)
	}
	if len(q.Definition) > 0 {
		d.Definition = bytesOf(q.Definition)
	}
	if !q.Escalated.IsZero() {
		d.Escalated = &q.Escalated
	}
	return d
}

// Answer is the body of a decision.
type Answer struct {
	Kind      ledger.DecisionKind `json:"kind"`
	Reason    string              `json:"reason,omitempty" maxLength:"4096"`
	Digest    string              `json:"digest,omitempty" doc:"The arguments_digest that was shown; required to approve and to edit."`
	Arguments object              `json:"arguments,omitempty" doc:"Only with edit: the new arguments, used byte for byte."`
	Allow     *ledger.Allow       `json:"allow,omitempty" doc:"With approve: calls like this one run without approval until then, at most 7 days."`
}

// ListedAnswer is a decision in a list.
type ListedAnswer struct {
	ID schema.ApprovalID `json:"id" pattern:"^[A-Za-z0-9_]{1,64}$" doc:"The id of the approval."`
	Answer
}

// Answers is the body of several decisions.
type Answers struct {
	Decisions []ListedAnswer `json:"decisions" minItems:"1" maxItems:"50"`
}

// Outcome is the outcome of one of several decisions.
type Outcome struct {
	ID       schema.ApprovalID `json:"id"`
	Status   int               `json:"status" doc:"The HTTP status that this decision would have had as a request of its own."`
	Approval *Summary          `json:"approval,omitempty"`
	Problem  *problem.Document `json:"problem,omitempty"`
}

// Outcomes is the response to several decisions.
type Outcomes struct {
	Results []Outcome `json:"results"`
}

// Revocation is the body of a revocation.
type Revocation struct {
	Reason string `json:"reason,omitempty" maxLength:"4096"`
}

// Permission is a standing permission.
type Permission struct {
	ID         string             `json:"id"`
	State      string             `json:"state" enum:"good,over,used up,revoked"`
	ApprovalID schema.ApprovalID  `json:"approval_id" doc:"The approval with which it was granted."`
	Requester  ledger.Requester   `json:"requester"`
	Server     schema.ServerID    `json:"server"`
	Tool       string             `json:"tool"`
	ToolDigest string             `json:"tool_definition_digest"`
	Pattern    ledger.Pattern     `json:"pattern"`
	By         string             `json:"given_by"`
	Reason     string             `json:"reason,omitempty"`
	Given      time.Time          `json:"given_at"`
	Until      time.Time          `json:"until"`
	MaxUses    int                `json:"max_uses"`
	Uses       int                `json:"uses" doc:"Counted only if max_uses is set."`
	Revoked    *ledger.Revocation `json:"revoked,omitempty"`
	May        bool               `json:"may_revoke"`
}

// PermissionList is the list of permissions.
type PermissionList struct {
	Permissions []Permission `json:"permissions"`
}

func permissionOf(p *ledger.Permission, state string, may bool) Permission {
	return Permission{
		ID: p.ID, State: state, ApprovalID: p.ApprovalID, Requester: p.Requester, Server: p.Server, Tool: p.Tool, ToolDigest: p.ToolDefinitionDigest,
		Pattern: p.Pattern, By: p.By, Reason: p.Reason, Given: p.Given, Until: p.Until, MaxUses: p.MaxUses, Uses: p.Uses, Revoked: p.Revoked, May: may,
	}
}
