package webhook

import (
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// forgetEvery is how often it is looked for bodies that are not to be kept any more.
const forgetEvery = 10 * time.Minute

// retentionOver is why a delivery is given up whose body is deleted.
const retentionOver = "The retention of the tenant has ended, so the event was deleted."

// forgetting forgets bodies of which the retention has ended, until the sender closes.
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

// forgetOverdue forgets the bodies of which the retention has ended. Deliveries of which another
// process makes an attempt are left to that.
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

// forget forgets the body of a delivery, and gives the delivery up. A process that is killed in
// between leaves one whose body is not kept, which is given up as well.
func (s *Sender) forget(id string, st state, revision uint64) {
	ctx, cancel := s.patience()
	defer cancel()
	err := s.o.Store.Forget(ctx, st.Tenant, id)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		s.o.Log.Warn("the body of a webhook delivery could not be deleted; it is tried again", "delivery", id, "error", err)
		s.refresh(id)
		return
	}
	st.Forgotten = true
	if st.Dead == "" {
		s.write(id, st, revision, verdict{outcome: Dead, reason: retentionOver})
		return
	}
	if revision, err = s.o.Store.Replace(ctx, st.Tenant, id, st.encode(), revision); err != nil {
		s.refresh(id) // the next look tries again, where it has to
		return
	}
	s.keep(id, st, revision)
}
