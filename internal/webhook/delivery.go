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

// Delivery is one event for one receiver, as operators see it.
type Delivery struct {
	// ID is the header webhook-id.
	ID string `json:"id"`
	// URL may hold a secret of the receiver. Show it to operators only, and never log it.
	URL  string `json:"url"`
	Type string `json:"type"`
	// Size is the size of the body, in bytes.
	Size      int       `json:"size"`
	Created   time.Time `json:"created_at"`
	Attempts  int       `json:"attempts"`
	Next      time.Time `json:"next_attempt_at,omitzero"`
	LastError string    `json:"last_error,omitempty"`
	// Dead is the reason why the delivery was given up. It is empty while attempts continue.
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

// Deliveries lists waiting deliveries, or, if dead is set, those that were given up, oldest first.
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

// Retry restarts a dead delivery with all its attempts.
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
