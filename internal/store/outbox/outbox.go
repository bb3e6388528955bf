// Package outbox stores the webhook deliveries that wait or were given up. Each has a state, which is
// changed by compare-and-set, and a body. The package knows only ids, tenants, bytes and revisions;
// internal/webhook defines the contents of a delivery. A delivery of another tenant is treated as
// nonexistent.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// endedFor is the lifetime of the empty message that marks the end of a delivery. A watch that was
// disconnected for longer notices the end by the conflict of its next write.
const endedFor = time.Minute

// Outbox stores the deliveries of one kind of process. Ids are plain tokens: 1 to 64 letters, digits, "_"
// and "-". It is safe for concurrent use.
type Outbox struct {
	s       *bus.Stream
	subject string // prefix of the id
}

// Streams returns the specs of the streams of all outboxes. keep is the retention of a delivery after its
// last write.
func Streams(keep time.Duration) []bus.StreamSpec {
	return []bus.StreamSpec{
		spec(bus.StreamDeliveries, "webhook deliveries", bus.SubjectDelivery, keep),
		spec(bus.StreamNoticeDeliveries, "deliveries of approval events", bus.SubjectNotice, keep),
	}
}

func spec(name, what, subject string, keep time.Duration) bus.StreamSpec {
	return bus.StreamSpec{
		Name: name, What: what, Subjects: []string{subject + "*.*"}, MaxAge: keep,
		// Expired messages leave a marker, so that watches remove them too.
		Expires: true, MarkerTTL: endedFor, Probe: subject + bus.ProbeToken + bus.SuffixBody,
	}
}

// Open opens the outbox of front doors; see [Streams] for keep.
func Open(ctx context.Context, c *bus.Conn, keep time.Duration) (*Outbox, error) {
	return open(ctx, c, Streams(keep)[0], bus.SubjectDelivery)
}

// OpenNotices is [Open] for the events of the approver. It is separate, because it has other receivers and
// secrets, and front doors must not sign for it.
func OpenNotices(ctx context.Context, c *bus.Conn, keep time.Duration) (*Outbox, error) {
	return open(ctx, c, Streams(keep)[1], bus.SubjectNotice)
}

func open(ctx context.Context, c *bus.Conn, spec bus.StreamSpec, subject string) (*Outbox, error) {
	s, err := bus.OpenStream(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	return &Outbox{s, subject}, nil
}

func (o *Outbox) stateOf(id string) string { return o.subject + bus.Token(id) + bus.SuffixState }
func (o *Outbox) bodyOf(id string) string  { return o.subject + bus.Token(id) + bus.SuffixBody }

// tenantOf returns the tenant of a delivery. Deliveries of the default tenant contain none.
func tenantOf(m *bus.Message) schema.TenantID { return schema.TenantID(m.Record) }

func recordOf(tenant schema.TenantID) []byte { return []byte(tenant.Stored()) }

// Create stores a delivery of the tenant and returns its revision. [bus.ErrConflict] means that the id
// exists already. The body is stored first, so that every visible state has one.
func (o *Outbox) Create(ctx context.Context, tenant schema.TenantID, id string, state, body []byte) (uint64, error) {
	if !bus.PlainToken(id) || len(state) == 0 || len(body) == 0 {
		return 0, fmt.Errorf("storing a delivery: its id must be a plain token, its state and body not empty")
	}
	after, err := o.free(ctx, id)
	if err != nil {
		return 0, err
	}
	// A body without a state is left over if the process dies here.
	if _, err := o.s.Put(ctx, bus.Message{Subject: o.bodyOf(id), Record: recordOf(tenant), Data: body}); err != nil {
		return 0, err
	}
	return o.s.PutAfter(ctx, bus.Message{Subject: o.stateOf(id), Record: recordOf(tenant), Data: state}, after)
}

// free returns the revision that the first state of an id must follow: 0, or that of the message that marks
// the end of the last delivery.
func (o *Outbox) free(ctx context.Context, id string) (uint64, error) {
	m, err := o.s.Last(ctx, o.stateOf(id), bus.Leader)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(m.Data) > 0:
		return 0, bus.ErrConflict
	}
	return m.Sequence, nil
}

