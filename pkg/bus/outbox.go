package bus

import (
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// outbox packs frames that are sent at the same time to one subject into one message. A sender
// that finds the outbox idle becomes its writer. Frames that are added before it writes are
// sent in the same message. A single frame is sent at once.
//
// Under load, frames are batched: see [outbox.addCall] for calls and [outbox.addLater] for
// replies.
type outbox struct {
	nc      *nats.Conn
	subject string
	limit   int                   // maximum size of a message in bytes
	reply   func(n uint64) string // nil means no reply subject
	numbers func() uint64         // returns a number for a message; nil means no numbers
	// onError is called, without the lock, for each message that was not published,
	// regardless of the sender of its frames.
	onError func(number uint64, err error)

	mu      sync.Mutex
	filling []byte // frames that wait
	spare   []byte // the buffer of the last message, for reuse
	number  uint64 // of the message that is being filled
	writing bool   // a sender is about to publish

	// The following fields are used only by an outbox for calls.
	inFlight  int       // calls that were sent or wait here, and have not ended
	bulk      int       // those of inFlight that no caller waits for
	held      int       // those of inFlight that wait here
	lastReply time.Time // time of the last reply
	timer     *time.Timer

	// The following fields are used only by an outbox for replies.
	later   chan struct{} // wakes its publisher
	done    chan struct{} // closed when the outbox is retired
	used    bool          // since the last sweep
	idle    int           // consecutive sweeps without use
	retired bool          // it has no publisher any longer
}

const (
	// bufferKept is the maximum size of a buffer that is kept for reuse.
	bufferKept = 256 << 10
	// If a worker has at least gatherFrom calls in flight and responds quickly, sending it one
	// more call alone does not help. Calls to it are then batched until it has finished most
	// of its calls, until gatherSize calls wait, or for at most gatherMost. An interactive call
	// does not wait because of bulk calls. When it is sent, it takes along the calls that wait
	// here.
	gatherFrom = 12
	gatherSize = 32
	gatherPace = 1000 * time.Microsecond // maximum age of the last reply
	gatherMost = time.Millisecond
)

// unsent identifies a message that was not published, with the reason.
type unsent struct {
	number uint64
	err    error
}

// appendLocked adds a frame of about size bytes to the message that is being filled. If both do
// not fit, it first publishes the message.
func (o *outbox) appendLocked(size int, appendFrame func(dst []byte) []byte) (failed []unsent) {
	if len(o.filling) > 0 && len(o.filling)+size > o.limit {
		failed = o.publishLocked(nil)
	}
	if len(o.filling) == 0 && o.numbers != nil {
		o.number = o.numbers()
	}
	o.filling = appendFrame(o.filling)
	return failed
}

// add sends a frame together with those that are about to be sent. alone means that no other call
// is in flight.
func (o *outbox) add(size int, alone bool, appendFrame func(dst []byte) []byte) {
	o.mu.Lock()
	failed := o.appendLocked(size, appendFrame)
	o.used = true
	o.leave(failed, alone)
}

// leave publishes the waiting frames, unless another sender is about to. It is called with the
// lock held and releases it.
func (o *outbox) leave(failed []unsent, alone bool) {
	switch {
	case o.writing:
	case alone:
		// Yielding wakes another thread, which finds nothing to do. With one call at a time
		// that costs more than the frame.
		failed = o.publishLocked(failed)
	default:
		o.writing = true
		o.mu.Unlock()
		// Let other senders add their frames: under load a dozen frames then share one
		// message.
		runtime.Gosched()
		o.mu.Lock()
		failed = o.publishLocked(failed)
		o.writing = false
	}
	o.mu.Unlock()
	o.report(failed)
}

func (o *outbox) report(failed []unsent) {
	for _, f := range failed {
		o.onError(f.number, f.err)
	}
}

// addCall sends a call, or makes it wait for others if the worker is busy and responds quickly.
// tag is called under the lock with the number of the message that contains the call.
func (o *outbox) addCall(size int, bulk bool, appendFrame func(dst []byte) []byte, tag func(number uint64)) {
	o.mu.Lock()
	failed := o.appendLocked(size, appendFrame)
	tag(o.number)
	ahead := o.inFlight - o.held
	if bulk {
		o.bulk++
	} else {
		ahead -= o.bulk
	}
	o.inFlight++
	o.held++
	if o.writing || ahead >= gatherFrom && o.held < gatherSize && time.Since(o.lastReply) < gatherPace {
		if o.held == 1 && !o.writing {
			o.armLocked()
		}
		o.mu.Unlock()
		o.report(failed)
		return
	}
	o.leave(failed, o.inFlight == 1)
}

func (o *outbox) armLocked() {
	if o.timer == nil {
		o.timer = time.AfterFunc(gatherMost, o.release)
	} else {
		o.timer.Reset(gatherMost)
	}
}

// release publishes the batched frames.
func (o *outbox) release() {
	o.mu.Lock()
	failed := o.publishLocked(nil)
	o.mu.Unlock()
	o.report(failed)
}

// ended records that n calls have ended, of which bulk are bulk calls. replied reports whether
// they ended with a reply.
func (o *outbox) ended(n, bulk int, replied bool) {
	o.mu.Lock()
	o.inFlight -= n
	o.bulk -= bulk
	if replied {
		o.lastReply = time.Now()
	}
	var failed []unsent
	if o.held > 0 && o.inFlight-o.held < gatherFrom {
		failed = o.publishLocked(nil)
	}
	o.mu.Unlock()
	o.report(failed)
}

// endedIf records n replies. It does nothing if the outbox is nil or n is 0.
func (o *outbox) endedIf(n, bulk int) {
	if o != nil && n > 0 {
		o.ended(n, bulk, true)
	}
}

// endedWithout records the end of a call without a reply. It does nothing if the outbox is nil.
func (o *outbox) endedWithout(bulk bool) {
	if o == nil {
		return
	}
	n := 0
	if bulk {
		n = 1
	}
	o.ended(1, n, false)
}

// addLater sends a frame together with those that follow immediately. The outbox's publisher
// takes them together the next time it runs.
func (o *outbox) addLater(size int, appendFrame func(dst []byte) []byte) {
	o.mu.Lock()
	failed := o.appendLocked(size, appendFrame)
	o.used = true
	if o.retired {
		failed = o.publishLocked(failed)
		o.mu.Unlock()
		o.report(failed)
		return
	}
	wake := !o.writing
	o.writing = true
	o.mu.Unlock()
	o.report(failed)
	if wake {
		o.later <- struct{}{} // does not block: only the goroutine that sets writing sends
	}
}

// retire ends the publisher of an outbox that was not used for a number of sweeps. It reports whether
// the outbox is retired. Frames that are added later are still sent.
func (o *outbox) retire(sweeps int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.used || o.writing || len(o.filling) > 0:
		o.used, o.idle = false, 0
	case !o.retired:
		if o.idle++; o.idle >= sweeps {
			o.retired, o.spare = true, nil
			close(o.done)
		}
	}
	return o.retired
}

