package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// regions returns a route with a worker in the router's region and one in another, both with the
// same slots.
func regions(near, remote *worker, slots int) *route {
	r := newRoute(Options{Region: "eu"})
	for id, w := range map[schema.WorkerID]*worker{"near": near, "remote": remote} {
		region := map[schema.WorkerID]string{"near": "eu", "remote": "us"}[id]
		w.remote.Store(r.limits.isRemote(&schema.Worker{Labels: map[string]string{schema.RegionLabel: region}}))
		r.set(id, w, slots, true)
		r.settle()
	}
	return r
}

func TestCallsStayInTheirRegionFailOverAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near := &worker{}
		r := regions(near, &worker{}, 4)
		// run runs callers in a closed loop for ten seconds of virtual time and returns the number of
		// calls of each worker. The near worker is the slower one.
		run := func(callers int) map[schema.WorkerID]int {
			took := map[schema.WorkerID]time.Duration{"near": 50 * time.Millisecond, "remote": 5 * time.Millisecond}
			share := make(map[schema.WorkerID]int)
			ends := make(chan schema.WorkerID)
			until := time.Now().Add(10 * time.Second)
			for range callers {
				go func() {
					for time.Now().Before(until) {
						l, err := r.acquire(t.Context(), one, nil, nil)
						if err != nil {
							t.Error(err)
							break
						}
						time.Sleep(took[l.worker]) // virtual time of the worker
						l.release(took[l.worker], interactive)
						ends <- l.worker
					}
					ends <- ""
				}()
			}
			for left := callers; left > 0; {
				if w := <-ends; w == "" {
					left--
				} else {
					share[w]++
				}
			}
			return share
		}
		if got := run(4); got["remote"] != 0 || got["near"] < 700 {
			t.Errorf("with room near: %v", got)
		}
		if got := run(6); got["remote"] == 0 || got["near"] < 700 {
			t.Errorf("with more than the near worker takes: %v", got)
		}
		r.set("near", near, 4, false)
		r.settle()
		if got := run(4); got["near"] != 0 || got["remote"] == 0 {
			t.Errorf("with no near worker: %v", got)
		}
		r.set("near", near, 4, true)
		r.settle()
		if got := run(4); got["remote"] != 0 || got["near"] < 700 {
			t.Errorf("with the near worker back: %v", got)
		}
	})
}

func TestAProcessWithoutRegionIsNotRemote(t *testing.T) {
	for _, c := range []struct {
		router, worker string
		remote         bool
	}{{"", "", false}, {"", "us", false}, {"eu", "", false}, {"eu", "eu", false}, {"eu", "us", true}} {
		o := Options{Region: c.router}
		if got := o.isRemote(&schema.Worker{Labels: map[string]string{schema.RegionLabel: c.worker}}); got != c.remote {
			t.Errorf("a worker of %q is remote for a router of %q: %t", c.worker, c.router, got)
		}
	}
}

func TestAsyncCallsStayInRegionWhileItHasCapacity(t *testing.T) {
	r := regions(&worker{}, &worker{}, 4)
	r.mu.Lock()
	defer r.unlock()
	if l := r.placeLocked(time.Now(), schema.PrincipalID{Name: "me"}); l == nil || l.worker != "near" {
		t.Errorf("an asynchronous call is placed at %+v", l)
	}
	for _, l := range r.lanes {
		l.closed = l.worker == "near"
	}
	if l := r.placeLocked(time.Now(), schema.PrincipalID{Name: "me"}); l == nil || l.worker != "remote" {
		t.Errorf("with no near worker an asynchronous call is placed at %+v", l)
	}
}
