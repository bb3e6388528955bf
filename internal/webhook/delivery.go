package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Delivery is one event on its way to one receiver, as operators see it.
type Delivery struct {
	// ID is the header webhook-id.
	ID string `json:"id"`
	// URL may hold a secret of the receiver: it is for operators, not for logs.
	URL  string `json:"url"`
	Type string `json:"type"`
	// Size is the body's, in bytes.
	Size      int       `json:"size"`
	Created   time.Time `json:"created_at"`
	Attempts  int       `json:"attempts"`
	Next      time.Time `json:"next_attempt_at,omitzero"`
	LastError string    `json:"last_error,omitempty"`
	// Dead says why it was given up; empty while it is tried.
	Dead  string    `json:"dead,omitempty"`
	Ended time.Time `json:"ended_at,omitzero"`
}

func (r *row) delivery() Delivery {
	s := r.state
	d := Delivery{ID: r.id, URL: s.URL, Type: s.Type, Size: s.Size, Created: s.Created, Attempts: s.Attempts, LastError: s.Last, Dead: s.Dead, Ended: s.Ended}
	if s.Dead == "" {
		d.Next = s.Next
	}
	return d
}

// Deliveries lists the deliveries that wait, or with dead set those that were
// given up, oldest first.
func (s *Sender) Deliveries(dead bool) []Delivery {
	s.mu.Lock()
	list := []Delivery{}
	for _, r := range s.queue.rows {
		if !r.gone && (r.state.Dead != "") == dead {
			list = append(list, r.delivery())
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Delivery) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list
}

// Retry begins a delivery that was given up again, with all its attempts.
func (s *Sender) Retry(ctx context.Context, id string) error {
	s.mu.Lock()
	var st state
	var revision uint64
	r := s.queue.rows[id]
	if r != nil && !r.gone {
		st, revision = r.state, r.revision
	}
	s.mu.Unlock()
	switch {
	case revision == 0:
		return schema.Errorf(schema.KindNotFound, "There is no webhook delivery %q: it was delivered, or has been deleted.", id)
	case st.Dead == "":
		return schema.Errorf(schema.KindConflict, "The webhook delivery %s has not been given up: it is retried automatically.", id)
	}
	st.Dead, st.Ended, st.Attempts, st.Next, st.By = "", time.Time{}, 0, s.o.Now().UTC(), s.id
	revision, err := s.o.Store.Replace(ctx, st.Tenant, id, st.encode(), revision)
	if errors.Is(err, bus.ErrConflict) {
		s.refresh(id)
		return schema.Errorf(schema.KindConflict, "Another process has just changed the webhook delivery %s: check it again.", id)
	}
	if err != nil {
		return fmt.Errorf("restarting the delivery: %w", err)
	}
	s.keep(id, st, revision)
	return nil
}

// Load is how full the outbox is.
type Load struct {
	// Waiting and WaitingBytes are of all processes, UnderWay of this one.
	Waiting      int
	WaitingBytes int64
	UnderWay     int
	Dead         int
}

// Load returns how full the outbox is.
func (s *Sender) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Load{Waiting: s.queue.waiting.n, WaitingBytes: s.queue.waiting.bytes, UnderWay: s.queue.underWay, Dead: s.queue.dead.n}
}
