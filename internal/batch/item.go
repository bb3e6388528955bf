package batch

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// item is one call of a journal on its way.
type item struct {
	rec     *journal.CallRecord
	call    *schema.Call
	attempt int    // the last one that was begun
	worker  string // the one that took it last
	// noted is the id under which the execution log has the call.
	noted string
	// waited says that a caller waits for this very call.
	waited bool
	// keyed says that it is known which call the key of this one stands for: twin,
	// or this one where that is empty.
	keyed bool
	twin  string
	// checked says that the gate has looked at the call a moment ago.
	checked bool
	// sentBack is how often its server put it off; see bare.
	sentBack int

	// parcel is the attempt that is hauled, nil for others; under the job's lock.
	parcel *dispatch.Parcel
	// span is begun already, where it is set.
	span *telemetry.Span

	begun atomic.Bool // an attempt has left
	waits atomic.Bool // it is held

	refused atomic.Int32 // whether its caller was told that it was not stored in time

	taken    context.Context // ends when its caller takes it back
	takeBack context.CancelFunc

	once   sync.Once
	over   chan struct{}         // closed when it is over here
	result *journal.ResultRecord // nil when it is over without a result: another owner has it
}

func (j *job) item(c *journal.CallRecord, attempt int) *item {
	taken, takeBack := context.WithCancel(context.Background())
	return &item{rec: c, attempt: attempt, over: make(chan struct{}), taken: taken, takeBack: takeBack, call: &schema.Call{
		ID: j.id(c), Method: c.Method, Server: c.Server, Tool: c.Tool, Arguments: c.Arguments, Timeout: c.Timeout,
		Extra: c.Extra, Principal: asker(j.m, c), Trace: c.Trace, Durable: true, Priority: j.m.Priority,
	}}
}

// errTaken is the end of a call that its caller took back before it left.
var errTaken = schema.Errorf(schema.KindCanceled, "The call was canceled before it left; it did not run.")

// taken is the end of a call that its caller took back before it left here. A tool that
// is safe to repeat leaves no intent, so of an earlier owner of the journal nobody knows
// whether it had sent the call.
func (j *job) taken(it *item) error {
	if !j.o.Resumed() || !j.repeatable(it) {
		return errTaken
	}
	e := schema.Errorf(schema.KindOutcomeUnknown, "The call was canceled, and another front door had it before, which may have run it; its tool is safe to repeat.")
	e.Retryable, e.CancelRequested = true, true
	return e
}

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
const methodRefused = bus.JournalRefused

// execute runs one call to its end and stores the result. It returns when that is
// stored, or the call is held, or it is for another owner to settle.
func (j *job) execute(it *item) {
	span := it.span
	if span == nil {
		span = j.span(it)
	}
	res, err := j.attempts(it)
	if span != nil {
		endSpan(span, res, err)
	}
	j.conclude(it, res, err)
}

// conclude stores how a call ended, if it ended here.
func (j *job) conclude(it *item, res *schema.Result, err error) {
	switch {
	case errors.Is(err, errHeld):
		return
	case res == nil && err == nil: // left to the next owner
		it.done(nil)
		return
	}
	j.store(it, j.record(it, res, err))
}

// store appends a result and tells who waits for it.
func (j *job) store(it *item, rec journal.ResultRecord) {
	stored := make(chan error, 1)
	j.o.ResultsThen(j.gone, func(err error) { stored <- err }, rec)
	j.stored(it, &rec, <-stored)
}

// stored tells who waits for a call what became of the storing of its result.
func (j *job) stored(it *item, rec *journal.ResultRecord, err error) {
	if err != nil {
		if j.gone.Err() == nil && schema.KindOf(err) != schema.KindConflict {
			j.r.o.Log.Warn("storing a result; the next owner settles the call", "call", it.call.ID, "error", err)
			j.halt(errLost) // what cannot be stored must not run on
		}
		it.done(nil)
		return
	}
	it.done(rec)
	if it.rec.CallbackURL != "" {
		j.r.o.Ended(End{Call: it.rec, Result: rec, CallID: it.call.ID, Journal: j.o.ID(), Principal: it.call.Principal})
	}
}

