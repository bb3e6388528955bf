package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// goneFor is how long the empty message stays that says a delivery is over. A
// watch that was away for longer learns it from the conflict of its next write.
const goneFor = time.Minute

// Deliveries is the stream of webhook deliveries that wait or were given up. It
// knows ids, bytes and revisions; what a delivery means is decided in
// internal/webhook. Ids are plain tokens: 1 to 64 letters, digits, "_" and "-".
// All methods are safe for concurrent use.
type Deliveries struct {
	c       *Conn
	stream  jetstream.Stream
	name    string // of the stream
	subject string // before the id
}

// OpenDeliveries opens the stream of deliveries. keep is how long one is kept
// after it was last written; it counts when the stream is made.
func OpenDeliveries(ctx context.Context, c *Conn, keep time.Duration) (*Deliveries, error) {
	return openDeliveries(ctx, c, streamDeliveries, subjectDelivery, keep)
}

// OpenNoticeDeliveries is [OpenDeliveries] for the events of the approver: it has
// receivers and secrets of its own, and front doors must not sign for it.
func OpenNoticeDeliveries(ctx context.Context, c *Conn, keep time.Duration) (*Deliveries, error) {
	return openDeliveries(ctx, c, streamNoticeDeliveries, subjectNotice, keep)
}

func deliveriesStream(name, subject string, keep time.Duration, replicas int) jetstream.StreamConfig {
	what := "webhook deliveries"
	if name == streamNoticeDeliveries {
		what = "deliveries of approval events"
	}
	return jetstream.StreamConfig{
		Name: name, Description: what, Subjects: []string{subject + "*.*"},
		Storage: jetstream.FileStorage, Replicas: replicas, MaxMsgsPerSubject: 1, MaxAge: keep,
		// What grew too old leaves a marker, so that watches forget it too.
		AllowMsgTTL: true, SubjectDeleteMarkerTTL: goneFor, AllowRollup: true,
		Discard: jetstream.DiscardNew, AllowDirect: true,
	}
}

func openDeliveries(ctx context.Context, c *Conn, name, subject string, keep time.Duration) (*Deliveries, error) {
	s, err := openStream(ctx, c, deliveriesStream(name, subject, keep, c.replicas))
	if err != nil {
		return nil, err
	}
	return &Deliveries{c: c, stream: s, name: name, subject: subject}, nil
}

// MaxBody is how many bytes of body fit.
func (d *Deliveries) MaxBody() int { return d.c.MaxPayload() - 1<<10 }

// Create stores a delivery and returns its revision; [ErrConflict] means that
// there is one of this id. The body is stored first, so that every state that can
// be seen has one.
func (d *Deliveries) Create(ctx context.Context, id string, state, body []byte) (uint64, error) {
	if !plainToken(id) || len(state) == 0 || len(body) == 0 {
		return 0, fmt.Errorf("storing a delivery: its id must be a plain token, its state and body not empty")
	}
	after, err := d.free(ctx, id)
	if err != nil {
		return 0, err
	}
	// A body without a state is what a process left that died here.
	if _, err := d.c.store(ctx, &nats.Msg{Subject: d.subject + id + tokenBody, Data: body}); err != nil {
		return 0, err
	}
	return d.c.publishAfter(ctx, &nats.Msg{Subject: d.subject + id + tokenState, Data: state}, after)
}

// free returns the revision that the first state of an id follows: 0, or that of
// the message that says the last one is over.
func (d *Deliveries) free(ctx context.Context, id string) (uint64, error) {
	m, err := d.c.leader(ctx, d.name, d.subject+id+tokenState)
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(m.data) > 0:
		return 0, ErrConflict
	}
	return m.sequence, nil
}

// Replace stores the state of a delivery when its revision is still the given
// one, and returns the new revision.
func (d *Deliveries) Replace(ctx context.Context, id string, state []byte, revision uint64) (uint64, error) {
	return d.c.publishAfter(ctx, &nats.Msg{Subject: d.subject + token(id) + tokenState, Data: state}, revision)
}

// Remove ends a delivery when its revision is still the given one, and returns
// the revision of the end.
func (d *Deliveries) Remove(ctx context.Context, id string, revision uint64) (uint64, error) {
	end, err := d.c.publishAfter(ctx, &nats.Msg{Subject: d.subject + token(id) + tokenState}, revision, jetstream.WithMsgTTL(goneFor))
	if err != nil {
		return 0, err
	}
	// The delivery is over; a body that stays behind grows old by itself.
	_, err = d.c.js.PublishMsg(ctx, &nats.Msg{Subject: d.subject + token(id) + tokenBody}, jetstream.WithMsgTTL(time.Second))
	if err != nil {
		d.c.log.Debug("the body of an ended delivery stays until it is too old", "delivery", id, "error", err)
	}
	return end, nil
}

// Get reads the state of a delivery and its revision from the stream's leader;
// [ErrNotFound] means that there is none.
func (d *Deliveries) Get(ctx context.Context, id string) (state []byte, revision uint64, err error) {
	m, err := d.c.leader(ctx, d.name, d.subject+token(id)+tokenState)
	if err == nil && len(m.data) == 0 {
		err = ErrNotFound
	}
	return m.data, m.sequence, err
}

// Body reads the body of a delivery; [ErrNotFound] means that it is no longer kept.
func (d *Deliveries) Body(ctx context.Context, id string) ([]byte, error) {
	m, err := direct(ctx, d.stream, d.subject+token(id)+tokenBody)
	if errors.Is(err, ErrNotFound) {
		m, err = d.c.leader(ctx, d.name, d.subject+token(id)+tokenBody)
	}
	if err == nil && len(m.data) == 0 {
		err = ErrNotFound
	}
	return m.data, err
}

// Watch calls f for each delivery that is kept and then for each write, in the
// order of the writes, on one goroutine; an empty state says that the delivery is
// over. It returns once everything that was there has been seen. stop ends the
// watch and waits for it.
func (d *Deliveries) Watch(ctx context.Context, f func(id string, state []byte, revision uint64)) (stop func(), err error) {
	w, err := d.c.watch(ctx, "the deliveries", d.name, d.subject+"*"+tokenState, func(m *nats.Msg, sequence uint64, _ bool) {
		f(strings.TrimSuffix(strings.TrimPrefix(m.Subject, d.subject), tokenState), m.Data, sequence)
	}, beginAll, false)
	if err != nil {
		return nil, err
	}
	return w.Close, nil
}
