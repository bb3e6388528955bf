package ledger

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Approval is an approval request with its decisions and the outcome of its call. It is one record,
// stored as JSON.
type Approval struct {
	ID     schema.ApprovalID `json:"id"`
	CallID schema.CallID     `json:"call_id"`
	State  State             `json:"state"`
	// Binding and BindingDigest never change. Edited arguments are stored separately, see
	// [Approval.Bound].
	Binding       Binding `json:"binding"`
	BindingDigest string  `json:"binding_digest"`
	// Groups are the requester's groups at the time of the request. The binding does not include
	// them, but the worker evaluates the call with them again.
	Groups []string `json:"groups,omitempty"`
	// Reasons explain why the call is held, as returned by the policy.
	Reasons []string `json:"reasons,omitempty"`
	// Rule is the approval rule: who may decide, and the number of approvals required.
	Rule json.RawMessage `json:"rule,omitempty"`
	// Definition is the tool's definition as the server sent it. [Ledger.Create] stores it once,
	// and only [Ledger.Definition] reads it.
	Definition []byte `json:"-"`
	// ArgumentsSize is the size of the requested arguments in bytes.
	ArgumentsSize int64 `json:"arguments_size,omitempty"`
	// Apart is set if the arguments are stored outside the ledger. They are deleted when the call
	// has ended.
	Apart     bool       `json:"apart,omitempty"`
	Edited    *Edited    `json:"edited,omitempty"`
	Decisions []Decision `json:"decisions,omitempty"`
	// Restarts lists the times at which the approval started again under another rule.
	Restarts []Restart `json:"restarts,omitempty"`
	// ServerRisk and TrustAnnotations are the operator's settings for the server when the call was
	// held, for an approver that assesses it again.
	ServerRisk       int  `json:"server_risk,omitempty"`
	TrustAnnotations bool `json:"trust_annotations,omitempty"`

	Created time.Time `json:"created"`
	// Expires is the time at which a pending approval expires.
	Expires time.Time `json:"expires"`
	// Escalated is the time at which more people were asked, or zero.
	Escalated time.Time `json:"escalated,omitzero"`
	// TokenHash is the hex SHA-256 of the confirmation token, if there is one.
	TokenHash string `json:"token_hash,omitempty"`
	// Spent records who spent the token. It is set once.
	Spent *TokenUse `json:"spent,omitempty"`
	// Runner is the front door that runs the call. It is set once.
	Runner *Runner `json:"runner,omitempty"`
	// Permission is the standing permission under which the call runs without approval. It is set
	// at creation or never.
	Permission string `json:"permission,omitempty"`
	// NoPermission is the reason why no standing permission can be given for such calls. It is
	// empty if one can.
	NoPermission string `json:"no_permission,omitempty"`
	// Ended is the time at which the approval ended. It changes if a late outcome arrives.
	Ended        time.Time     `json:"ended,omitzero"`
	ResultDigest string        `json:"result_digest,omitempty"`
	ToolError    bool          `json:"tool_error,omitempty"`
	Error        *schema.Error `json:"error,omitempty"`
	// Safe is set if the tool may be called again.
	Safe    bool          `json:"safe,omitempty"`
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// CallbackURL is notified when the call has ended.
	CallbackURL string `json:"callback_url,omitempty"`
	// Told is the time at which the notification was added to the webhook outbox. It is set once,
	// after the end.
	Told time.Time `json:"told,omitzero"`

	// Warrant is the signed proof that the call may run, created when it was approved.
	Warrant []byte `json:"warrant,omitempty"`

	// Trace is the W3C trace context of the request, TraceState its state. They are empty if the
	// request was not traced.
	Trace      string `json:"trace,omitempty"`
	TraceState string `json:"trace_state,omitempty"`

	// ReplayOf is the call whose arguments this one repeats, or "".
	ReplayOf schema.CallID `json:"replay_of,omitempty"`

	// Private is the sealed text of people and servers. It is only set in stored form, and nil in a
	// record that was read.
	Private []byte `json:"private,omitempty"`

	// Forgotten is set after the retention period of its tenant. Such a record is treated as
	// nonexistent; it contains only its ids, state and times.
	Forgotten bool `json:"forgotten,omitempty"`

	// Write is a random mark of the write that created this record. A writer that lost the reply
	// uses it to recognize its write.
	Write string `json:"write,omitempty"`
}

