package journal

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Outcome is how a call of a journal ended, as far as its log tells.
type Outcome byte

// A number is never given a second meaning.
const (
	Succeeded Outcome = 1 // the tool answered; ResultRecord.ToolError says whether with its own error
	Failed    Outcome = 2 // it did not run, or ran and failed for sure
	Denied    Outcome = 3 // policy or a person denied it
	Expired   Outcome = 4 // its time had ended before it left
	Canceled  Outcome = 5 // the caller took it back before it left
	Unknown   Outcome = 6 // it left, and nobody knows what became of it
	Dead      Outcome = 7 // every attempt failed and no more is made
)

var outcomeNames = [...]string{"", "succeeded", "failed", "denied", "expired", "canceled", "unknown", "dead"}

// outcomeCount is how many outcomes there are, with 0 for none yet.
const outcomeCount = len(outcomeNames)

// String returns the word of the API, "" for no outcome.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unreadable"
}

// Settle is a person's word about a call whose outcome is unknown or dead.
type Settle byte

const (
	// SettleDone: the record's outcome holds from now on.
	SettleDone Settle = 1
	// SettleAgain: the call is to run again, with attempts after the record's.
	SettleAgain Settle = 2
)

// Object points at bytes that are too large for a record; they are put
// outside the log. The zero value points at nothing.
type Object struct {
	Name   string // a plain token, unique in its journal
	SHA256 string // hex
	Size   int64
}

// CallRecord is an accepted call.
type CallRecord struct {
	// Index is the place of the call in its journal. It is not written: the
	// message says where its first call stands.
	Index    uint64
	ID       schema.CallID
	CustomID string
	Method   string // empty: tools/call
	Server   schema.ServerID
	Tool     string
	// ToolDigest is the digest of the definition that the arguments were checked against.
	ToolDigest string
	// Timeout bounds one run; 0 leaves it to the server.
	Timeout time.Duration
	// Expires is when the call may not leave any more; zero: when the journal expires.
	Expires time.Time
	// Accepted is when it was admitted.
	Accepted time.Time
	// Safe says that the call may be repeated. Held says that an approval is
	// waited for: Approval names it.
	Safe bool
	Held bool
	// MaxAttempts is how often a run may be tried; 0 leaves it to the runner.
	MaxAttempts int
	// Principal is who asks, where it is not the journal's principal.
	Principal schema.Principal
	// Trace is the trace context of the caller.
	Trace       schema.Trace
	CallbackURL string
	// Key is the hash under which [Streams.PutKey] remembers the call, for a
	// call with an Idempotency-Key.
	Key      string
	Approval string
	Warrant  []byte
	// ReplayOf is [schema.Call].ReplayOf.
	ReplayOf schema.CallID
	// Extra is [schema.Call].Extra.
	Extra []byte
	// Arguments are the argument bytes, or nil where ArgumentsObject has them.
	Arguments       []byte
	ArgumentsObject Object
}

// Range is a run of Count indexes.
type Range struct{ First, Count uint64 }

// IntentRecord says that calls are about to leave.
type IntentRecord struct {
	Ranges []Range
	// Attempt counts from 1. Worker is where they go, if that is known.
	Attempt int
	Worker  schema.WorkerID
	// Void takes the intent back: the calls are proven not to have started.
	Void bool
}

// ResultRecord is the end of a call, of an attempt that ended it, or a person's
// word about one.
type ResultRecord struct {
	Index uint64
	// Sequence and Position say where the record stands: in which message, and how
	// many records of it are before. They are not written: who reads knows them.
	Sequence uint64
	Position uint32
	Outcome  Outcome
	Attempt  int
	CallID   schema.CallID
	CustomID string
	// Tenant is that of the call's principal, for a result in a lane; those of a batch have
	// none, for it is the batch's. Those of version 0.1 have none either.
	Tenant schema.TenantID
	// ToolError says that the tool answered with its own error, Input that it
	// answered with a question; see [schema.Result].
	ToolError bool
	Input     bool
	Worker    schema.WorkerID
	// Started is when the call left, Ended when it had ended.
	Started, Ended time.Time
	// Digest is the digest of the whole body, if one was made.
	Digest string
	// Body is the result of a call that succeeded, Error the schema.Error of one that
	// did not, as JSON. Both are nil where BodyObject has it.
	Body       []byte
	Error      []byte
	BodyObject Object
	// Settle, By, Reason: a person's word. Ended is when it was said.
	Settle Settle
	By     string
	Reason string
}

// Intent is the record for one call that is about to leave.
func Intent(index uint64, attempt int, worker schema.WorkerID) IntentRecord {
	return IntentRecord{Ranges: []Range{{First: index, Count: 1}}, Attempt: attempt, Worker: worker}
}

// Intents is the record for many calls, whose indexes must ascend.
func Intents(indexes []uint64, attempt int, worker schema.WorkerID) IntentRecord {
	r := IntentRecord{Attempt: attempt, Worker: worker}
	for _, i := range indexes {
		if n := len(r.Ranges); n > 0 && r.Ranges[n-1].First+r.Ranges[n-1].Count == i {
			r.Ranges[n-1].Count++
			continue
		}
		r.Ranges = append(r.Ranges, Range{First: i, Count: 1})
	}
	return r
}
