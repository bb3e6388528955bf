package records

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// states lists every recorded state. The index of a state is its wire encoding.
func states() [9]schema.State {
	return [...]schema.State{
		schema.StateHeld, schema.StateQueued, schema.StateRunning, schema.StateUnknown, schema.StateDenied, schema.StateExpired, schema.StateCanceled, schema.StateFailed, schema.StateSucceeded,
	}
}

// order ranks the states within one attempt; a higher rank is later. All final states have the
// same rank except unknown, because a late response or a person may settle it.
func order(s schema.State) int {
	switch s {
	case schema.StateHeld:
		return 0
	case schema.StateQueued:
		return 1
	case schema.StateRunning, schema.StateSuspended:
		return 2
	case schema.StateUnknown:
		return 3
	}
	return 4
}

// Digest is a SHA-256 digest. The zero value means none.
type Digest [sha256.Size]byte

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// String returns the digest in the format of pkg/schema/digest, or "" for the zero value.
func (d Digest) String() string {
	if d == (Digest{}) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(d[:])
}

// Record is a snapshot of one call. Times are Unix nanoseconds; 0 means unknown. It contains neither
// arguments nor results.
type Record struct {
	// ID is the call id, in the format of [schema.NewCallID]. Its time determines the slot of
	// the record.
	ID schema.CallID
	// Principal requested the call. Owner is the person or service behind that name.
	Principal, Owner string
	// Tenant is the principal's tenant. The default tenant is "".
	Tenant schema.TenantID
	// Server, Tool and Method identify the requested operation. An empty Method means
	// [schema.MethodCallTool].
	Server       schema.ServerID
	Tool, Method string
	State        schema.State
	// ToolError is set if the tool itself returned an error.
	ToolError bool
	// Durable calls are also stored elsewhere. If their front door dies, another one takes
	// them over.
	Durable bool
	// Replayed is set if the call returned the result of an earlier request with the same
	// idempotency key.
	Replayed bool
	// Dropped is set if the call has another record instead, so this one is neither listed nor counted.
	Dropped bool
	// CancelRequested is set for a call with an unknown outcome that was asked to stop while it ran.
	CancelRequested bool
	// Arguments and Result are digests; sizes are in bytes.
	Arguments, Result          Digest
	ArgumentBytes, ResultBytes int64
	// Error is the reason why the call has no result, or "". Detail is its message, without
	// argument values.
	Error  schema.Kind
	Detail string
	// Admitted is the admission time, Started the time at which the last attempt was sent, Ended
	// the time at which the end became known, Changed the time of the last state change.
	Admitted, Started, Ended, Changed int64
	// Took is the time at the MCP server, as measured by the worker.
	Took   time.Duration
	Worker schema.WorkerID
	// FrontDoor is the id of the front door that wrote the record; the recorder sets it.
	FrontDoor string
	// Attempt counts from 1; 0 means that the call has not started. A record with a higher
	// attempt is newer, so each record carries the count so far.
	Attempt int
	// Known is the id that callers use for the call if it differs from ID, as for a call in a
	// journal.
	Known schema.CallID
	// Batch, Index and CustomID locate the call in a batch.
	Batch    schema.BatchID
	Index    int64
	CustomID string
	// Approval is the approval for which the call waits or under which it ran.
	Approval schema.ApprovalID
	PolicyDecision
	// ReplayOf is the call that this call replays, if any.
	ReplayOf schema.CallID
	// Trace is the trace that contains the spans of the call. It is zero if the call was not
	// traced or not sampled.
	Trace TraceID
}

// TraceID is the trace-id of https://www.w3.org/TR/trace-context/. The zero value means none.
type TraceID [16]byte

// String returns the id as 32 hex digits, or "" for the zero value.
func (t TraceID) String() string {
	if t == (TraceID{}) {
		return ""
	}
	return hex.EncodeToString(t[:])
}

// PolicyDecision is the policy's decision on a call. The zero value means that the policy was not evaluated,
// or that the decision is unknown.
type PolicyDecision struct {
	Decision risk.Decision
	// Rule is the rule that decided, or "" if there was none or it is unknown.
	Rule string
	// Groups are the principal's groups, joined by [JoinGroups]. They are valid if Decision is
	// set.
	Groups string
}

