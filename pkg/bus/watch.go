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
	// watchHeartbeat is the interval of heartbeats of an idle watch.
	watchHeartbeat = 500 * time.Millisecond
	// watchAgain is the pause before the next attempt to restart a watch.
	watchAgain = 500 * time.Millisecond
	// watchSilence is the maximum time without a message from a consumer.
	watchSilence = 4 * watchHeartbeat
	// shorterFor is the time for which a stream must end before a known write, until it counts as
	// another one.
	shorterFor = 3 * time.Second
	// reportEvery is the interval of log lines about a long reading.
	reportEvery = 10 * time.Second
)

// beginning selects the existing messages that a watch delivers. It is a JetStream deliver
// policy.
type beginning string

const (
	beginAll  beginning = "all"
	beginLast beginning = "last_per_subject" // the last message of each subject
)

// StreamWatch is a running watch of a stream. Close ends it.
//
// Its consumer exists in the memory of one server. If the consumer goes silent or a message is
// missing, StreamWatch restarts with a new consumer, after the last write that it has seen. If the
// stream ends before that write, because it was created again, restored or has lost writes,
// StreamWatch reads it from the start, and logs that the process has to be restarted: the process
// may know writes that no longer exist.
type StreamWatch struct {
	c       *Conn
	what    string // description for people
	stream  string
	subject string
	begin   beginning
	take    taker
	// rewound, if not nil, is called before the stream is read from the start again.
	rewound func()

	headersOnly bool

	life   context.Context // ends with Close
	end    context.CancelFunc
	over   chan struct{} // closed when all of its goroutines have ended
	loaded chan struct{} // closed when all existing messages have been delivered

	mu       sync.Mutex
	sub      *nats.Subscription
	last     uint64    // sequence of the last delivered write
	live     bool      // loaded is closed
	progress func()    // tells who waits until loaded is closed that something was read
	reported time.Time // time of the last log line about reading; at first, of the beginning
}

// taker is called for a write. live means that it is new, and not one that existed at the start.
type taker func(m *nats.Msg, sequence uint64, live bool)

