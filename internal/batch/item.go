package batch

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// item is one call of a journal while it is processed here.
type item struct {
	rec     *journal.CallRecord
	call    *schema.Call
	attempt int             // number of the last attempt
	worker  schema.WorkerID // worker of the last attempt
	// unstarted reports that the last attempt certainly did not start, although its intent is, or may
	// be, stored.
	unstarted bool
	// noted is the id of the call in the call records; see recordID.
	noted schema.CallID
	// listed reports whether the call has a record under that id, and recorded is the highest number of
	// an attempt in it.
	listed   bool
	recorded int
	// waited reports whether a caller waits for this call.
	waited bool
	// keyed reports whether the owner of the idempotency key is known: it is the call twin, or this
	// call if twin is empty.
	keyed bool
	twin  schema.CallID
	// checked reports that the gate has just checked the call; judged is its decision, and the zero
	// value for a call that was held.
	checked bool
	judged  records.PolicyDecision
	// sentBack counts the retries that its server requested; see bare.
	sentBack int

	// async is the attempt in the pipeline, or nil. It is protected by the call table.
	async *dispatch.AsyncCall
	// span, if set, has already begun.
	span *telemetry.Span

	begun atomic.Bool // an attempt was sent
	waits atomic.Bool // it is held

	refused atomic.Int32 // one of refusedNot, refusedInTime and refusedNever

	taken    context.Context // ends when its caller cancels it
	takeBack context.CancelFunc

	once   sync.Once
	over   chan struct{}         // closed when its processing here has ended
	result *journal.ResultRecord // nil if it ended here without a result: another owner has it
}

// errTaken ends a call that its caller canceled before it was sent.
var errTaken = schema.Errorf(schema.KindCanceled, "The call was canceled before it was sent; it did not run.")

// done ends the processing of an item here.
func (it *item) done(res *journal.ResultRecord) {
	it.once.Do(func() {
		it.result = res
		close(it.over)
		it.takeBack() // releases the context
	})
}

// recordID returns the id of the call in the call records, which differs from that of the call: records
// are found by the time of their ids, and durable calls by their journal.
func (it *item) recordID() schema.CallID {
	if it.noted == "" {
		it.noted = schema.NewCallID()
	}
	return it.noted
}

// isOver reports whether the processing of the item here has ended.
func (it *item) isOver() bool {
	select {
	case <-it.over:
		return true
	default:
		return false
	}
}

// methodRefused marks a refused line of a batch; its arguments are the error. It has an index in
// the journal, so that every line gets a result.
const methodRefused = journal.MethodRefused

// refusedLine decodes the error of a refused line.
func refusedLine(arguments []byte) *schema.Error {
	e := &schema.Error{}
	if json.Unmarshal(arguments, e) != nil || e.Kind == "" {
		return schema.Errorf(schema.KindInvalidRequest, "The line cannot be read.")
	}
	return e
}

// late reports whether the call has expired.
func (it *item) late() bool {
	return !it.rec.Expires.IsZero() && time.Now().After(it.rec.Expires)
}