// Edited is set if the approved arguments differ from the requested ones. The bytes are stored with
// [Ledger.PutEdited].
type Edited struct {
	By              string `json:"by" doc:"The person who edited the arguments."`
	ArgumentsDigest string `json:"arguments_digest" doc:"The SHA-256 digest of the edited arguments."`
	// Size is their size in bytes; 0 in records of older versions.
	Size   int64     `json:"size,omitempty" doc:"The number of bytes of the edited arguments; absent in records of older versions."`
	At     time.Time `json:"at" doc:"When they were edited."`
	Reason string    `json:"reason,omitempty" doc:"The reason of the person; absent if there was none."`
}

// DecisionKind is the kind of a person's decision.
type DecisionKind string

const (
	Approve DecisionKind = "approve"
	Deny    DecisionKind = "deny"
	Extend  DecisionKind = "extend"
	Revoke  DecisionKind = "revoke"
	Edit    DecisionKind = "edit"
)

// Decision is one person's decision. Decisions are appended and never changed.
type Decision struct {
	By      string       `json:"by" doc:"The principal of the person or the caller that decided; for standing, of the person who gave the permission."`
	Owner   string       `json:"owner,omitempty" doc:"The owner of the credential with which the person decided; absent if it has none."`
	Groups  []string     `json:"groups,omitempty" doc:"The groups of the person at that time; absent if there were none."`
	Kind    DecisionKind `json:"kind" doc:"The kind of the decision: approve, deny, edit, extend or revoke."`
	Reason  string       `json:"reason,omitempty" doc:"The reason that the person gave; absent if there was none."`
	At      time.Time    `json:"at" doc:"The time of the decision."`
	Channel string       `json:"channel,omitempty" doc:"How the decision was made. web, api, slack: by a person on the pages, with the API of the approver or in Slack. token: by the caller with its token. caller: by the caller without a token, for a call of a batch. standing: by a standing permission."`
	// Allow describes the calls that the person allows to run without approval from now on.
	Allow *Allow `json:"allow,omitempty" doc:"The calls that the person allowed to run without approval from then on."`
}

// TokenUse records the use of the token.
type TokenUse struct {
	Attempt string    `json:"attempt"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
}

// Runner identifies the front door that runs the call.
type Runner struct {
	FrontDoor string    `json:"front_door"`
	Started   time.Time `json:"started"`
}

// Bound returns the binding of the call that would run now: with the edited arguments, if there are
// any, and the level of the last assessment.
func (a *Approval) Bound() Binding {
	b := a.Binding
	if r := a.restarted(); r != nil {
		b.Level, b.PolicyVersion = r.Level, r.PolicyVersion
	}
	if a.Edited != nil {
		b.ArgumentsDigest = a.Edited.ArgumentsDigest
	}
	return b
}

// Clone returns a copy that shares no mutable data.
func (a *Approval) Clone() *Approval {
	c := *a
	c.Groups = slices.Clone(a.Groups)
	c.Reasons = slices.Clone(a.Reasons)
	c.Rule = slices.Clone(a.Rule)
	c.Warrant = slices.Clone(a.Warrant)
	c.Definition = slices.Clone(a.Definition)
	c.Decisions = slices.Clone(a.Decisions)
	for i := range c.Decisions {
		c.Decisions[i].Groups = slices.Clone(c.Decisions[i].Groups)
		c.Decisions[i].Allow = c.Decisions[i].Allow.clone()
	}
	c.Restarts = slices.Clone(a.Restarts)
	c.Edited, c.Spent, c.Runner = copied(a.Edited), copied(a.Spent), copied(a.Runner)
	if c.Error = copied(a.Error); c.Error != nil {
		c.Error.Faults = slices.Clone(c.Error.Faults)
		if c.Error.RPC = copied(c.Error.RPC); c.Error.RPC != nil {
			c.Error.RPC.Data = slices.Clone(c.Error.RPC.Data)
		}
	}
	return &c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// IDFor returns the approval id of a call: "appr_" and the part of the call id after "call_", or a
// digest of a call id in another format.
func IDFor(callID schema.CallID) schema.ApprovalID {
	if tail, ok := strings.CutPrefix(string(callID), "call_"); ok && validTail(tail) {
		return schema.ApprovalID("appr_" + tail)
	}
	sum := sha256.Sum256([]byte(callID))
	// Upper case does not occur in a call id, so the two forms cannot collide.
	return schema.ApprovalID("appr_" + base32.StdEncoding.EncodeToString(sum[:])[:26])
}

func validTail(s string) bool {
	if s == "" || len(s) > 40 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
