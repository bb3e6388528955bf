package bus

import "time"

// SweepIdle sweeps as often as an outbox may be idle, and returns the number of outboxes.
func (l *Listener) SweepIdle() (outboxes int) {
	for range idleSweeps + 1 {
		l.sweep(time.Now())
	}
	l.outboxes.Range(func(any, any) bool {
		outboxes++
		return true
	})
	return outboxes
}

// AddToIdle adds a frame to an outbox that was looked up before it was retired.
func (l *Listener) AddToIdle(to ReplyTo, seq uint64) (add func()) {
	out := l.outboxOf(to)
	return func() {
		f := &ReplyFrame{Seq: seq, Kind: ReplyResult, Worker: l.worker, Payload: []byte(`"late"`)}
		out.addLater(frameHeadroom, func(dst []byte) []byte { return AppendReply(dst, f) })
	}
}
