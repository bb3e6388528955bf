package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// watchHeartbeat is how often an idle watch is heard of. A watch that a restart of
	// the server ended is made anew after some four of them are missing; with the
	// client's own 5 s it would stay blind for almost half a minute.
	watchHeartbeat = 500 * time.Millisecond
	// watchAgain is how long a watch waits that could not be begun anew.
	watchAgain = 500 * time.Millisecond
)

// StreamWatch is a running watch of what a stream keeps; Close ends it.
//
// Its consumer lives in the memory of one server. The client makes a new one when that
// is gone, but not always: where the connection breaks while it asks for one, or a
// cluster answers with anything that it does not know, it gives the subscription up and
// says so in a line of the log. Who watches would see nothing from then on. A StreamWatch
// begins anew, after the last write that it has seen.
type StreamWatch struct {
	c       *Conn
	what    string // for people
	stream  string
	subject string
	begin   nats.SubOpt // where it begins at first
	opts    []nats.SubOpt
	take    taker

	life   context.Context // ends with Close
	end    context.CancelFunc
	over   chan struct{} // closed when nothing of it runs any more
	loaded chan struct{} // closed when everything was seen that was there

	mu   sync.Mutex
	sub  *nats.Subscription
	last uint64 // the sequence of the last write that was seen
	live bool   // loaded is closed
}

// taker is told of a write; live says that it came after what was there at the beginning.
type taker func(m *nats.Msg, sequence uint64, live bool)

// watch calls take for what the stream keeps of the subject and then for each write, in
// their order, one at a time. It returns once everything that was there has been seen,
// or ctx has ended. begin says what of that is told of.
func (c *Conn) watch(ctx context.Context, what, stream, subject string, take taker, begin nats.SubOpt, opts ...nats.SubOpt) (*StreamWatch, error) {
	w := &StreamWatch{c: c, what: what, stream: stream, subject: subject, begin: begin, opts: opts, take: take, over: make(chan struct{}), loaded: make(chan struct{})}
	w.life, w.end = context.WithCancel(context.Background())
	ended, err := w.subscribe()
	if err != nil {
		w.end()
		return nil, fmt.Errorf("watching %s: %w", what, err)
	}
	go w.keep(ended)
	select {
	case <-w.loaded:
		return w, nil
	case <-ctx.Done():
		w.Close()
		return nil, fmt.Errorf("reading %s: %w", what, ctx.Err())
	}
}

// Close ends the watch and waits for its last callback.
func (w *StreamWatch) Close() {
	w.end()
	<-w.over
}

// subscribe makes a consumer. ended is closed when its subscription is over, and its
// last callback too.
func (w *StreamWatch) subscribe() (ended <-chan struct{}, err error) {
	js, err := w.c.nc.JetStream()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was done
	}
	ctx, cancel := context.WithCancel(w.life)
	begun := make(chan struct{}) // closed once initial is set
	var initial, seen uint64
	sub, err := js.Subscribe(w.subject, func(m *nats.Msg) {
		<-begun
		meta, err := m.Metadata()
		if err != nil {
			return // no message of the stream
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.take(m, meta.Sequence.Stream, w.live)
		w.last = meta.Sequence.Stream
		if seen++; seen >= initial || meta.NumPending == 0 {
			w.caughtUpLocked()
		}
	}, append([]nats.SubOpt{nats.BindStream(w.stream), nats.OrderedConsumer(), nats.IdleHeartbeat(watchHeartbeat), nats.Context(ctx), w.from()}, w.opts...)...)
	if err != nil {
		cancel()
		return nil, err //nolint:wrapcheck // as above
	}
	closed := make(chan struct{})
	closing := sync.OnceFunc(func() {
		cancel()
		close(closed)
	})
	sub.SetClosedHandler(func(string) { closing() })
	if !sub.IsValid() {
		closing() // it ended before it could be told to say so
	}
	w.mu.Lock()
	w.sub = sub
	if initial, err = sub.InitialConsumerPending(); err != nil || initial == 0 {
		w.caughtUpLocked()
	}
	w.mu.Unlock()
	close(begun)
	return closed, nil
}

func (w *StreamWatch) caughtUpLocked() {
	if !w.live {
		w.live = true
		close(w.loaded)
	}
}

// keep begins the watch anew whenever its subscription ends, until Close, or the end of
// the connection.
func (w *StreamWatch) keep(ended <-chan struct{}) {
	defer close(w.over)
	for {
		select {
		case <-ended:
		case <-w.life.Done():
			w.mu.Lock()
			sub := w.sub
			w.mu.Unlock()
			_ = sub.Unsubscribe() // it fails only when it has ended
			<-ended
			return
		}
		for {
			if w.life.Err() != nil || w.c.nc.IsClosed() {
				return
			}
			var err error
			if ended, err = w.subscribe(); err == nil {
				w.c.log.Info("a watch that had ended goes on", "watch", w.what)
				break
			}
			w.c.log.Warn("a watch cannot be begun anew", "watch", w.what, "error", err)
			select {
			case <-time.After(watchAgain):
			case <-w.life.Done():
			}
		}
	}
}

// from is where a consumer begins: after what was seen.
func (w *StreamWatch) from() nats.SubOpt {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == 0 {
		return w.begin
	}
	return nats.StartSequence(w.last + 1)
}