// record says how a call ended.
func (j *job) record(it *item, res *schema.Result, err error) journal.ResultRecord {
	now := time.Now()
	rec := journal.ResultRecord{Index: it.rec.Index, CallID: it.call.ID, CustomID: it.rec.CustomID, Attempt: it.attempt, Ended: now}
	if err == nil {
		rec.Outcome, rec.Body, rec.ToolError, rec.Worker = journal.Succeeded, res.Body, res.ToolError, res.Worker
		rec.Started, rec.Digest, rec.Input = now.Add(-res.Took), digest.Of(res.Body), asks(it, res)
		return rec
	}
	if it.rec.Method == methodRefused {
		return refusal(it.rec.Index, it.rec.CustomID, schema.AsError(err), now)
	}
	e := schema.AsError(err).WithCall(it.call.ID)
	rec.Outcome, rec.Error = journal.Failed, encodeError(e)
	var gave *deadError
	switch {
	case errors.As(err, &gave):
		rec.Outcome = journal.Dead
	case e.Kind == schema.KindOutcomeUnknown:
		rec.Outcome = journal.Unknown
	case e.Kind == schema.KindForbidden || e.Kind == schema.KindDisabled:
		rec.Outcome = journal.Denied
	case e.Kind == schema.KindExpired:
		rec.Outcome = journal.Expired
	case e.Kind == schema.KindCanceled:
		rec.Outcome = journal.Canceled
	}
	return rec
}

// refusal is the end of a line that was no call. Those of one reason are the same but
// for their index, so that a run of them takes little more room than one.
func refusal(index uint64, customID string, why *schema.Error, at time.Time) journal.ResultRecord {
	return journal.ResultRecord{Index: index, CustomID: customID, Outcome: journal.Failed, Ended: at.Truncate(time.Minute), Error: encodeError(why)}
}

func encodeError(e *schema.Error) []byte {
	text, err := json.Marshal(e)
	if err != nil {
		return []byte(`{"kind":"internal","detail":"The error cannot be written down."}`)
	}
	return text
}

// deadError is the last error of a call that is not tried any more.
type deadError struct{ last *schema.Error }

func (e *deadError) Error() string { return e.last.Detail }

func (e *deadError) Unwrap() error { return e.last }

// attempts tries the call until it is over. Both results are nil when it is not
// over and not to be tried here any more: it is held, or the job stops.
func (j *job) attempts(it *item) (*schema.Result, error) {
	if it.rec.Method == methodRefused {
		return nil, refusedLine(it.rec.Arguments)
	}
	if j.r.o.lost(j.m) && !it.isNote() {
		return nil, notKnown()
	}
	if it.refused.Load() == refusedInTime {
		return nil, errRefused
	}
	if proceed, err := j.claimKey(it); err != nil || !proceed {
		return nil, err
	}
	if err := j.arguments(it); err != nil {
		return nil, err
	}
	if it.isNote() {
		return it.note()
	}
	return j.try(it, &tries{began: time.Now()})
}

// refusedLine reads why a line was refused.
func refusedLine(arguments []byte) *schema.Error {
	e := &schema.Error{}
	if json.Unmarshal(arguments, e) != nil || e.Kind == "" {
		return schema.Errorf(schema.KindInvalidRequest, "The line cannot be read.")
	}
	return e
}

// tries is how far the attempts at a call have come.
type tries struct {
	began    time.Time
	failures int
	wait     time.Duration // before the next one
	doubt    error         // of an attempt that may have run, or nil
}

