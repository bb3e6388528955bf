package bus

import (
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// outbox packs frames that are sent at the same time to one subject into one
// message. The sender that finds the outbox idle becomes its writer; the ones
// that come while it is about to write ride along. A lone frame leaves at once.
//
// When much is under way, frames are gathered: see [outbox.addCall] for calls
// and [outbox.addLater] for replies.
type outbox struct {
	nc      *nats.Conn
	subject string
	limit   int                   // bytes of a message
	reply   func(n uint64) string // nil: no reply subject
	numbers func() uint64         // draws the number of a message; nil: it has none
	// onError is called, without the lock, for each message that was not
	// published, whoever its frames are from.
	onError func(number uint64, err error)

	mu      sync.Mutex
	filling []byte // frames that wait
	spare   []byte // the buffer of the last message, to be used again
	number  uint64 // of the message that is being filled
	writing bool   // somebody is about to publish

	// Of an outbox for calls.
	underWay int       // calls that left or wait here, and have not ended
	bulk     int       // those of them that nobody waits for
	held     int       // those of them that wait here
	heard    time.Time // the last reply
	timer    *time.Timer

	later chan struct{} // of an outbox for replies: wakes its publisher
}

const (
	// bufferKept is the largest buffer that is kept between messages.
	bufferKept = 256 << 10
	// A worker that has gatherFrom calls before it, and answers quickly, is not
	// helped by one more that comes alone: calls to it wait for each other until
	// it has worked off most of what it has, until gatherSize of them wait, or
	// until gatherMost has ended. A call that somebody waits for does not wait
	// because of bulk calls, and takes along those that wait here.
	gatherFrom = 12
	gatherSize = 32
	gatherPace = 1000 * time.Microsecond // the last reply is at most this old
	gatherMost = time.Millisecond
)

// unsent says which message was not published, and why.
type unsent struct {
	number uint64
	err    error
}

// appendLocked puts a frame of about size bytes into the message that is being
// filled, after publishing what is there if both do not fit.
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

// add sends a frame with those that are about to be sent. alone says that nothing else is
// under way.
func (o *outbox) add(size int, alone bool, appendFrame func(dst []byte) []byte) {
	o.mu.Lock()
	failed := o.appendLocked(size, appendFrame)
	o.leave(failed, alone)
}

// leave publishes what waits, unless somebody is about to. It is called with the
// lock and gives it back.
func (o *outbox) leave(failed []unsent, alone bool) {
	switch {
	case o.writing:
	case alone:
		// Yielding wakes another thread, which finds nothing to do: with one call at a
		// time that costs more than the frame.
		failed = o.publishLocked(failed)
	default:
		o.writing = true
		o.mu.Unlock()
		// Let the others that are about to send do so: under load a dozen frames
		// then share one message.
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

// addCall sends a call, or has it wait for others when the worker is busy and
// quick. tag is called under the lock with the number of the message that
// carries it.
func (o *outbox) addCall(size int, bulk bool, appendFrame func(dst []byte) []byte, tag func(number uint64)) {
	o.mu.Lock()
	failed := o.appendLocked(size, appendFrame)
	tag(o.number)
	ahead := o.underWay - o.held
	if bulk {
		o.bulk++
	} else {
		ahead -= o.bulk
	}
	o.underWay++
	o.held++
	if o.writing || ahead >= gatherFrom && o.held < gatherSize && time.Since(o.heard) < gatherPace {
		if o.held == 1 && !o.writing {
			o.armLocked()
		}
		o.mu.Unlock()
		o.report(failed)
		return
	}
	o.leave(failed, o.underWay == 1)
}

func (o *outbox) armLocked() {
	if o.timer == nil {
		o.timer = time.AfterFunc(gatherMost, o.release)
	} else {
		o.timer.Reset(gatherMost)
	}
}

// release publishes what was gathered.
func (o *outbox) release() {
	o.mu.Lock()
	failed := o.publishLocked(nil)
	o.mu.Unlock()
	o.report(failed)
}

// ended notes that n calls have ended, bulk of them bulk calls, by a reply or
// without one.
func (o *outbox) ended(n, bulk int, replied bool) {
	o.mu.Lock()
	o.underWay -= n
	o.bulk -= bulk
	if replied {
		o.heard = time.Now()
	}
	var failed []unsent
	if o.held > 0 && o.underWay-o.held < gatherFrom {
		failed = o.publishLocked(nil)
	}
	o.mu.Unlock()
	o.report(failed)
}

// endedIf notes n replies; on a nil outbox, or for none, it does nothing.
func (o *outbox) endedIf(n, bulk int) {
	if o != nil && n > 0 {
		o.ended(n, bulk, true)
	}
}

// endedWithout notes the end of a call that got no reply; see endedIf.
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

// addLater sends a frame with those that follow at once: the outbox's publisher
// takes them together when it comes to run.
func (o *outbox) addLater(size int, appendFrame func(dst []byte) []byte) {
	o.mu.Lock()
	failed := o.appendLocked(size, appendFrame)
	wake := !o.writing
	o.writing = true
	o.mu.Unlock()
	o.report(failed)
	if wake {
		o.later <- struct{}{} // has room: only who sets writing sends
	}
}

// publishLater publishes what was added by addLater, until stop is closed.
func (o *outbox) publishLater(stop <-chan struct{}) {
	for ended := false; !ended; {
		select {
		case <-stop:
			ended = true // what was added until now still leaves
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

// publishLocked hands the filled message to NATS, which copies it. It holds the
// lock: messages leave in order, and publishing only copies memory.
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
		failed = append(failed, unsent{o.number, err})
	}
	return failed
}
