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

// states lists every state that is recorded; on the wire a state is its place here.
func states() [9]schema.State {
	return [...]schema.State{
		schema.StateHeld, schema.StateQueued, schema.StateRunning, schema.StateUnknown, schema.StateDenied, schema.StateExpired, schema.StateCanceled, schema.StateFailed, schema.StateSucceeded,
	}
}

// order says which of two records of one attempt tells of a later time. The ends share a
// place, but for unknown, which a late answer or a person may settle.
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

// Digest is a SHA-256; the zero value means that there is none.
type Digest [sha256.Size]byte

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// String returns the digest as pkg/schema/digest spells it, "" when there is
// none.
func (d Digest) String() string {
	if d == (Digest{}) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(d[:])
}

// Record is what is known of one call at one time. Times are unix nanoseconds;
// 0 is not known. It holds neither arguments nor results.
type Record struct {
	// ID is the call's, in the form of [schema.NewCallID]; its time says where
	// the record is kept.
	ID schema.CallID
	// Principal asked for the call; Owner is who stands behind that name.
	Principal, Owner string
	// Tenant is that of the principal, "" for the default one.
	Tenant schema.TenantID
	// Server, Tool and Method say what was to run. An empty method is
	// [schema.MethodCallTool].
	Server       schema.ServerID
	Tool, Method string
	State        schema.State
	// ToolError is true when the tool itself answered with an error.
	ToolError bool
	// Durable calls are kept elsewhere too: what a front door that died leaves
	// of them is taken over by another.
	Durable bool
	// Replayed is true when an idempotency key brought the result of an earlier
	// request.
	Replayed bool
	// CancelRequested is true for an unknown call that was asked to stop while it ran.
	CancelRequested bool
	// Arguments and Result are digests; the sizes are in bytes.
	Arguments, Result          Digest
	ArgumentBytes, ResultBytes int64
	// Error is empty, or why the call has no result; Detail is the sentence for
	// it, without argument values.
	Error  schema.Kind
	Detail string
	// Admitted is when it came in, Started when its last attempt left, Ended when
	// its end was known, Changed when it came into this state.
	Admitted, Started, Ended, Changed int64
	// Took is the time at the MCP server, as the worker saw it.
	Took   time.Duration
	Worker schema.WorkerID
	// FrontDoor is who wrote the record; the recorder fills it in.
	FrontDoor string
	// Attempt counts from 1; 0 is a call that has not started. A record of a
	// higher attempt is newer, so each record carries the count so far.
	Attempt int
	// Known is the id by which callers know the call, where that is another one:
	// that of a call in a journal.
	Known schema.CallID
	// Batch, Index and CustomID are the call's place in a batch.
	Batch    schema.BatchID
	Index    int64
	CustomID string
	// Approval is the approval under which it waits or ran.
	Approval schema.ApprovalID
	Judged
	// ReplayOf is the call whose arguments it has, where it was started as a replay.
	ReplayOf schema.CallID
	// Trace is the trace that has the spans of the call; zero where it was not traced, or
	// not sampled.
	Trace TraceID
}

// TraceID is the trace-id of https://www.w3.org/TR/trace-context/; the zero value means
// that there is none.
type TraceID [16]byte

// String returns the id as 32 hex digits, "" when there is none.
func (t TraceID) String() string {
	if t == (TraceID{}) {
		return ""
	}
	return hex.EncodeToString(t[:])
}

// Judged is what the policy decided on a call, and for whom. The zero value says that the
// policy was not asked, or that this is not known.
type Judged struct {
	Decision risk.Decision
	// Rule is the rule that decided, "" for none or where it is not known.
	Rule string
	// Groups are those of the principal; see [JoinGroups]. They count where Decision is set.
	Groups string
}

// groupEnd ends each group in [Judged.Groups].
const groupEnd = "\x00"

// JoinGroups puts groups into one text.
func JoinGroups(groups []string) string {
	if len(groups) == 0 {
		return ""
	}
	return strings.Join(groups, groupEnd) + groupEnd
}

// SplitGroups returns the groups of a text of [JoinGroups]. whole is false where the text
// was truncated, and groups are missing.
func SplitGroups(text string) (groups []string, whole bool) {
	if text == "" {
		return nil, true
	}
	text, whole = strings.CutSuffix(text, groupEnd)
	return strings.Split(text, groupEnd), whole
}

// Newer says whether r, a record of the same call, tells of a later time than o:
// a later attempt; else the state that follows the other; else the later of
// both.
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
	return stateByte(r.State) > stateByte(o.State) // so that the order of reading does not matter
}

// merge returns what two records of one call say together: the newer one, with
// what it leaves out of who, what and when from the older. r was read first.
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
	fill(&r.Judged, old.Judged)
	if r.Decision == old.Decision {
		fill(&r.Rule, old.Rule) // whoever runs an approved call does not know it
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
	// maxName bounds one name in a record, maxDetail the sentence; longer ones
	// are cut. maxGroups is for all groups of a principal.
	maxName   = 256
	maxDetail = 512
	maxGroups = 2048
)

// cut shortens the texts of a record, and lets go of what they were part of.
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