// try is attempts for a call of which all is known.
func (j *job) try(it *item, t *tries) (*schema.Result, error) {
	for {
		if !j.pause(it, t.wait) {
			if it.taken.Err() != nil {
				return nil, t.end(it, j.taken(it), true)
			}
			if j.late(it) {
				return nil, t.end(it, schema.Errorf(schema.KindExpired, "The time of the call was over before it could leave; it did not run."), false)
			}
			return nil, nil
		}
		if !it.checked {
			verdict, err := j.r.o.Gate.Check(it.call)
			if err == nil && verdict.Assessment.Approval != nil {
				res, err := j.hold(it, verdict)
				if err == nil || errors.Is(err, errHeld) || !schema.AsError(err).Retryable {
					return res, err
				}
				t.wait = pauses.Delay(t.failures) // until others were decided
				t.failures++
				continue
			}
			if err != nil {
				if !j.missing(it, err) || time.Since(t.began) > j.r.o.Patience {
					return nil, t.end(it, err, false)
				}
				t.wait = pauses.Delay(t.failures)
				t.failures++
				continue
			}
		}
		it.checked = false
		res, left, err := j.send(it)
		if err == nil {
			again, err := it.bare(res)
			if !again {
				return res, err
			}
			t.wait = pauses.Delay(t.failures)
			t.failures++
			continue
		}
		if res, err, over := j.failed(it, t, left, err); over {
			return res, err
		}
	}
}

// failed says what follows an attempt that failed: over that there is none, and the
// results are those of attempts.
func (j *job) failed(it *item, t *tries, left bool, err error) (res *schema.Result, end error, over bool) {
	e := schema.AsError(err)
	if doubt := dispatch.DoubtOf(err); doubt != nil {
		t.doubt = doubt
	}
	switch {
	case it.taken.Err() != nil && !left:
		return nil, t.end(it, j.taken(it), true), true
	case e.CancelRequested && j.gone.Err() != nil:
		return nil, nil, true // it was given up here, by nobody's wish: the next owner asks
	case j.stopping.Err() != nil && (e.Kind == schema.KindCanceled || !left):
		return nil, nil, true // it did not leave, or nobody is told what became of it: the next owner asks
	case !left && e.Kind == schema.KindCanceled:
		t.wait = pauses.Delay(t.failures) // its intent could not be written
	case e.CancelRequested && (it.call.Safe || errors.Is(err, dispatch.ErrStopped)):
		return nil, err, true // nobody knows more
	case e.Kind == schema.KindOutcomeUnknown && !it.call.Safe:
		res, end = j.settled(it, err)
		return res, end, true
	case e.Kind == schema.KindUnavailable || e.Kind == schema.KindServerFailed || e.Kind == schema.KindQuota || !left && j.missing(it, err):
		// It is proven that nothing started.
		if time.Since(t.began) > j.r.o.Patience {
			return nil, &deadError{t.end(it, err, false)}, true
		}
		t.wait = max(e.RetryAfter, pauses.Delay(t.failures))
	case e.Kind == schema.KindOutcomeUnknown:
		if it.attempt >= j.maxAttempts(it) {
			return nil, &deadError{e}, true
		}
		t.wait = pauses.Delay(t.failures)
	default:
		return nil, t.end(it, err, false), true
	}
	t.failures++
	return nil, nil, false
}

// end is how a call ends after its last attempt failed with err, or could not be made.
func (t *tries) end(it *item, err error, canceled bool) *schema.Error {
	return dispatch.EndOf(it.call, t.doubt, err, canceled)
}

// claimKey finds out whether the call is the one that its key stands for. Both
// results are nothing when that cannot be found out before the job stops.
func (j *job) claimKey(it *item) (proceed bool, err error) {
	for n := 0; it.rec.Key != "" && !it.keyed; n++ {
		ctx, cancel := bound(j.stopping)
		kept, mine, err := j.r.remember(ctx, it.rec.Key, "", it.call.ID, j.o.ID(), it.rec.Index)
		cancel()
		if it.keyed = err == nil; it.keyed {
			if it.twin = kept.CallID; mine {
				it.twin = ""
			}
		} else if !j.pause(it, pauses.Delay(n)) {
			if it.taken.Err() != nil {
				return false, j.taken(it)
			}
			return false, nil
		}
	}
	if it.twin != "" && it.twin != it.call.ID {
		return false, schema.Errorf(schema.KindCanceled, "The same Idempotency-Key came twice at once; call %s runs for both.", it.twin)
	}
	return true, nil
}

