package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Writer appends the calls of one journal. Many goroutines may append concurrently: calls that arrive
// while a message is stored go into the next message, so a lane needs one sync for all concurrent
// callers.
//
// An error of kind conflict means that another writer took over, or that the journal accepts no more
// calls; the writer is then useless. After an error of kind unavailable, any part of the append may be
// stored, or may still be. To find out, take over the journal again ([Store.Write]) and check Next.
type Writer struct {
	s      *Store
	of     schema.Tenants
	id     schema.BatchID
	tenant schema.TenantID // tenant of the journal
	t      *tail
}

// Write takes over a journal of the tenant for writing. Anything that an earlier writer sent and that is
// not stored by now will never be stored. It is refused with [schema.KindConflict] for a journal that
// is sealed, canceled or ended.
func (s *Store) Write(ctx context.Context, tenant schema.TenantID, id schema.BatchID) (*Writer, error) {
	of := schema.OnlyTenant(tenant)
	if err := s.logs.writable(LogCalls); err != nil {
		return nil, unavailable(err)
	}
	m, _, err := s.read(ctx, of, id, bus.Leader)
	if err != nil {
		return nil, err
	}
	if m.State != Receiving {
		return nil, errNotOpen(m)
	}
	t, err := s.attach(ctx, id, LogCalls, 0, false)
	if errors.Is(err, errSealed) { // an earlier writer sealed the log but did not update the manifest
		if m, err = s.sealed(ctx, of, id, t.count); err != nil {
			return nil, err
		}
		return nil, errNotOpen(m)
	}
	if err != nil {
		return nil, appendFault(id, err)
	}
	t.run()
	return &Writer{s: s, of: of, tenant: m.Principal.Tenant, id: id, t: t}, nil
}

func errNotOpen(m *Manifest) error {
	return schema.Errorf(schema.KindConflict, "Journal %s is %s; it accepts no more calls.", m.ID, m.State)
}

// Next returns the index of the next call. If no append is pending, it is the number of stored calls.
func (w *Writer) Next() uint64 { return w.t.upcoming() }

// Append stores calls in order and returns the index of the first; the others have consecutive indexes.
// Arguments over 256 KiB are stored outside the log, and the passed record is changed accordingly. Calls
// that need several messages are stored one message after the other.
func (w *Writer) Append(ctx context.Context, calls []CallRecord) (first uint64, err error) {
	if len(calls) == 0 {
		return w.Next(), nil
	}
	pieces, err := w.pack(ctx, calls)
	if err != nil {
		return 0, err
	}
	first, err = w.t.append(ctx, pieces)
	return first, appendFault(w.id, err)
}

// AppendThen is Append of at least one call without waiting for the write: done is called once with the
// outcome, on a goroutine that must not be blocked. AppendThen blocks while too many bytes are
// pending; ctx bounds only that. After an error nothing is stored and done is not called.
func (w *Writer) AppendThen(ctx context.Context, done func(first uint64, err error), calls ...CallRecord) error {
	pieces, err := w.pack(ctx, calls)
	if err != nil {
		return err
	}
	return appendFault(w.id, w.t.submit(ctx, pieces, func(first uint64, err error) { done(first, appendFault(w.id, err)) }))
}

// pack encodes calls into pieces.
func (w *Writer) pack(ctx context.Context, calls []CallRecord) (_ []piece, err error) {
	if m, _, ok := w.s.view.get(w.id); ok && m.State != Receiving {
		return nil, errNotOpen(m)
	}
	if err := w.s.logs.writable(LogCalls); err != nil {
		return nil, unavailable(err)
	}
	p := packer{most: w.s.most, many: len(calls) >= manyRecords}
	for i := range calls {
		r := &calls[i]
		if len(r.Arguments) > w.s.inline {
			if r.ArgumentsObject, err = w.s.objects.store(ctx, r.tenant(w.tenant), w.id, r.Arguments); err != nil {
				return nil, err
			}
			r.Arguments = nil
		}
		if r, err = sealCall(ctx, w.s.ring, w.tenant, w.id, r); err != nil {
			return nil, err
		}
		if err := p.add(func(dst []byte) []byte { return appendCall(dst, r) }); err != nil {
			return nil, schema.Errorf(schema.KindTooLarge, "The description of the call is too large. (%w)", err).WithCall(r.ID)
		}
	}
	for _, piece := range p.pieces {
		if err := w.s.space.take(ctx, len(piece.frames), w.s.logs.calls, w.s.logs.results, w.s.objects.s); err != nil {
			return nil, unavailable(err)
		}
	}
	return p.pieces, nil
}

