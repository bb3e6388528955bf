package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// stopTimeout bounds the end of a server that was removed over the API.
const stopTimeout = 10 * time.Second

// add begins to hold a server that came over the API. Asking again for the same
// server is not an error, so that a front door may repeat itself.
func (w *Worker) add(id string, entry json.RawMessage) error {
	if w.o.Parse == nil {
		return schema.Errorf(schema.KindForbidden, "Worker %s takes no servers over the API.", w.id)
	}
	s, err := w.o.Parse(id, entry)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return schema.Errorf(schema.KindUnavailable, "Worker %s is about to stop.", w.id)
	}
	if h := w.held[id]; h != nil {
		if h.added {
			return nil
		}
		return schema.Errorf(schema.KindConflict, "Server %q is in the servers file of worker %s.", id, w.id)
	}
	w.holdLocked(s, true)
	w.change()
	return nil
}

// remove ends a server that came over the API.
func (w *Worker) remove(id string) error {
	w.mu.Lock()
	h := w.held[id]
	if h == nil {
		w.mu.Unlock()
		return nil
	}
	if !h.added {
		w.mu.Unlock()
		return schema.Errorf(schema.KindConflict, "Server %q is in the servers file of worker %s; take it out there.", id, w.id)
	}
	w.dropArrivalLocked(id)
	delete(w.held, id)
	w.mu.Unlock()
	w.listener.Withdraw(id)
	w.forget(id)
	w.change()
	h.taking.Wait() // who has found it is still handing its call over
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := h.close(ctx); err != nil {
		return fmt.Errorf("stopping server %q: %w", id, err)
	}
	return nil
}
