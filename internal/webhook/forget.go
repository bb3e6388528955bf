package webhook

import (
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// forgetEvery is the interval of the sweep for expired bodies.
const forgetEvery = 10 * time.Minute

// retentionOver is the reason of a dead delivery whose body was deleted.
const retentionOver = "The retention of the tenant has ended, so the event was deleted."

// forgetting deletes expired bodies until the sender closes.
func (s *Sender) forgetting() {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.forgetOverdue()
		}
	}
}

// forgetOverdue deletes the bodies whose retention has ended. It skips deliveries that another
// process is attempting.
func (s *Sender) forgetOverdue() {
	type due struct {
		id       string
		state    state
		revision uint64
	}
	var all []due
	s.mu.Lock()
	for id, r := range s.queue.rows {
		if !r.gone && !r.busy && r.state.Owner == "" && !r.state.Forgotten && s.overdue(&r.state) {
			all = append(all, due{id, r.state, r.revision})
		}
	}
	s.mu.Unlock()
	for _, d := range all {
		s.forget(d.id, d.state, d.revision)
	}
}

func (s *Sender) overdue(st *state) bool {
	return s.o.Retention.Over(st.Tenant, st.Created, s.o.Now())
}

// forget deletes the body of a delivery and gives the delivery up. If the process is killed between
// the two steps, a delivery without a body remains, which is given up as well.
func (s *Sender) forget(id string, st state, revision uint64) {
	ctx, cancel := s.patience()
	defer cancel()
	err := s.o.Store.Forget(ctx, st.Tenant, id)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		s.report(id, err, "the body of a webhook delivery could not be deleted; it is tried again")
		s.refresh(id)
		return
	}
	st.Forgotten = true
	if st.Dead == "" {
		s.write(id, st, revision, verdict{outcome: Dead, reason: retentionOver})
		return
	}
	if revision, err = s.o.Store.Replace(ctx, st.Tenant, id, st.encode(), revision); err != nil {
		s.refresh(id) // the next sweep retries if needed
		return
	}
	s.keep(id, st, revision)
}
