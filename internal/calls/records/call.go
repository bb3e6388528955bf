package records

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Call is a call that runs at this front door, as the recorder knows it. It is
// ended once.
type Call struct {
	rec   Record
	shard *shard // nil when it is in no list and cannot be ended
	owner *Recorder
	// arguments are to be hashed when the record is stored.
	arguments     []byte
	before, after *Call
	young, ended  bool
}

// Outcome is what became of a call. The zero value of each field says nothing
// of it.
type Outcome struct {
	// State, when empty, is what Result and Err say.
	State schema.State
	// At is when that was known; the zero time means now.
	At     time.Time
	Result *schema.Result
	Err    error
	// Attempt is how often the call was started, 1 when there is a result.
	Attempt int
	// Digest is of the result's bytes.
	Digest Digest
	// Approval is the approval for which the call waits now.
	Approval string
	// Replayed is true for the result of an earlier request.
	Replayed bool
}

// Begin notes that a call runs. rec is copied; its state is Running if it has
// none, and it was admitted now if it does not say when. The call must be ended,
// else it is shown as running as long as this front door lives.
func (r *Recorder) Begin(rec *Record) *Call {
	return r.BeginWith(rec, nil, false)
}

// BeginWith is Begin with the digest and size of the arguments filled in. Of
// more than 64 KiB the digest is made later, off the call's path, when stay says
// that the bytes will not be changed, and left out otherwise.
func (r *Recorder) BeginWith(rec *Record, arguments []byte, stay bool) *Call {
	c := &Call{rec: *rec, owner: r, shard: r.shardOf(rec.ID), young: true}
	c.prepare(schema.StateRunning)
	if arguments != nil {
		c.rec.ArgumentBytes = int64(len(arguments))
		if len(arguments) <= hashBytes {
			c.rec.Arguments = DigestOf(arguments)
		} else if stay {
			c.arguments = r.keep(arguments)
		}
	}
	sh := c.shard
	sh.mu.Lock()
	sh.young.push(c)
	sh.mu.Unlock()
	r.rouse()
	return c
}

// prepare fills in what the teller left open.
func (c *Call) prepare(state schema.State) {
	if c.rec.State == "" {
		c.rec.State = state
	}
	if c.rec.Admitted == 0 || c.rec.Changed == 0 {
		now := time.Now().UnixNano()
		fill(&c.rec.Admitted, now)
		fill(&c.rec.Changed, now)
	}
	c.rec.cut()
}

// keep returns the bytes while there is room to hold on to them, else nil.
func (r *Recorder) keep(arguments []byte) []byte {
	n := int64(len(arguments))
	if r.kept.Add(n) > keptBytes {
		r.kept.Add(-n)
		return nil
	}
	return arguments
}

// End notes what became of the call. A second end is passed over, and so is any
// on a nil Call.
func (c *Call) End(o Outcome) {
	if c == nil {
		return
	}
	if o.At.IsZero() {
		o.At = time.Now()
	}
	sh := c.shard
	sh.mu.Lock()
	if c.ended {
		sh.mu.Unlock()
		return
	}
	c.ended = true
	known := !c.young // others may have read that it runs
	if c.young {
		sh.young.remove(c)
		c.young = false
	}
	c.rec.end(&o)
	enough := c.owner.addLocked(sh, c, known)
	sh.mu.Unlock()
	c.owner.told(enough)
}

// end puts what became of a call into its record.
func (r *Record) end(o *Outcome) {
	at := o.At.UnixNano()
	r.State, r.Changed = o.State, at
	if r.State == "" {
		r.State = endState(o.Result, o.Err)
	}
	if r.State.Ended() {
		r.Ended = at
	}
	fill(&r.Approval, schema.ApprovalID(o.Approval))
	r.Attempt = max(r.Attempt, o.Attempt)
	r.Replayed = r.Replayed || o.Replayed
	r.Result = o.Digest
	if res := o.Result; res != nil {
		r.ToolError, r.ResultBytes, r.Took = res.ToolError, int64(len(res.Body)), res.Took
		fill(&r.Worker, res.Worker)
		r.Attempt = max(r.Attempt, 1)
		if res.Took > 0 && r.Started == 0 {
			// The way of the answer is not in it; nobody else knows better.
			r.Started = max(at-int64(res.Took), r.Admitted)
		}
	} else if o.Err != nil {
		e := schema.AsError(o.Err)
		r.Error, r.Detail, r.CancelRequested = e.Kind, e.Detail, e.CancelRequested
	}
	r.cut()
}

// endState is the state that a result or an error means.
func endState(res *schema.Result, err error) schema.State {
	if err == nil && res != nil {
		return schema.StateSucceeded
	}
	switch schema.KindOf(err) {
	case schema.KindOutcomeUnknown:
		return schema.StateUnknown
	case schema.KindCanceled:
		return schema.StateCanceled
	case schema.KindExpired:
		return schema.StateExpired
	case schema.KindForbidden, schema.KindDisabled:
		return schema.StateDenied
	}
	return schema.StateFailed
}

// Add tells of a call in one piece: one that waits, or that somebody else keeps.
// rec is copied.
func (r *Recorder) Add(rec *Record) {
	c := &Call{rec: *rec, ended: true}
	c.prepare(schema.StateQueued)
	sh := r.shardOf(rec.ID)
	sh.mu.Lock()
	enough := r.addLocked(sh, c, c.rec.State.Ended())
	sh.mu.Unlock()
	r.told(enough)
}

// addLocked puts a record with those that wait, or counts it as lost. Ends of
// calls that others may have seen have some room of their own: without them a
// call would be shown as running for long. It says whether it is time to store.
func (r *Recorder) addLocked(sh *shard, c *Call, known bool) bool {
	most := r.most
	if known {
		most += most / 4
	}
	if sh.closed || len(sh.waiting) >= most {
		r.drop(c)
		return false
	}
	sh.waiting = append(sh.waiting, c)
	return len(sh.waiting) == gatherCount/shardCount
}

func (r *Recorder) drop(c *Call) {
	r.lost.Add(1)
	r.kept.Add(-int64(len(c.arguments)))
	c.arguments = nil
}

func (r *Recorder) told(enough bool) {
	if enough {
		r.notify()
		return
	}
	r.rouse()
}

// notify tells the writer that there is something to store.
func (r *Recorder) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// rouse wakes the writer if it sleeps.
func (r *Recorder) rouse() {
	if r.asleep.Load() && r.asleep.CompareAndSwap(true, false) {
		r.notify()
	}
}

// shardOf chooses by a random character of the id.
func (r *Recorder) shardOf(id schema.CallID) *shard {
	if len(id) < 2 {
		return &r.shards[0]
	}
	return &r.shards[id[len(id)-2]%shardCount]
}
