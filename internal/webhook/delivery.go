package webhook

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Delivery is one event for one receiver, as operators see it.
type Delivery struct {
	// ID is the header webhook-id.
	ID string
	// URL may hold a secret of the receiver. Show it to operators only, and never log it.
	URL string
	// Receiver is its host and port.
	Receiver string
	Type     string
	// Tenant is the tenant of the call or batch.
	Tenant schema.TenantID
	// Size is the size of the body, in bytes.
	Size      int
	Created   time.Time
	Attempts  int
	Next      time.Time // zero if it was given up
	LastError string
	// Dead is the reason why the delivery was given up, and Ended the time. Dead is empty while
	// attempts continue.
	Dead  string
	Ended time.Time
}

func (r *row) delivery() Delivery {
	s := r.state
	d := Delivery{ID: r.id, URL: s.URL, Receiver: s.Receiver, Type: s.Type, Tenant: s.Tenant, Size: s.Size, Created: s.Created, Attempts: s.Attempts, LastError: s.Last, Dead: s.Dead, Ended: s.Ended}
	if s.Dead == "" {
		d.Next = s.Next
	}
	return d
}

// Deliveries lists waiting deliveries of the tenants, or, if dead is set, those that were given up,
// oldest first.
func (s *Sender) Deliveries(of schema.Tenants, dead bool) []Delivery {
	s.mu.Lock()
	list := []Delivery{}
	for _, r := range s.queue.rows {
		if !r.gone && (r.state.Dead != "") == dead && of.Include(r.state.Tenant) {
			list = append(list, r.delivery())
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Delivery) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return list
}

// Retry restarts a dead delivery of one of the tenants with all its attempts, and returns it. Errors
// are *[schema.Error] of [schema.KindNotFound], also for a delivery of another tenant, of
// [schema.KindConflict] for one that was not given up or that another process changes at the same
// time, and of [schema.KindUnavailable] if the change cannot be stored.
func (s *Sender) Retry(ctx context.Context, of schema.Tenants, id string) (Delivery, error) {
	s.mu.Lock()
	var st state
	var revision uint64
	r := s.queue.rows[id]
	if r != nil && !r.gone && of.Include(r.state.Tenant) {
		st, revision = r.state, r.revision
	}
	s.mu.Unlock()
	switch {
	case revision == 0:
		return Delivery{}, schema.Errorf(schema.KindNotFound, "There is no such webhook delivery: it was delivered, or has been deleted.")
	case st.Dead == "":
		return Delivery{}, schema.Errorf(schema.KindConflict, "The webhook delivery %s has not been given up: it is retried automatically.", id)
	}
	st.Dead, st.Ended, st.Attempts, st.Next, st.By = "", time.Time{}, 0, s.o.Now().UTC(), s.id
	revision, err := s.o.Store.Replace(ctx, st.Tenant, id, st.encode(), revision)
	if errors.Is(err, bus.ErrConflict) {
		s.refresh(id)
		return Delivery{}, schema.Errorf(schema.KindConflict, "Another process has just changed the webhook delivery %s: check it again.", id)
	}
	if err != nil {
		return Delivery{}, schema.Errorf(schema.KindUnavailable, "The webhook delivery cannot be restarted; check that NATS is running, and try again. (%w)", err)
	}
	s.keep(id, st, revision)
	return (&row{id: id, state: st}).delivery(), nil
}

// Load is the load of the outbox.
type Load struct {
	// Waiting and WaitingBytes count all processes, UnderWay only this one.
	Waiting      int
	WaitingBytes int64
	UnderWay     int
	Dead         int
}

// Load returns the load of the outbox.
func (s *Sender) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Load{Waiting: s.queue.waiting.n, WaitingBytes: s.queue.waiting.bytes, UnderWay: s.queue.underWay, Dead: s.queue.dead.n}
}
