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
	Status string `json:"status" enum:"ok,ready" doc:"ok from GET /livez, and ready from GET /readyz."`
}

// Summary is an approval in a list.
type Summary struct {
	ID              schema.ApprovalID `json:"id" doc:"The id of the approval." example:"appr_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	CallID          schema.CallID     `json:"call_id" doc:"The id of the held call. GET /calls/{id} of a front door returns its state and result." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	State           ledger.State      `json:"state" doc:"The state of the approval and its call."`
	Requester       ledger.Requester  `json:"requester" doc:"The caller that requested the call."`
	Server          schema.ServerID   `json:"server" doc:"The id of the MCP server." example:"files"`
	Tool            string            `json:"tool" doc:"The name of the tool." example:"delete_file"`
	RiskLevel       int               `json:"risk_level" minimum:"1" maximum:"3" doc:"The risk level of the call when the policy was last evaluated: 1 low, 2 medium, 3 high."`
	Reasons         []string          `json:"reasons" doc:"The reasons of the policy for holding the call, as sentences. Empty if it gave none."`
	ArgumentsDigest string            `json:"arguments_digest" doc:"The digest of the arguments that would run now: sha256: and 64 hex digits. Return it as digest with the decision." example:"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`
	Edited          bool              `json:"edited" doc:"Whether a person edited the arguments."`
	Needed          int               `json:"needed" minimum:"1" doc:"The number of different people who must approve."`
	ApprovalCount   int               `json:"approval_count" minimum:"0" doc:"The number of people whose approval counts for the arguments that would run now. An edit counts as an approval of its author, and makes earlier ones void."`
	Created         time.Time         `json:"created_at" doc:"When the call was held."`
	Expires         time.Time         `json:"expires_at" doc:"When the approval expires. A call that is not approved, or has not begun to run, by then never runs."`
	ExpiresIn       int64             `json:"expires_in_ms" minimum:"0" doc:"The time until expires_at in milliseconds, by the approver's clock. It is 0 after that time, and if the call has ended."`
	// Kinds lists the decisions that the caller may make. Blocked is the reason if there are none.
	Kinds   []ledger.DecisionKind `json:"may" doc:"The kinds of decisions that you may make now. Empty if there are none, for the reason in may_not_because. A second approval by the same person is refused."`
	Blocked string                `json:"may_not_because,omitempty" doc:"The reason that you may make no decision; absent if you may."`
}

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []Summary `json:"approvals" doc:"The approvals that you can see, newest first."`
	Next      string    `json:"next_cursor,omitempty" doc:"The cursor of the next page; absent on the last one."`
}

// Bytes is data with its encoding.
type Bytes struct {
	Digest    string  `json:"digest" doc:"The SHA-256 digest of the bytes: sha256: and 64 hex digits."`
	Size      int     `json:"size" minimum:"0" doc:"The number of bytes."`
	Base64    string  `json:"base64" doc:"The exact bytes in standard Base64. Empty if they are not stored any more; forgotten then has the reason."`
	Text      *string `json:"text,omitempty" doc:"The same bytes as text; absent if they are not UTF-8 or not stored any more."`
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
	By              string   `json:"by" enum:"caller,groups" doc:"caller: the caller confirms its own call with a token, and nobody can decide here. groups: members of groups decide."`
	Groups          []string `json:"groups" doc:"The groups whose members may decide; empty if by is caller."`
	Needed          int      `json:"needed" minimum:"1" doc:"The number of different people who must approve."`
	EscalateTo      []string `json:"escalate_to" doc:"The groups that are asked in addition if nobody decides in time; empty if there are none."`
	ReasonRequired  bool     `json:"reason_required" doc:"Whether every decision except extend requires a reason."`
	FreshSignInOnly bool     `json:"fresh_sign_in_required" doc:"Whether an approval or edit requires a recent sign-in on the pages. A request with a key does not have one, so it is refused with 403."`
}

// Restart is the time and reason of a restart under another rule.
type Restart struct {
	At            time.Time `json:"at" doc:"When the approval started again."`
	Reason        string    `json:"reason" doc:"The reason, as a sentence."`
	By            string    `json:"by,omitempty" doc:"The person who edited the arguments; absent if the policy changed."`
	PolicyVersion string    `json:"policy_version" doc:"The version of the policy that required it."`
}

