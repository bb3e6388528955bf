package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// regions is a route with a worker of its own region and one of another, both with
// the same slots.
func regions(near, far *worker, slots int) *route {
	r := newRoute(Options{Region: "eu"})
	for id, w := range map[string]*worker{"near": near, "far": far} {
		region := map[string]string{"near": "eu", "far": "us"}[id]
		w.far.Store(r.limits.isFar(&schema.Worker{Labels: map[string]string{schema.RegionLabel: region}}))
		r.set(id, w, slots, true)
		r.settle()
	}
	return r
}

func TestCallsStayNearFallOverFarAndComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near := &worker{}
		r := regions(near, &worker{}, 4)
		// run runs callers in a closed loop for ten seconds of virtual time and says how
		// many calls each worker got. The near worker is the slower one.
		run := func(callers int) map[string]int {
			took := map[string]time.Duration{"near": 50 * time.Millisecond, "far": 5 * time.Millisecond}
			share := make(map[string]int)
			ends := make(chan string)
			until := time.Now().Add(10 * time.Second)
			for range callers {
				go func() {
					for time.Now().Before(until) {
						l, err := r.acquire(t.Context(), one, nil, nil)
						if err != nil {
							t.Error(err)
							break
						}
						time.Sleep(took[l.worker]) // virtual: the worker's work
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
		if got := run(4); got["far"] != 0 || got["near"] < 700 {
			t.Errorf("with room near: %v", got)
		}
		if got := run(6); got["far"] == 0 || got["near"] < 700 {
			t.Errorf("with more than the near worker takes: %v", got)
		}
		r.set("near", near, 4, false)
		r.settle()
		if got := run(4); got["near"] != 0 || got["far"] == 0 {
			t.Errorf("with no near worker: %v", got)
		}
		r.set("near", near, 4, true)
		r.settle()
		if got := run(4); got["far"] != 0 || got["near"] < 700 {
			t.Errorf("with the near worker back: %v", got)
		}
	})
}

func TestWhoSaysNothingOfItsRegionIsNear(t *testing.T) {
	for _, c := range []struct {
		router, worker string
		far            bool
	}{{"", "", false}, {"", "us", false}, {"eu", "", false}, {"eu", "eu", false}, {"eu", "us", true}} {
		o := Options{Region: c.router}
		if got := o.isFar(&schema.Worker{Labels: map[string]string{schema.RegionLabel: c.worker}}); got != c.far {
			t.Errorf("a worker of %q is far for a router of %q: %t", c.worker, c.router, got)
		}
	}
}

func TestParcelsStayNearWhileThereIsAPlace(t *testing.T) {
	r := regions(&worker{}, &worker{}, 4)
	r.mu.Lock()
	defer r.unlock()
	if l := r.placeLocked(time.Now(), "me"); l == nil || l.worker != "near" {
		t.Errorf("a parcel is placed at %+v", l)
	}
	for _, l := range r.lanes {
		l.closed = l.worker == "near"
	}
	if l := r.placeLocked(time.Now(), "me"); l == nil || l.worker != "far" {
		t.Errorf("with no near worker a parcel is placed at %+v", l)
	}
}
