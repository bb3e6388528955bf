package journal

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Outcome is the outcome of a call of a journal, according to its log.
type Outcome byte

// Numbers must never be reused.
const (
	Succeeded Outcome = 1 // the tool answered; ResultRecord.ToolError reports whether with an error
	Failed    Outcome = 2 // it did not run, or certainly failed
	Denied    Outcome = 3 // denied by policy or a person
	Expired   Outcome = 4 // it expired before it was sent
	Canceled  Outcome = 5 // canceled by the caller before it was sent
	Unknown   Outcome = 6 // it was sent, and its outcome is unknown
	Dead      Outcome = 7 // every attempt failed and there are no more
)

var outcomeNames = [...]string{"", "succeeded", "failed", "denied", "expired", "canceled", "unknown", "dead"}

// outcomeCount is the number of outcomes, including 0 for none yet.
const outcomeCount = len(outcomeNames)

// String returns the API name, or "" for no outcome.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unreadable"
}

// Settle is a person's decision on a call whose outcome is unknown or dead.
type Settle byte

const (
	// SettleDone sets the outcome of the call to that of the record.
	SettleDone Settle = 1
	// SettleAgain orders another run, with attempts after that of the record.
	SettleAgain Settle = 2
)

// Object refers to data outside the log that is too large for a record. The zero value refers to
// nothing.
type Object struct {
	Name   string // a plain token, unique in its journal
	SHA256 string // hex
	Size   int64
}

// CallRecord is an accepted call.
type CallRecord struct {
	// Index is the position of the call in its journal. It is not encoded in the record: it
	// follows from the head of the message.
	Index    uint64
	ID       schema.CallID
	CustomID string
	Method   string // empty means tools/call
	Server   schema.ServerID
	Tool     string
	// ToolDigest is the digest of the tool definition that the arguments were validated against.
	ToolDigest string
	// Timeout limits one run. 0 means the server's timeout.
	Timeout time.Duration
	// Expires is the time after which the call must not be sent. Zero means that of the journal.
	Expires time.Time
	// Accepted is the admission time.
	Accepted time.Time
	// Safe is set if the call may be repeated. Held is set if the call waits for the approval
	// named by Approval.
	Safe bool
	Held bool
	// MaxAttempts limits the number of attempts. 0 means the runner's limit.
	MaxAttempts int
	// Principal is the requester, if it is not the journal's principal.
	Principal schema.Principal
	// Trace is the trace context of the caller.
	Trace       schema.Trace
	CallbackURL string
	// Key is the hash with which [Store.Remember] stores the idempotency key of the call, if it
	// has one.
	Key      string
	Approval string
	Warrant  []byte
	// ReplayOf is [schema.Call].ReplayOf.
	ReplayOf schema.CallID
	// Extra is [schema.Call].Extra.
	Extra []byte
	// Arguments holds the argument bytes, or nil if they are in ArgumentsObject.
	Arguments       []byte
	ArgumentsObject Object
}

// Range is a range of Count indexes.
type Range struct{ First, Count uint64 }

// IntentRecord records that calls are about to be sent.
type IntentRecord struct {
	Ranges []Range
	// Attempt counts from 1. Worker is the target, if it is known.
	Attempt int
	Worker  schema.WorkerID
	// Void cancels the intent: the calls are proven not to have started.
	Void bool
}

// ResultRecord is the result of a call, or a person's decision on one.
type ResultRecord struct {
	Index uint64
	// Sequence and Position locate the record: its message, and the number of records before it
	// in that message. They are not encoded in the record; readers set them.
	Sequence uint64
	Position uint32
	Outcome  Outcome
	Attempt  int
	CallID   schema.CallID
	CustomID string
	// Tenant is the tenant of the call's principal, for a result in a lane. It is empty for
	// results of a batch, which belong to the batch's tenant, and for results of version 0.1.
	Tenant schema.TenantID
	// ToolError is set if the tool returned an error, Input if it requested input; see
	// [schema.Result].
	ToolError bool
	Input     bool
	Worker    schema.WorkerID
	// Started is when the call was sent, Ended when it had ended.
	Started, Ended time.Time
	// Digest is the digest of the entire body, if there is one.
	Digest string
	// Body is the result of a successful call. Error is the schema.Error of any other, as JSON.
	// Both are nil if the data is in BodyObject.
	Body       []byte
	Error      []byte
	BodyObject Object
	// Settle, By and Reason are a person's decision. Ended is its time.
	Settle Settle
	By     string
	Reason string
	// Recorded is the id under which the call records list the call (records.Record.ID), for an
	// outcome that a person may settle. It is empty if it is not known.
	Recorded schema.CallID
}

// Intent returns the record for one call that is about to be sent.
func Intent(index uint64, attempt int, worker schema.WorkerID) IntentRecord {
	return IntentRecord{Ranges: []Range{{First: index, Count: 1}}, Attempt: attempt, Worker: worker}
}

// Intents returns the record for many calls, whose indexes must be ascending.
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