// groupEnd terminates each group in [PolicyDecision.Groups].
const groupEnd = "\x00"

// JoinGroups encodes groups as one string.
func JoinGroups(groups []string) string {
	if len(groups) == 0 {
		return ""
	}
	return strings.Join(groups, groupEnd) + groupEnd
}

// SplitGroups decodes a string of [JoinGroups]. whole is false if the string was truncated and
// groups are missing.
func SplitGroups(text string) (groups []string, whole bool) {
	if text == "" {
		return nil, true
	}
	text, whole = strings.CutSuffix(text, groupEnd)
	return strings.Split(text, groupEnd), whole
}

// Newer reports whether r is newer than o, a record of the same call: it has a higher attempt, else a
// later state, else a later change.
func (r *Record) Newer(o *Record) bool {
	if r.Attempt != o.Attempt {
		return r.Attempt > o.Attempt
	}
	if a, b := order(r.State), order(o.State); a != b {
		return a > b
	}
	if r.Changed != o.Changed {
		return r.Changed > o.Changed
	}
	return stateByte(r.State) > stateByte(o.State) // makes the result independent of the reading order
}

// merge combines two records of one call: it returns the newer one, and fills fields that it omits
// from the older one. r was read first.
func merge(r, next *Record) *Record {
	old := next
	if !r.Newer(next) {
		r, old = next, r
	}
	fill(&r.Principal, old.Principal)
	fill(&r.Owner, old.Owner)
	fill(&r.Tenant, old.Tenant)
	fill(&r.Server, old.Server)
	fill(&r.Tool, old.Tool)
	fill(&r.Method, old.Method)
	fill(&r.Arguments, old.Arguments)
	fill(&r.ArgumentBytes, old.ArgumentBytes)
	fill(&r.Batch, old.Batch)
	fill(&r.Index, old.Index)
	fill(&r.CustomID, old.CustomID)
	fill(&r.Known, old.Known)
	fill(&r.Approval, old.Approval)
	fill(&r.PolicyDecision, old.PolicyDecision)
	if r.Decision == old.Decision {
		fill(&r.Rule, old.Rule) // the runner of an approved call does not know it
	}
	fill(&r.ReplayOf, old.ReplayOf)
	fill(&r.Trace, old.Trace)
	if old.Admitted != 0 && (r.Admitted == 0 || old.Admitted < r.Admitted) {
		r.Admitted = old.Admitted
	}
	r.Durable = r.Durable || old.Durable
	r.Replayed = r.Replayed || old.Replayed
	if r.Attempt == old.Attempt {
		fill(&r.Started, old.Started)
		fill(&r.Worker, old.Worker)
	}
	return r
}

func fill[T comparable](to *T, from T) {
	var zero T
	if *to == zero {
		*to = from
	}
}

const (
	// maxName limits each name in a record, maxDetail the error message, and maxGroups all groups
	// of a principal, in bytes. Longer texts are truncated.
	maxName   = 256
	maxDetail = 512
	maxGroups = 2048
)

// cut truncates the texts of a record. Truncated texts are cloned to release the memory of the
// original.
func (r *Record) cut() {
	short(&r.Principal, maxName)
	short(&r.Owner, maxName)
	short(&r.Tenant, maxName)
	short(&r.Server, maxName)
	short(&r.Tool, maxName)
	short(&r.Method, maxName)
	short(&r.Error, maxName)
	short(&r.Detail, maxDetail)
	short(&r.Worker, maxName)
	short(&r.Batch, maxName)
	short(&r.CustomID, maxName)
	short(&r.Known, maxName)
	short(&r.Approval, maxName)
	short(&r.Rule, maxName)
	short(&r.Groups, maxGroups)
	short(&r.ReplayOf, maxName)
}

func short[S ~string](text *S, most int) {
	if len(*text) > most {
		*text = S(strings.Clone(string(truncate.Head(*text, most)))) // the rest is not kept
	}
}