// Replace stores the state of a delivery of the tenant if its current revision is the given one, and returns
// the new revision.
func (o *Outbox) Replace(ctx context.Context, tenant schema.TenantID, id string, state []byte, revision uint64) (uint64, error) {
	if err := o.checkTenant(ctx, tenant, id); err != nil {
		return 0, err
	}
	return o.s.PutAfter(ctx, bus.Message{Subject: o.stateOf(id), Record: recordOf(tenant), Data: state}, revision)
}

// checkTenant returns a conflict if the delivery does not exist or belongs to another tenant.
func (o *Outbox) checkTenant(ctx context.Context, tenant schema.TenantID, id string) error {
	_, _, err := o.Get(ctx, schema.OnlyTenant(tenant), id)
	if errors.Is(err, bus.ErrNotFound) {
		return bus.ErrConflict
	}
	return err
}

// Remove ends a delivery of the tenant if its current revision is the given one, and returns the revision of
// the end.
func (o *Outbox) Remove(ctx context.Context, tenant schema.TenantID, id string, revision uint64) (uint64, error) {
	if err := o.checkTenant(ctx, tenant, id); err != nil {
		return 0, err
	}
	end, err := o.s.PutAfter(ctx, bus.Message{Subject: o.stateOf(id), TTL: endedFor}, revision)
	if err != nil {
		return 0, err
	}
	_ = o.dropBody(ctx, id) // the delivery has ended; a remaining body expires
	return end, nil
}

// Forget removes the body of a delivery of the tenant and keeps its state. [bus.ErrNotFound] means that
// there is no such delivery. It is idempotent.
func (o *Outbox) Forget(ctx context.Context, tenant schema.TenantID, id string) error {
	if _, _, err := o.Get(ctx, schema.OnlyTenant(tenant), id); err != nil {
		return err
	}
	return o.dropBody(ctx, id)
}

func (o *Outbox) dropBody(ctx context.Context, id string) error {
	_, err := o.s.Put(ctx, bus.Message{Subject: o.bodyOf(id), TTL: time.Second})
	return err
}

// Get reads the state of a delivery of these tenants and its revision from the stream's leader.
// [bus.ErrNotFound] means that there is none.
func (o *Outbox) Get(ctx context.Context, of schema.Tenants, id string) (state []byte, revision uint64, err error) {
	m, err := o.s.Last(ctx, o.stateOf(id), bus.Leader)
	if err = there(of, &m, err); err != nil {
		return nil, 0, err
	}
	return m.Data, m.Sequence, nil
}

// Body reads the body of a delivery of the tenant. [bus.ErrNotFound] means that it is no longer stored.
func (o *Outbox) Body(ctx context.Context, tenant schema.TenantID, id string) ([]byte, error) {
	m, err := o.s.Last(ctx, o.bodyOf(id), bus.Either)
	if err = there(schema.OnlyTenant(tenant), &m, err); err != nil {
		return nil, err
	}
	return m.Data, nil
}

// there returns [bus.ErrNotFound] for a message of another tenant, or an empty one, which marks the end of a
// delivery.
func there(of schema.Tenants, m *bus.Message, err error) error {
	if err == nil && (len(m.Data) == 0 || !of.Include(tenantOf(m))) {
		return bus.ErrNotFound
	}
	return err
}

// Watch calls f for each stored delivery of these tenants and then for each write, in write order, on one
// goroutine. An empty state means that the delivery has ended; ends of all tenants are delivered. Watch
// returns once all existing deliveries have been seen. stop ends the watch and waits for it.
func (o *Outbox) Watch(ctx context.Context, of schema.Tenants, f func(id string, state []byte, revision uint64)) (stop func(), err error) {
	w, err := o.s.Watch(ctx, o.subject+"*"+bus.SuffixState, func(m bus.Message) {
		if len(m.Data) > 0 && !of.Include(tenantOf(&m)) {
			return
		}
		f(strings.TrimSuffix(strings.TrimPrefix(m.Subject, o.subject), bus.SuffixState), m.Data, m.Sequence)
	})
	if err != nil {
		return nil, err
	}
	return w.Close, nil
}