// publishLater publishes the frames that addLater added, until stop is closed or the outbox is retired.
func (o *outbox) publishLater(stop <-chan struct{}) {
	for ended := false; !ended; {
		select {
		case <-o.done:
			return
		case <-stop:
			ended = true // frames that were added before are still sent
		case <-o.later:
			runtime.Gosched()
		}
		o.mu.Lock()
		failed := o.publishLocked(nil)
		o.writing = false
		o.mu.Unlock()
		o.report(failed)
	}
}

// publishLocked passes the filled message to NATS, which copies it. It holds the lock to keep
// messages in order; publishing only copies memory.
func (o *outbox) publishLocked(failed []unsent) []unsent {
	msg := o.filling
	if o.held > 0 {
		o.held = 0
		if o.timer != nil {
			o.timer.Stop()
		}
	}
	if len(msg) == 0 {
		return failed
	}
	o.filling = o.spare[:0]
	var err error
	if o.reply != nil {
		err = o.nc.PublishRequest(o.subject, o.reply(o.number), msg)
	} else {
		err = o.nc.Publish(o.subject, msg)
	}
	if o.spare = nil; cap(msg) <= bufferKept {
		o.spare = msg[:0]
	}
	if err != nil {
		failed = append(failed, unsent{o.number, explained(err)})
	}
	return failed
}
