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

// Approval is the question put to people, what they answered and what came of
// it. It is one record; its JSON form is what is stored.
type Approval struct {
	ID     schema.ApprovalID `json:"id"`
	CallID schema.CallID     `json:"call_id"`
	State  State             `json:"state"`
	// Binding and BindingDigest never change; an edit of the arguments is next to
	// them, see [Approval.Bound].
	Binding       Binding `json:"binding"`
	BindingDigest string  `json:"binding_digest"`
	// Groups are those of the requester when it asked. What runs is bound without
	// them, but the worker judges the call by them once more.
	Groups []string `json:"groups,omitempty"`
	// Reasons say why the call is held, as the policy gave them.
	Reasons []string `json:"reasons,omitempty"`
	// Rule is the approval rule: who may decide and how many must.
	Rule json.RawMessage `json:"rule,omitempty"`
	// Definition is the tool's definition as the server sent it. It is stored
	// once, by [Ledger.Create], and read with [Ledger.Definition] only.
	Definition []byte `json:"-"`
	// ArgumentsSize is how many bytes the arguments have that were asked for.
	ArgumentsSize int64 `json:"arguments_size,omitempty"`
	// Apart says that the arguments lie outside the ledger, and are forgotten when the
	// call has ended.
	Apart     bool       `json:"apart,omitempty"`
	Edited    *Edited    `json:"edited,omitempty"`
	Decisions []Decision `json:"decisions,omitempty"`
	// Restarts are the times at which the approval began again under another rule.
	Restarts []Restart `json:"restarts,omitempty"`
	// ServerRisk and TrustAnnotations are what the operator said of the server when
	// the call was held, for an approver that assesses it again.
	ServerRisk       int  `json:"server_risk,omitempty"`
	TrustAnnotations bool `json:"trust_annotations,omitempty"`

	Created time.Time `json:"created"`
	// Expires is when silence becomes a no.
	Expires time.Time `json:"expires"`
	// Escalated is when more people were asked; zero while they were not.
	Escalated time.Time `json:"escalated,omitzero"`
	// TokenHash is the hex SHA-256 of the confirmation token, where there is one.
	TokenHash string `json:"token_hash,omitempty"`
	// Spent says who spent the token; it is set once.
	Spent *Spent `json:"spent,omitempty"`
	// Runner is the one that runs the call; it is set once.
	Runner *Runner `json:"runner,omitempty"`
	// Permission is the standing permission under which the call runs without a
	// question; it is there from the beginning or never.
	Permission string `json:"permission,omitempty"`
	// NoPermission says why nobody can allow calls like this one from now on; empty
	// where that is possible.
	NoPermission string `json:"no_permission,omitempty"`
	// Ended is when the approval came to its end; a late word moves it.
	Ended        time.Time     `json:"ended,omitzero"`
	ResultDigest string        `json:"result_digest,omitempty"`
	ToolError    bool          `json:"tool_error,omitempty"`
	Error        *schema.Error `json:"error,omitempty"`
	// Safe says that the tool may be repeated.
	Safe    bool          `json:"safe,omitempty"`
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// CallbackURL is told when the call has ended.
	CallbackURL string `json:"callback_url,omitempty"`
	// Told is when that was given to the outbox of webhooks; it is set once, after
	// the end.
	Told time.Time `json:"told,omitzero"`

	// Warrant is the signed proof that the call may run, made when it was approved.
	Warrant []byte `json:"warrant,omitempty"`

	// Trace is the W3C trace context of the request that asked, TraceState its state;
	// empty where it was in no trace.
	Trace      string `json:"trace,omitempty"`
	TraceState string `json:"trace_state,omitempty"`

	// ReplayOf is the call whose arguments this one repeats, "" for none.
	ReplayOf schema.CallID `json:"replay_of,omitempty"`

	// Private is sealed: what people and servers said, while it is stored. It is nil in a record
	// that was read.
	Private []byte `json:"private,omitempty"`

	// Forgotten says that the retention of its tenant has ended. Such a record counts like none;
	// nothing else is left of it than its ids, its state and its times.
	Forgotten bool `json:"forgotten,omitempty"`

	// Write is a random mark of the write that made this record. A writer that
	// lost the reply knows its own write by it.
	Write string `json:"write,omitempty"`
}

// Edited says that other arguments were approved than were asked for. The bytes
// are stored with [Ledger.PutEdited].
type Edited struct {
	By              string `json:"by"`
	ArgumentsDigest string `json:"arguments_digest"`
	// Size is how many bytes they have; 0 in records of versions before.
	Size   int64     `json:"size,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// DecisionKind is what a person did.
type DecisionKind string

const (
	Approve DecisionKind = "approve"
	Deny    DecisionKind = "deny"
	Extend  DecisionKind = "extend"
	Revoke  DecisionKind = "revoke"
	Edit    DecisionKind = "edit"
)

// Decision is one person's answer. Decisions are appended, never changed.
type Decision struct {
	By      string       `json:"by"`
	Owner   string       `json:"owner,omitempty"`
	Groups  []string     `json:"groups,omitempty"`
	Kind    DecisionKind `json:"kind"`
	Reason  string       `json:"reason,omitempty"`
	At      time.Time    `json:"at"`
	Channel string       `json:"channel,omitempty"` // web, slack, api …
	// Allow is what the person allows to run from now on without a question.
	Allow *Allow `json:"allow,omitempty"`
}

// Spent says that the token was spent.
type Spent struct {
	Attempt string    `json:"attempt"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
}

// Runner says which front door runs the call.
type Runner struct {
	FrontDoor string    `json:"front_door"`
	Started   time.Time `json:"started"`
}

// Bound returns the binding of what would run now: the edited arguments where
// they were edited, else what was asked for, at the level of the last assessment.
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

// Clone returns a copy that shares nothing that can be changed.
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

// IDFor returns the id of the approval of a call: "appr_" and what follows
// "call_" in the call's id, or a digest of a call id of another form.
func IDFor(callID schema.CallID) schema.ApprovalID {
	if tail, ok := strings.CutPrefix(string(callID), "call_"); ok && plainTail(tail) {
		return schema.ApprovalID("appr_" + tail)
	}
	sum := sha256.Sum256([]byte(callID))
	// Upper case, which no tail of a call id has: the two forms never meet.
	return schema.ApprovalID("appr_" + base32.StdEncoding.EncodeToString(sum[:])[:26])
}

func plainTail(s string) bool {
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
