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

// item is one call of a journal on its way.
type item struct {
	rec     *journal.CallRecord
	call    *schema.Call
	attempt int             // the last one that was begun
	worker  schema.WorkerID // the one that took it last
	// noted is the id under which the execution log has the call.
	noted schema.CallID
	// waited says that a caller waits for this very call.
	waited bool
	// keyed says that it is known which call the key of this one stands for: twin,
	// or this one where that is empty.
	keyed bool
	twin  schema.CallID
	// checked says that the gate has looked at the call a moment ago, judged what it decided
	// then. Of a call that was held it is the zero value.
	checked bool
	judged  records.Judged
	// sentBack is how often its server put it off; see bare.
	sentBack int

	// async is the attempt in the pipeline, nil for others; the table of calls guards it.
	async *dispatch.AsyncCall
	// span is begun already, where it is set.
	span *telemetry.Span

	begun atomic.Bool // an attempt has left
	waits atomic.Bool // it is held

	refused atomic.Int32 // whether its caller was told that it was not stored in time

	taken    context.Context // ends when its caller takes it back
	takeBack context.CancelFunc

	once   sync.Once
	over   chan struct{}         // closed when it has ended here
	result *journal.ResultRecord // nil when it has ended without a result: another owner has it
}

// errTaken is the end of a call that its caller took back before it left.
var errTaken = schema.Errorf(schema.KindCanceled, "The call was canceled before it was sent; it did not run.")

// done ends an item here.
func (it *item) done(res *journal.ResultRecord) {
	it.once.Do(func() {
		it.result = res
		close(it.over)
		it.takeBack() // there is nothing left to take back
	})
}

// methodRefused marks a line of a batch that could not be taken: its arguments are
// the error. It has its place in the journal, so that every line gets an answer.
const methodRefused = journal.MethodRefused

// refusedLine reads why a line was refused.
func refusedLine(arguments []byte) *schema.Error {
	e := &schema.Error{}
	if json.Unmarshal(arguments, e) != nil || e.Kind == "" {
		return schema.Errorf(schema.KindInvalidRequest, "The line cannot be read.")
	}
	return e
}

// late says that the time in which the call may leave has ended.
func (it *item) late() bool {
	return !it.rec.Expires.IsZero() && time.Now().After(it.rec.Expires)
}