// Approval holds everything that a person needs to decide.
type Approval struct {
	Summary
	Arguments     *Bytes            `json:"arguments" doc:"The arguments that would run now, or that ran."`
	Asked         *Bytes            `json:"asked_arguments,omitempty" doc:"The requested arguments; absent if they were not edited, or are not stored any more."`
	EditedBy      *ledger.Edited    `json:"edit,omitempty" doc:"The last edit of the arguments; absent if there was none."`
	Definition    *Bytes            `json:"tool_definition,omitempty" doc:"The server's definition of the tool as JSON; absent if it is not stored. It is not verified."`
	ToolDigest    string            `json:"tool_definition_digest" doc:"The digest of the tool's definition when the call was held; empty if it was unknown."`
	ToolChange    *ToolChange       `json:"tool_change" doc:"A comparison of the tool's definition with the one with which a person last approved a call of the tool."`
	PolicyVersion string            `json:"policy_version" doc:"The version of the policy that last evaluated the call."`
	BindingDigest string            `json:"binding_digest" doc:"The SHA-256 digest of what the approval was requested for: the caller, the tool and its definition, the arguments, the policy, the level, the deadline, the call and the approval."`
	Rule          Rule              `json:"rule" doc:"Who may decide, and the conditions of a decision."`
	Escalated     *time.Time        `json:"escalated_at,omitempty" doc:"When the groups in escalate_to were asked; absent if they were not asked."`
	Decisions     []ledger.Decision `json:"decisions" doc:"All decisions, oldest first."`
	Restarts      []Restart         `json:"restarts,omitempty" doc:"The times and reasons at which the approval started again under another rule, after an edit or a policy change with stricter requirements, oldest first; absent if it never did. Approvals given before the last restart are void."`
	NoPermission  string            `json:"may_not_allow_because,omitempty" doc:"The reason that a decision on this approval cannot have the member allow; absent if it can."`
	Safe          bool              `json:"safe_to_repeat" doc:"Whether the tool is marked as safe to call again with the same arguments."`
	ToolError     bool              `json:"tool_error" doc:"Whether the call ran, and the tool's result is an error."`
	Error         *schema.Error     `json:"error,omitempty" doc:"The reason that the call ended without a result; absent if it has not ended, or has a result."`
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
	Kind      ledger.DecisionKind `json:"kind" doc:"The kind of the decision. GET /approvals/{id} lists those that you may make in may."`
	Reason    string              `json:"reason,omitempty" maxLength:"4096" doc:"Your reason, of at most 4096 bytes. Required if the rule of the approval has reason_required, except with extend. It is stored and shown to everyone who sees the approval."`
	Digest    string              `json:"digest,omitempty" doc:"The arguments_digest that was shown; required to approve and to edit. If the call would now run with other arguments, the decision is refused with 409." example:"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`
	Arguments object              `json:"arguments,omitempty" doc:"Only with edit, and required then: the new arguments, used byte for byte. They must match the input schema of the tool."`
	Allow     *ledger.Allow       `json:"allow,omitempty" doc:"With approve: calls like this one run without approval until then, at most 7 days from now. Absent: only this call is approved."`
}

// ListedAnswer is a decision in a list.
type ListedAnswer struct {
	ID schema.ApprovalID `json:"id" pattern:"^[A-Za-z0-9_]{1,64}$" doc:"The id of the approval." example:"appr_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	Answer
}

// Answers is the body of several decisions.
type Answers struct {
	Decisions []ListedAnswer `json:"decisions" minItems:"1" maxItems:"50" doc:"The decisions, at most one for each approval. They are made in this order."`
}

// Outcome is the outcome of one of several decisions.
type Outcome struct {
	ID       schema.ApprovalID `json:"id" doc:"The id of the approval, as in the request."`
	Status   int               `json:"status" doc:"The HTTP status that this decision would have had as a request of its own." example:"200"`
	Approval *Summary          `json:"approval,omitempty" doc:"The approval after the decision; absent if the decision was refused."`
	Problem  *problem.Document `json:"problem,omitempty" doc:"The reason that the decision was refused; absent if it was recorded."`
}

// Outcomes is the response to several decisions.
type Outcomes struct {
	Results []Outcome `json:"results" doc:"The outcome of each decision, in the order of the request."`
}

// Revocation is the body of a revocation.
type Revocation struct {
	Reason string `json:"reason,omitempty" maxLength:"4096" doc:"Your reason, of at most 4096 bytes. Required if the rule under which the permission was given requires reasons."`
}

// Permission is a standing permission.
type Permission struct {
	ID         string             `json:"id" doc:"The id of the permission." example:"perm_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	State      string             `json:"state" enum:"good,over,used up,revoked" doc:"good: it allows calls. over: its time has ended. used up: it has allowed max_uses calls. revoked: a person revoked it."`
	ApprovalID schema.ApprovalID  `json:"approval_id" doc:"The approval with which it was granted."`
	Requester  ledger.Requester   `json:"requester" doc:"The caller whose calls it allows."`
	Server     schema.ServerID    `json:"server" doc:"The id of the MCP server." example:"files"`
	Tool       string             `json:"tool" doc:"The name of the tool." example:"delete_file"`
	ToolDigest string             `json:"tool_definition_digest" doc:"The digest of the tool's definition at that time. Calls of the tool with another definition require an approval."`
	Pattern    ledger.Pattern     `json:"pattern" doc:"The arguments that calls may have."`
	By         string             `json:"given_by" doc:"The person who gave it."`
	Reason     string             `json:"reason,omitempty" doc:"The reason of that person; absent if there was none."`
	Given      time.Time          `json:"given_at" doc:"When it was given."`
	Until      time.Time          `json:"until" doc:"When it ends. A call after that requires an approval."`
	MaxUses    int                `json:"max_uses" minimum:"0" doc:"The maximum number of calls that it allows; 0 means no limit."`
	Uses       int                `json:"uses" minimum:"0" doc:"The number of calls that it allowed so far. Counted only if max_uses is not 0."`
	Revoked    *ledger.Revocation `json:"revoked,omitempty" doc:"Who revoked it, and when; absent if nobody did."`
	May        bool               `json:"may_revoke" doc:"Whether you may revoke it now."`
}

// PermissionList is the list of permissions.
type PermissionList struct {
	Permissions []Permission `json:"permissions" doc:"The permissions that you can see, newest first. All are in this list; it has no pages."`
}

func permissionOf(p *ledger.Permission, state string, may bool) Permission {
	return Permission{
		ID: p.ID, State: state, ApprovalID: p.ApprovalID, Requester: p.Requester, Server: p.Server, Tool: p.Tool, ToolDigest: p.ToolDefinitionDigest,
		Pattern: p.Pattern, By: p.By, Reason: p.Reason, Given: p.Given, Until: p.Until, MaxUses: p.MaxUses, Uses: p.Uses, Revoked: p.Revoked, May: may,
	}
}