// watch calls take for the existing messages of the subject and then for each new write, in
// order, one at a time. It returns when all existing messages have been delivered, or when ctx
// ends; see [WithPatience]. begin selects the existing messages. headersOnly omits the data. For
// rewound, see [StreamWatch].
func (c *Conn) watch(ctx context.Context, what, stream, subject string, take taker, begin beginning, headersOnly bool, rewound func()) (*StreamWatch, error) {
	w := &StreamWatch{c: c, rewound: rewound, what: what, stream: stream, subject: subject, begin: begin, headersOnly: headersOnly, take: take, over: make(chan struct{}), loaded: make(chan struct{}), progress: progressOf(ctx), reported: time.Now()}
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

// subscribe creates a consumer and reads its messages. ended is closed when the subscription and
// its last callback have ended.
func (w *StreamWatch) subscribe() (ended <-chan struct{}, err error) {
	d := &delivery{w: w, begun: make(chan struct{})}
	inbox := w.c.nc.NewInbox()
	sub, err := w.c.nc.Subscribe(inbox, d.take)
	if err != nil {
		return nil, err // wrapped by the caller
	}
	d.silence = time.AfterFunc(connectTimeout+watchSilence, d.end) // longer than the creation of the consumer may take
	closed := make(chan struct{})
	closing := sync.OnceFunc(func() {
		d.silence.Stop()
		close(closed)
	})
	sub.SetClosedHandler(func(string) { closing() })
	if !sub.IsValid() {
		closing() // it ended before the handler was set
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
		_ = sub.Unsubscribe() // it fails only when the subscription has ended
		<-closed
		return nil, err
	}
	return closed, nil
}

// consumer creates a consumer that delivers to the inbox, and returns the number of pending
// messages. The request's subject includes the filter subject, so that NATS can restrict the
// permissions to create it. nats.go leaves it out while it does not know the server to which it
// reconnects. The server removes the consumer some seconds after the last listener has
// unsubscribed.
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
	var m *nats.Msg
	subject := api + "CONSUMER.CREATE." + w.stream + "." + name + "." + w.subject
	err = w.c.denials.while(ctx, subject, func(ctx context.Context) (err error) {
		m, err = w.c.nc.RequestWithContext(ctx, subject, body)
		return err
	})
	if err != nil {
		return 0, explained(err) // wrapped by the caller
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Pending uint64              `json:"num_pending"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return 0, fmt.Errorf("reading the answer of JetStream: %w", err)
	}
	if answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound {
		return 0, errMissing("stream", w.stream, w.what)
	}
	if answer.Error != nil {
		return 0, answer.Error
	}
	return answer.Pending, nil
}

// delivery is the sequence of messages from one consumer of a watch.
type delivery struct {
	w       *StreamWatch
	begun   chan struct{}      // closed when initial is set
	sub     *nats.Subscription // guarded by the lock of the watch
	silence *time.Timer        // ends the delivery when the consumer goes silent
	initial uint64             // number of existing messages
	count   uint64             // number of delivered messages
}

// take handles one message of the consumer.
func (d *delivery) take(m *nats.Msg) {
	<-d.begun
	d.silence.Reset(watchSilence)
	if len(m.Data) == 0 && m.Header.Get("Status") == "100" {
		d.heartbeat(m)
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		return // not a message of the stream
	}
	if meta.Sequence.Consumer != d.count+1 {
		d.end() // a message is missing
		return
	}
	d.count++
	w := d.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.live {
		d.readingLocked()
	}
	w.take(m, meta.Sequence.Stream, w.live)
	w.last = meta.Sequence.Stream
	if d.count >= d.initial || meta.NumPending == 0 {
		w.caughtUpLocked()
	}
}

// readingLocked notes that one of the existing messages was read.
func (d *delivery) readingLocked() {
	w := d.w
	w.progress()
	if time.Since(w.reported) >= reportEvery {
		w.reported = time.Now()
		w.c.log.Info("still reading; this takes longer the more is stored", "what", w.what, "read", d.count, "of", d.initial)
	}
}

// heartbeat handles a heartbeat: a flow control request, which it answers, or the number of
// delivered messages.
func (d *delivery) heartbeat(m *nats.Msg) {
	reply := m.Reply
	if reply == "" {
		reply = m.Header.Get("Nats-Consumer-Stalled")
	}
	if strings.HasPrefix(reply, flow+d.w.stream+".") {
		_ = d.w.c.nc.Publish(reply, nil) // it fails only without a connection, which ends the delivery
	}
	if last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && last > d.count {
		d.end() // a message is missing
	}
}

// end ends the delivery. The watch then restarts.
func (d *delivery) end() {
	d.w.mu.Lock()
	sub := d.sub
	d.w.mu.Unlock()
	_ = sub.Unsubscribe() // it fails only when the subscription has ended
}

func (w *StreamWatch) caughtUpLocked() {
	if !w.live {
		w.live = true
		close(w.loaded)
	}
}

// keep restarts the watch whenever its subscription ends, until Close or the end of the
// connection.
func (w *StreamWatch) keep(ended <-chan struct{}) {
	defer close(w.over)
	for {
		select {
		case <-ended:
		case <-w.life.Done():
			w.mu.Lock()
			sub := w.sub
			w.mu.Unlock()
			_ = sub.Unsubscribe() // it fails only when the subscription has ended
			<-ended
			return
		}
		if ended = w.restart(); ended == nil {
			return
		}
	}
}

// restart subscribes again. It returns nil after Close or the end of the connection.
func (w *StreamWatch) restart() (ended <-chan struct{}) {
	var logged time.Time
	for w.life.Err() == nil && !w.c.nc.IsClosed() {
		if w.c.Ready() == nil {
			last := w.seen()
			ended, err := w.subscribe()
			if err == nil && w.endsBefore(last) {
				w.c.log.Error("a stream was created again, restored, or has lost its last writes; restart this process, because it may know records that no longer exist", "stream", w.stream, "watch", w.what)
				w.rewind(ended)
				continue
			}
			if err == nil {
				w.c.log.Info("a watch that had ended continues", "watch", w.what)
				return ended
			}
			if time.Since(logged) >= logAgain {
				logged = time.Now()
				w.c.log.Warn("a watch cannot be restarted; it is tried again", "watch", w.what, "error", err)
			}
		}
		select {
		case <-time.After(watchAgain):
		case <-w.life.Done():
		}
	}
	return nil
}

// endsBefore reports whether the last write of the stream is an earlier one. The server would deliver
// nothing before the stream has reached the sequence again. The stream must be shorter for a while: a
// new leader of a cluster can need a moment to apply the last writes.
func (w *StreamWatch) endsBefore(sequence uint64) bool {
	for begun := time.Now(); sequence > 0 && w.isShorter(sequence); {
		if time.Since(begun) >= shorterFor {
			return true
		}
		select {
		case <-time.After(watchAgain):
		case <-w.life.Done():
			return false
		}
	}
	return false
}

// isShorter reports whether the last write of the stream is certainly an earlier one.
func (w *StreamWatch) isShorter(sequence uint64) bool {
	ctx, cancel := context.WithTimeout(w.life, connectTimeout)
	defer cancel()
	s, err := w.c.js.Stream(ctx, w.stream)
	return err == nil && s.CachedInfo().State.LastSeq < sequence
}

// rewind ends the subscription. The next one begins at the start of the stream.
func (w *StreamWatch) rewind(ended <-chan struct{}) {
	w.mu.Lock()
	sub := w.sub
	w.mu.Unlock()
	_ = sub.Unsubscribe() // it fails only when the subscription has ended
	<-ended
	w.mu.Lock()
	w.last = 0
	w.mu.Unlock()
	if w.rewound != nil {
		w.rewound()
	}
}

// seen returns the sequence of the last delivered write, or 0.
func (w *StreamWatch) seen() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}