// Seal marks the end of the calls and closes the writer. It is idempotent, also across writers. A
// journal that is being canceled remains in that state.
func (w *Writer) Seal(ctx context.Context) (*Manifest, error) {
	_, err := w.t.append(ctx, []piece{{seal: true}})
	if err != nil && !errors.Is(err, errSealed) {
		return nil, appendFault(w.id, err)
	}
	ctx2, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	w.t.close(ctx2)
	return w.s.sealed(ctx, w.of, w.id, w.t.count)
}

// Close closes the writer. It waits some seconds for pending appends, but not at all after an append that
// was not stored in time. The journal is unchanged, so another writer can continue it.
func (w *Writer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	w.t.close(ctx)
}

// Seal takes over a journal of the tenant for writing and seals it, whatever its state. It is for an owner
// that cancels, or whose writer died. The journal contains exactly the calls stored by then.
func (s *Store) Seal(ctx context.Context, tenant schema.TenantID, id schema.BatchID) (*Manifest, error) {
	of := schema.OnlyTenant(tenant)
	m, _, err := s.read(ctx, of, id, bus.Leader)
	if err != nil {
		return nil, err
	}
	if !m.Sealed.IsZero() {
		return m, nil
	}
	t, err := s.attach(ctx, id, LogCalls, 0, false)
	if errors.Is(err, errSealed) { // an earlier writer sealed the log but did not update the manifest
		return s.sealed(ctx, of, id, t.count)
	}
	if err != nil {
		return nil, appendFault(id, err)
	}
	t.run()
	return (&Writer{s: s, of: of, id: id, t: t}).Seal(ctx)
}

// sealed records in the manifest that the log is sealed.
func (s *Store) sealed(ctx context.Context, of schema.Tenants, id schema.BatchID, calls uint64) (*Manifest, error) {
	return s.change(ctx, of, id, func(m *Manifest) error {
		if !m.Sealed.IsZero() {
			return nil
		}
		m.Sealed, m.Calls = time.Now().UTC(), max(m.Calls, calls) // m.Calls is greater if records were lost
		if m.State == Receiving {
			m.State = Sealed
		}
		return nil
	})
}

// store stores data outside the log.
func (s objects) store(ctx context.Context, tenant schema.TenantID, id schema.BatchID, b []byte) (Object, error) {
	o, err := s.put(ctx, tenant, id, rand.Text(), b)
	if errors.Is(err, errObjectTooLarge) {
		return o, schema.Errorf(schema.KindTooLarge, "The durable call is too large. (%w)", err)
	}
	return o, unavailable(err)
}

// Arguments returns the argument bytes of a call of the tenant, inline or from an object.
func (s *Store) Arguments(ctx context.Context, tenant schema.TenantID, id schema.BatchID, r *CallRecord) ([]byte, error) {
	if r.ArgumentsObject.Name != "" {
		if err := mayOpen(ctx, s, tenant, id, r.Principal.Tenant); err != nil {
			return nil, err
		}
	}
	return s.objects.bytes(ctx, id, "arguments", r.Arguments, r.ArgumentsObject)
}

// mayOpen returns an error if data outside the log of the journal does not belong to the tenant. by is
// the tenant in the record, which is used for lanes.
func mayOpen(ctx context.Context, s *Store, tenant schema.TenantID, id schema.BatchID, by schema.TenantID) error {
	m, err := manifestOf(ctx, s, schema.OnlyTenant(tenant), id)
	if err == nil && m.Kind == Lane && !by.Is(tenant) {
		return notFound(id)
	}
	return err
}

// ResultBody returns the body of a result of the tenant's call, inline or from an object. For a call that
// did not succeed, it is the error, as JSON.
func (s *Store) ResultBody(ctx context.Context, tenant schema.TenantID, id schema.BatchID, r *ResultRecord) ([]byte, error) {
	if r.BodyObject.Name != "" {
		if err := mayOpen(ctx, s, tenant, id, r.Tenant); err != nil {
			return nil, err
		}
	}
	inline := r.Body
	if len(r.Error) > 0 {
		inline = r.Error
	}
	return s.objects.bytes(ctx, id, "result", inline, r.BodyObject)
}

func (s objects) bytes(ctx context.Context, id schema.BatchID, what string, inline []byte, o Object) ([]byte, error) {
	if o.Name == "" {
		return inline, nil
	}
	b, err := s.get(ctx, id, o)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, schema.Errorf(schema.KindNotFound, "The %s of a call of journal %s have been deleted.", what, id)
	case errors.Is(err, errDamaged):
		return nil, schema.Errorf(schema.KindInternal, "The stored %s of a call of journal %s are damaged and are not used. (%w)", what, id, err)
	}
	return b, unavailable(err)
}