func (j *job) maxAttempts(it *item) int {
	if n := it.rec.MaxAttempts; n > 0 {
		return n
	}
	return j.r.o.Attempts
}

// missing says that the server of a call is not there, which may pass: its workers
// are restarting.
func (j *job) missing(it *item, err error) bool {
	switch schema.KindOf(err) {
	case schema.KindUnavailable:
		return true
	case schema.KindNotFound:
		_, err := j.r.o.Catalog.Server(it.call.Server)
		return err != nil
	}
	return false
}

// pauses are between the attempts of one call.
var pauses = backoff.Policy{First: 100 * time.Millisecond, Max: 15 * time.Second, Jitter: 0.5}

// pause waits; false means that the call must not be tried any more.
func (j *job) pause(it *item, d time.Duration) bool {
	if j.stopping.Err() != nil || it.taken.Err() != nil || j.late(it) {
		return false
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !j.late(it)
	case <-it.taken.Done():
		return false
	case <-j.stopping.Done():
		return false
	}
}

// late says that the time in which the call may leave is over.
func (j *job) late(it *item) bool {
	return !it.rec.Expires.IsZero() && time.Now().After(it.rec.Expires)
}

// arguments brings in argument bytes that lie beside the log.
func (j *job) arguments(it *item) error {
	if it.call.Arguments != nil || it.rec.ArgumentsObject.Size == 0 {
		return nil
	}
	ctx, cancel := bound(j.gone)
	defer cancel()
	var err error
	it.call.Arguments, err = j.r.o.Store.Arguments(ctx, j.o.ID(), it.rec)
	return err
}

// place is what the execution log says of a call beside the call itself. Its own id
// there is new: what stands in the log is found by the time of an id, and durable
// calls are found in their journal.
func (j *job) place(it *item) *record.Record {
	if it.noted == "" {
		it.noted = schema.NewCallID()
	}
	rec := &record.Record{ID: it.noted, Attempt: it.attempt + 1, Known: it.call.ID, CustomID: it.rec.CustomID}
	if j.m.Kind == journal.Batch {
		rec.Batch, rec.Index = j.m.ID, int64(it.rec.Index)
	}
	return rec
}

// send makes one attempt. left says that the intent was written, so that the call
// may have started. A job that stops, or a caller, takes the call back as long as it
// has not left.
func (j *job) send(it *item) (res *schema.Result, left bool, err error) {
	ctx, cancel := context.WithCancel(j.gone)
	defer cancel()
	var mu sync.Mutex
	recall := func() {
		mu.Lock()
		defer mu.Unlock()
		if !left {
			cancel()
		}
	}
	defer context.AfterFunc(j.stopping, recall)()
	defer context.AfterFunc(it.taken, recall)()
	it.call.Bulk = !it.waited
	it.call.Chosen = func(worker string) {
		mu.Lock()
		defer mu.Unlock()
		left = false // an attempt before this one did not start, or may be repeated
		if ctx.Err() != nil {
			return
		}
		it.attempt++
		it.worker = worker
		it.begun.Store(true)
		if it.call.Safe || !intents {
			left = true // it may be repeated: nobody needs to know that it left
			return
		}
		writing, stop := bound(ctx)
		err := j.o.Intend(writing, journal.Intent(it.rec.Index, it.attempt, worker))
		stop()
		if err != nil || !j.o.Held() {
			cancel() // without its intent it must not leave
			j.noIntent(1, err)
			return
		}
		left = true
	}
	res, err = j.r.o.Gate.Run(ctx, it.call, j.place(it))
	mu.Lock()
	defer mu.Unlock()
	return res, left, err
}

// noIntent tells the operator why calls wait: their intents cannot be written. They are
// tried again, unless another front door has the journal, which err does not say.
func (j *job) noIntent(calls int, err error) {
	if err != nil && j.gone.Err() == nil {
		j.r.o.Log.Warn("intents cannot be written, so their calls do not leave yet", "journal", j.o.ID(), "calls", calls, "error", err)
	}
}
