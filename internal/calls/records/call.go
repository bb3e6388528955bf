package records

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Call is the recorder's handle for a call that runs at this front door. It can be ended once.
type Call struct {
	rec   Record
	shard *shard // nil if it is in no list and cannot be ended
	owner *Recorder
	// arguments are hashed when the record is stored.
	arguments     []byte
	before, after *Call
	young, ended  bool
}

// Outcome is the outcome of a call. A zero field is unknown.
type Outcome struct {
	// State is derived from Result and Err if it is empty.
	State schema.State
	// At is the time of the outcome; zero means now.
	At     time.Time
	Result *schema.Result
	Err    error
	// Attempt is the number of attempts; it is at least 1 if there is a result.
	Attempt int
	// Digest is the digest of the result's bytes.
	Digest Digest
	// Approval is the approval for which the call now waits.
	Approval string
	// Replayed is set if the result is that of an earlier request.
	Replayed bool
}

// Begin records that a call runs. It copies rec; State defaults to Running, Admitted to now. The
// call must be ended, otherwise it is shown as running for as long as this front door lives.
func (r *Recorder) Begin(rec *Record) *Call {
	return r.BeginWith(rec, nil, false)
}

// BeginWith is Begin, and also records the digest and size of the arguments. If they exceed
// 64 KiB, they are hashed later, off the call's path, if stable promises that the bytes will not
// change; otherwise the digest is omitted.
func (r *Recorder) BeginWith(rec *Record, arguments []byte, stable bool) *Call {
	c := &Call{rec: *rec, owner: r, shard: r.shardOf(rec.ID), young: true}
	c.prepare(schema.StateRunning)
	if arguments != nil {
		c.rec.ArgumentBytes = int64(len(arguments))
		if len(arguments) <= hashBytes {
			c.rec.Arguments = DigestOf(arguments)
		} else if stable {
			c.arguments = r.keep(arguments)
		}
	}
	sh := c.shard
	sh.mu.Lock()
	sh.young.push(c)
	sh.mu.Unlock()
	r.wakeIfAsleep()
	return c
}

// prepare sets the defaults of fields that the caller left empty.
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

// keep returns the bytes if the memory budget for unhashed arguments allows it, else nil.
func (r *Recorder) keep(arguments []byte) []byte {
	n := int64(len(arguments))
	if r.kept.Add(n) > keptBytes {
		r.kept.Add(-n)
		return nil
	}
	return arguments
}

// End records the outcome of the call. It does nothing on a nil Call or after the first End.
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
	known := !c.young // readers may have seen it running
	if c.young {
		sh.young.remove(c)
		c.young = false
	}
	c.rec.end(&o)
	enough := c.owner.addLocked(sh, c, known)
	sh.mu.Unlock()
	c.owner.wakeWriter(enough)
}

// end copies the outcome into the record.
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
			// This ignores the time that the response took to get here, which is not measured.
			r.Started = max(at-int64(res.Took), r.Admitted)
		}
	} else if o.Err != nil {
		e := schema.AsError(o.Err)
		r.Error, r.Detail, r.CancelRequested = e.Kind, e.Detail, e.CancelRequested
	}
	r.cut()
}

// endState derives the final state from a result or an error.
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

// Add records a call in one step: one that waits, or one that a ledger or journal tracks. It
// copies rec.
func (r *Recorder) Add(rec *Record) {
	c := &Call{rec: *rec, ended: true}
	c.prepare(schema.StateQueued)
	sh := r.shardOf(rec.ID)
	sh.mu.Lock()
	enough := r.addLocked(sh, c, c.rec.State.Ended())
	sh.mu.Unlock()
	r.wakeWriter(enough)
}

// addLocked queues a record, or drops it and counts it as lost if the queue is full. The ends of
// calls that readers may have seen running get extra space, because without them the call would
// be shown as running for a long time. It reports whether there is enough to store.
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

func (r *Recorder) wakeWriter(enough bool) {
	if enough {
		r.notify()
		return
	}
	r.wakeIfAsleep()
}

// notify signals the writer that there are records to store.
func (r *Recorder) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// wakeIfAsleep wakes the writer if it sleeps.
func (r *Recorder) wakeIfAsleep() {
	if r.asleep.Load() && r.asleep.CompareAndSwap(true, false) {
		r.notify()
	}
}

// shardOf picks a shard by a random character of the id.
func (r *Recorder) shardOf(id schema.CallID) *shard {
	if len(id) < 2 {
		return &r.shards[0]
	}
	return &r.shards[id[len(id)-2]%shardCount]
}
