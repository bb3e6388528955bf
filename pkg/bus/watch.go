package bus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// watchHeartbeat is how often an idle watch is heard of.
	watchHeartbeat = 500 * time.Millisecond
	// watchAgain is how long a watch waits that could not be begun again.
	watchAgain = 500 * time.Millisecond
	// watchSilence is how long nothing may be heard of a consumer.
	watchSilence = 4 * watchHeartbeat
)

// beginning says which of the messages that are there a watch tells of: a deliver
// policy of JetStream.
type beginning string

const (
	beginAll  beginning = "all"
	beginLast beginning = "last_per_subject" // the last one of each subject
)

// StreamWatch is a running watch of what a stream keeps; Close ends it.
//
// Its consumer lives in the memory of one server. Where nothing is heard of it any more,
// or a message is missing, a StreamWatch begins again with another one, after the last
// write that it has seen.
type StreamWatch struct {
	c       *Conn
	what    string // for people
	stream  string
	subject string
	begin   beginning
	take    taker

	headersOnly bool

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
// or ctx has ended. begin says which of them are told of; headersOnly leaves the bytes out.
func (c *Conn) watch(ctx context.Context, what, stream, subject string, take taker, begin beginning, headersOnly bool) (*StreamWatch, error) {
	w := &StreamWatch{c: c, what: what, stream: stream, subject: subject, begin: begin, headersOnly: headersOnly, take: take, over: make(chan struct{}), loaded: make(chan struct{})}
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

// subscribe makes a consumer and reads what it delivers. ended is closed when its
// subscription has ended, and its last callback too.
func (w *StreamWatch) subscribe() (ended <-chan struct{}, err error) {
	d := &delivery{w: w, begun: make(chan struct{})}
	inbox := w.c.nc.NewInbox()
	sub, err := w.c.nc.Subscribe(inbox, d.take)
	if err != nil {
		return nil, err // the caller says what was done
	}
	d.silence = time.AfterFunc(connectTimeout+watchSilence, d.end) // longer than the consumer may take
	closed := make(chan struct{})
	closing := sync.OnceFunc(func() {
		d.silence.Stop()
		close(closed)
	})
	sub.SetClosedHandler(func(string) { closing() })
	if !sub.IsValid() {
		closing() // it ended before it could be told to say so
	}
	w.mu.Lock()
	w.sub, d.sub = sub, sub
	w.mu.Unlock()
	pending, err := w.consumer(inbox)
	w.mu.Lock()
	if d.initial = pending; err == nil && pending == 0 {
		w.caughtUpLocked()
	}
	w.mu.Unlock()
	d.silence.Reset(watchSilence)
	close(d.begun)
	if err != nil {
		_ = sub.Unsubscribe() // it fails only when it has ended
		<-closed
		return nil, err
	}
	return closed, nil
}

// consumer makes a consumer that delivers to the inbox, and returns the number of messages
// waiting for it. Its subject names the subject that it may deliver, so that NATS can
// restrict who may create it; the NATS client leaves that out while it does not know yet
// which server it reconnects to. The server removes the consumer some seconds after the
// last listener has left.
func (w *StreamWatch) consumer(inbox string) (pending uint64, err error) {
	name := rand.Text()
	config := map[string]any{
		"name": name, "deliver_subject": inbox, "filter_subject": w.subject, "deliver_policy": w.begin, "headers_only": w.headersOnly,
		"ack_policy": "none", "replay_policy": "instant", "max_deliver": 1, "flow_control": true, "idle_heartbeat": watchHeartbeat.Nanoseconds(),
		"mem_storage": true, "num_replicas": 1,
	}
	if last := w.seen(); last > 0 {
		config["deliver_policy"], config["opt_start_seq"] = "by_start_sequence", last+1
	}
	body, err := json.Marshal(map[string]any{"stream_name": w.stream, "config": config})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(w.life, connectTimeout)
	defer cancel()
	m, err := w.c.nc.RequestWithContext(ctx, api+"CONSUMER.CREATE."+w.stream+"."+name+"."+w.subject, body)
	if err != nil {
		return 0, err // the caller says what was done
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Pending uint64              `json:"num_pending"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return 0, fmt.Errorf("reading the answer of JetStream: %w", err)
	}
	if answer.Error != nil {
		return 0, answer.Error
	}
	return answer.Pending, nil
}

// delivery is what one consumer of a watch delivers.
type delivery struct {
	w       *StreamWatch
	begun   chan struct{}      // closed once initial is set
	sub     *nats.Subscription // under the lock of the watch
	silence *time.Timer        // ends the delivery when nothing is heard of the consumer
	initial uint64             // the messages that were there for it
	count   uint64             // those that it has delivered
}

// take takes one message of the consumer.
func (d *delivery) take(m *nats.Msg) {
	<-d.begun
	d.silence.Reset(watchSilence)
	if len(m.Data) == 0 && m.Header.Get("Status") == "100" {
		d.heard(m)
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		return // no message of the stream
	}
	if meta.Sequence.Consumer != d.count+1 {
		d.end() // one is missing
		return
	}
	d.count++
	w := d.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(m, meta.Sequence.Stream, w.live)
	w.last = meta.Sequence.Stream
	if d.count >= d.initial || meta.NumPending == 0 {
		w.caughtUpLocked()
	}
}

// heard takes a sign of life: a request to say that everything before it was taken, or
// word of how much was delivered.
func (d *delivery) heard(m *nats.Msg) {
	reply := m.Reply
	if reply == "" {
		reply = m.Header.Get("Nats-Consumer-Stalled")
	}
	if strings.HasPrefix(reply, flow+d.w.stream+".") {
		_ = d.w.c.nc.Publish(reply, nil) // it fails only without a connection, which ends the delivery
	}
	if last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && last > d.count {
		d.end() // one is missing
	}
}

// end ends the delivery; the watch begins again.
func (d *delivery) end() {
	d.w.mu.Lock()
	sub := d.sub
	d.w.mu.Unlock()
	_ = sub.Unsubscribe() // it fails only when it has ended
}

func (w *StreamWatch) caughtUpLocked() {
	if !w.live {
		w.live = true
		close(w.loaded)
	}
}

// keep begins the watch again whenever its subscription ends, until Close, or the end of
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
			if w.c.Ready() == nil {
				var err error
				if ended, err = w.subscribe(); err == nil {
					w.c.log.Info("a watch that had ended continues", "watch", w.what)
					break
				}
				w.c.log.Warn("a watch cannot be restarted", "watch", w.what, "error", err)
			}
			select {
			case <-time.After(watchAgain):
			case <-w.life.Done():
			}
		}
	}
}

// seen is the sequence of the last write that was seen, 0 for none.
func (w *StreamWatch) seen() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}
