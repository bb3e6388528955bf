package journal

import (
	"context"
	"errors"
	"sync"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func isNotFound(err error) bool { return errors.Is(err, bus.ErrNotFound) }

// reader reads the calls of one journal in order.
type reader struct {
	logs      *logs
	id        schema.BatchID
	ring      *datakey.Ring
	subscribe func() *subscription // if nil, everything is read from NATS

	mu       sync.Mutex
	sequence uint64 // of the next message
	messages []bus.Message
	records  []CallRecord // rest of the last message, from next on
	next     uint64       // the index after the last returned call
}

const (
	aheadBytes    = 1 << 20
	aheadMessages = 64
)

func (r *reader) read(ctx context.Context, index uint64, most int) ([]CallRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index != r.next || r.sequence == 0 {
		r.messages, r.records, r.next = nil, nil, index
		m, err := r.logs.findCalls(ctx, r.id, index)
		if err != nil {
			return nil, err
		}
		if m.Sequence == 0 {
			r.sequence = 0 // not there yet; search again
			return nil, nil
		}
		r.sequence, r.messages = m.Sequence+1, []bus.Message{m}
	}
	var found []CallRecord
	for len(found) < most {
		if len(r.records) > 0 {
			if found == nil && len(r.records) <= most {
				found, r.records = r.records, nil
				r.next += uint64(len(found))
				continue
			}
			n := min(most-len(found), len(r.records))
			found = append(found, r.records[:n]...)
			clear(r.records[:n])
			r.records = r.records[n:]
			r.next += uint64(n)
			continue
		}
		if len(r.messages) == 0 {
			if len(found) > 0 {
				return found, nil
			}
			page, err := r.page(ctx)
			if err != nil || len(page) == 0 {
				return nil, unavailable(err)
			}
			r.messages, r.sequence = page, page[len(page)-1].Sequence+1
		}
		data := r.messages[0].Data
		r.messages[0] = bus.Message{}
		r.messages = r.messages[1:]
		h, _, err := ReadHead(data, LogCalls)
		if err == nil {
			r.records = make([]CallRecord, 0, min(h.Count, maxRecords))
			_, err = ReadCalls(data, func(c *CallRecord) {
				if c.Index >= r.next {
					r.records = append(r.records, *c)
				}
			})
		}
		if err != nil {
			r.sequence = 0
			return nil, damaged(r.id, err)
		}
		if err = openCalls(ctx, r.ring, r.id, r.records); err != nil {
			r.sequence, r.messages, r.records = 0, nil, nil
			return nil, err
		}
		if len(r.records) > 0 && r.records[0].Index != r.next {
			r.sequence, r.messages, r.records = 0, nil, nil
			if len(found) > 0 {
				return found, nil // the next read returns the error
			}
			m, err := r.logs.confirm(ctx, r.id, r.next)
			if err != nil || m.Sequence == 0 {
				return nil, err
			}
			r.sequence, r.messages = m.Sequence+1, []bus.Message{m} // missing only on a replica
		}
	}
	return found, nil
}

// confirmed reads the call at index from the leader, for a call that a replica does not have. It returns none if
// there is none.
func (r *reader) confirmed(ctx context.Context, index uint64) ([]CallRecord, error) {
	m, err := r.logs.confirm(ctx, r.id, index)
	if err != nil || m.Sequence == 0 {
		return nil, err
	}
	r.mu.Lock()
	r.sequence, r.messages, r.records, r.next = m.Sequence+1, []bus.Message{m}, nil, index
	r.mu.Unlock()
	return r.read(ctx, index, 1)
}

// page reads the next messages.
func (r *reader) page(ctx context.Context) ([]bus.Message, error) {
	if r.subscribe != nil {
		if found, _ := r.subscribe().page(r.sequence); len(found) > 0 {
			return found, nil
		}
	}
	return r.logs.Read(ctx, r.id, LogCalls, r.sequence, aheadMessages, aheadBytes)
}

// Calls returns up to max calls of a journal of the tenant, starting at index; see [Owned.Read]. Each
// call of it searches. In a lane, calls of other tenants have only their index set.
func (s *Store) Calls(ctx context.Context, tenant schema.TenantID, id schema.BatchID, index uint64, max int) ([]CallRecord, error) {
	r, within, err := readerOf(ctx, s, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	found, err := r.read(ctx, index, max)
	return only(within, found), err
}

// readerOf returns a reader of a journal of these tenants, and the tenants whose records are visible to
// them.
func readerOf(ctx context.Context, s *Store, of schema.Tenants, id schema.BatchID) (*reader, schema.Tenants, error) {
	m, err := manifestOf(ctx, s, of, id)
	if err != nil {
		return nil, of, err
	}
	return &reader{logs: s.logs, ring: s.ring, id: id}, m.withinOf(of), nil
}

// only clears the calls of other tenants, except for their indexes.
func only(of schema.Tenants, calls []CallRecord) []CallRecord {
	for i := range calls {
		if !of.Include(calls[i].Principal.Tenant) {
			calls[i] = CallRecord{Index: calls[i].Index}
		}
	}
	return calls
}

// CallsFrom is [Store.Calls], but reads until it has max calls or there are no more. It searches only
// for the first one.
func (s *Store) CallsFrom(ctx context.Context, tenant schema.TenantID, id schema.BatchID, index uint64, max int) (all []CallRecord, err error) {
	r, within, err := readerOf(ctx, s, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	for len(all) < max {
		found, err := r.read(ctx, index+uint64(len(all)), max-len(all))
		if err != nil || len(found) == 0 {
			return all, err
		}
		all = append(all, only(within, found)...)
	}
	return all, nil
}

// FindCall reads one call of the tenants by its journal and index. The leader confirms that there is none. Errors: [schema.KindNotFound]; a
// [*GapError] if it was lost.
func (s *Store) FindCall(ctx context.Context, of schema.Tenants, id schema.BatchID, index uint64) (*CallRecord, error) {
	r, within, err := readerOf(ctx, s, of, id)
	if err != nil {
		return nil, err
	}
	found, err := r.read(ctx, index, 1)
	if err == nil && len(found) == 0 {
		found, err = r.confirmed(ctx, index)
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || !within.Include(found[0].Principal.Tenant) {
		return nil, schema.Errorf(schema.KindNotFound, "Journal %s has no call %d, or it has been deleted.", id, index)
	}
	return &found[0], nil
}

// Accepted returns the current number of calls in the log of a journal of the tenant.
func (s *Store) Accepted(ctx context.Context, tenant schema.TenantID, id schema.BatchID) (uint64, error) {
	if _, err := manifestOf(ctx, s, schema.OnlyTenant(tenant), id); err != nil {
		return 0, err
	}
	m, err := s.logs.Last(ctx, id, LogCalls)
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	h, _, err := ReadHead(m.Data, LogCalls)
	if err != nil {
		return 0, damaged(id, err)
	}
	return h.First + uint64(h.Count), nil
}
