package worker

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// announcer reports the state of the worker to routers and in metrics.
type announcer struct {
	w    *Worker
	wake chan struct{} // signaled when something changed

	mu       sync.Mutex
	restarts map[schema.ServerID]int
	noise    map[schema.ServerID]int64
	failing  bool // the last announcement failed, and that was logged
}

func newAnnouncer(w *Worker) *announcer {
	return &announcer{w: w, wake: make(chan struct{}, 1), restarts: make(map[schema.ServerID]int), noise: make(map[schema.ServerID]int64)}
}

// change requests an announcement soon. Several changes share one announcement.
func (a *announcer) change() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// settle returns how long changes are gathered before they are announced. It is longer with many
// servers, because their announcement is large and changes often while they start.
func (a *announcer) settle() time.Duration {
	w := a.w
	w.mu.RLock()
	defer w.mu.RUnlock()
	return 10*time.Millisecond + min(time.Duration(len(w.servers.held))*200*time.Microsecond, 200*time.Millisecond)
}

// run announces every second and after changes, until ctx ends.
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
			if !sleep.For(a.settle(), ctx.Done()) {
				return
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
	a.logChange(w.o.Conn.Announce(&report))
}

// logChange logs when announcements start to fail and when they work again. Front doors treat a worker
// without announcements as disconnected. The caller holds a.mu.
func (a *announcer) logChange(err error) {
	log := a.w.log
	failed := err != nil
	switch {
	case failed && a.w.o.Conn.Ready() != nil:
		log.Debug("announcing the worker failed", "error", err) // the connection has logged that it is down
	case failed == a.failing:
	case failed:
		a.failing = true
		log.Warn("this worker cannot announce itself; front doors send it no calls", "error", err)
	default:
		a.failing = false
		log.Info("this worker announces itself again")
	}
}

// measure adds the changes of a server to the metrics. The caller holds a.mu.
func (a *announcer) measure(s *schema.Server) {
	w := a.w
	w.o.Metrics.SetSessions(string(s.ID), s.Sessions)
	w.o.Metrics.SetServerUp(string(s.ID), s.State == schema.StateInitialized)
	for ; a.restarts[s.ID] < s.Restarts; a.restarts[s.ID]++ {
		w.o.Metrics.SessionRestarted(string(s.ID))
	}
	h := w.servers.find(s.ID)
	if h == nil {
		return // just removed
	}
	if h.sandboxed != nil {
		h.sandboxed.measure()
	}
	if n := h.noise(); n > a.noise[s.ID] {
		w.o.Metrics.ProtocolNoise(string(s.ID), n-a.noise[s.ID])
		a.noise[s.ID] = n
	}
}

// forget drops the counters of a server's sessions, because the next server of that name counts
// from zero.
func (a *announcer) forget(id schema.ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.restarts, id)
	delete(a.noise, id)
	a.w.o.Metrics.ForgetServer(string(id))
}
