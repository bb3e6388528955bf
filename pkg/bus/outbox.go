package bus

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// outbox packs frames that are sent at the same time to one subject into one
// message. The sender that finds the outbox idle becomes its writer; the ones
// that come while it is about to write ride along. Nobody waits for a timer, so
// a lone call leaves at once.
type outbox struct {
	nc      *nats.Conn
	subject string
	limit   int                   // bytes of a message
	reply   func(n uint64) string // nil: no reply subject
	numbers *atomic.Uint64        // message numbers; shared by the outboxes of a client

	mu      sync.Mutex
	filling []byte // frames that wait
	spare   []byte // the buffer of the last message, to be used again
	number  uint64 // of the message that is being filled
	writing bool
}

// bufferKept is the largest buffer that is kept between messages.
const bufferKept = 256 << 10

// unsent says which message was not published, and why.
type unsent struct {
	number uint64
	err    error
}

// add appends one frame of about size bytes and sees that it is published. tag,
// when not nil, is called under the lock with the number of the message that
// carries the frame. onError is called, without the lock, for each message that
// this sender could not publish, with the frames of others in it or not.
func (o *outbox) add(size int, appendFrame func(dst []byte) []byte, tag func(number uint64), onError func(number uint64, err error)) {
	var failed []unsent
	o.mu.Lock()
	if len(o.filling) > 0 && len(o.filling)+size > o.limit {
		failed = o.publishLocked(failed)
	}
	if len(o.filling) == 0 && o.numbers != nil {
		o.number = o.numbers.Add(1)
	}
	o.filling = appendFrame(o.filling)
	if tag != nil {
		tag(o.number)
	}
	if !o.writing {
		o.writing = true
		o.mu.Unlock()
		// Let the others that are about to send do so: under load a dozen calls
		// then share one message, and an idle process loses nothing by it.
		runtime.Gosched()
		o.mu.Lock()
		if len(o.filling) > 0 {
			failed = o.publishLocked(failed)
		}
		o.writing = false
	}
	o.mu.Unlock()
	for _, f := range failed {
		onError(f.number, f.err)
	}
}

// publishLocked hands the filled message to NATS, which copies it. It holds the
// lock: messages leave in order, and publishing only copies memory.
func (o *outbox) publishLocked(failed []unsent) []unsent {
	msg := o.filling
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
