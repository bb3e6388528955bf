package worker

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// announcer tells routers, and the metrics, of the state of the worker.
type announcer struct {
	w    *Worker
	wake chan struct{} // holds a word when something changed

	mu       sync.Mutex
	restarts map[schema.ServerID]int
	noise    map[schema.ServerID]int64
	failing  bool // the last announcement failed, and that is logged
}

func newAnnouncer(w *Worker) *announcer {
	return &announcer{w: w, wake: make(chan struct{}, 1), restarts: make(map[schema.ServerID]int), noise: make(map[schema.ServerID]int64)}
}

// change asks for an announcement soon; many changes share one.
func (a *announcer) change() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// settle is how long changes are gathered before they are announced: longer with
// many servers, whose announcement is large and which change much while they
// start.
func (a *announcer) settle() time.Duration {
	w := a.w
	w.mu.RLock()
	defer w.mu.RUnlock()
	return 10*time.Millisecond + min(time.Duration(len(w.servers.held))*200*time.Microsecond, 200*time.Millisecond)
}

// run announces each second, and after changes, until ctx ends.
func (a *announcer) run(ctx context.Context) {
	tick := time.NewTicker(bus.AnnounceEvery)
	defer tick.Stop()
	for {
		a.announce()
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			a.w.memory.sweep(now)
			a.w.brief.sweep(now)
		case <-a.wake:
			select {
			case <-ctx.Done():
				return
			case <-time.After(a.settle()):
			}
		}
	}
}

func (a *announcer) announce() {
	w := a.w
	a.mu.Lock()
	defer a.mu.Unlock()
	report := w.Report()
	for i := range report.Servers {
		s := &report.Servers[i]
		a.measure(s)
		if report.Draining {
			continue
		}
		if s.State != schema.StateInitialized {
			w.listener.Withdraw(s.ID)
		} else if err := w.listener.Offer(s.ID); err != nil {
			w.log.Warn("offering a server", "error", err)
		}
	}
	a.tell(w.o.Conn.Announce(&report))
}

// tell logs that announcements began to fail, and that they work again: front doors take a
// worker that they do not hear for one that is gone. The caller holds a.mu.
func (a *announcer) tell(err error) {
	log := a.w.log
	failed := err != nil
	switch {
	case failed && a.w.o.Conn.Ready() != nil:
		log.Debug("not announced", "error", err) // the connection has logged that it is down
	case failed == a.failing:
	case failed:
		a.failing = true
		log.Warn("this worker cannot announce itself; front doors send it no calls", "error", err)
	default:
		a.failing = false
		log.Info("this worker announces itself again")
	}
}

// measure puts what is new of a server into the metrics. The caller holds a.mu.
func (a *announcer) measure(s *schema.Server) {
	w := a.w
	w.o.Metrics.SetSessions(string(s.ID), s.Sessions)
	w.o.Metrics.SetServerUp(string(s.ID), s.State == schema.StateInitialized)
	for ; a.restarts[s.ID] < s.Restarts; a.restarts[s.ID]++ {
		w.o.Metrics.SessionRestarted(string(s.ID))
	}
	h := w.servers.find(s.ID)
	if h == nil {
		return // removed at this moment
	}
	if h.sandboxed != nil {
		h.sandboxed.measure()
	}
	if n := h.noise(); n > a.noise[s.ID] {
		w.o.Metrics.ProtocolNoise(string(s.ID), n-a.noise[s.ID])
		a.noise[s.ID] = n
	}
}

// forget drops what was counted of a server's sessions, for the next of its name counts
// again.
func (a *announcer) forget(id schema.ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.restarts, id)
	delete(a.noise, id)
	a.w.o.Metrics.ForgetServer(string(id))
}
