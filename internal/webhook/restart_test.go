package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/outbox"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func deliveries(t *testing.T, c *bus.Conn) *outbox.Outbox {
	t.Helper()
	d, err := outbox.Open(t.Context(), c, KeepFor)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Both stores pass it, so that what is shown with memory holds on JetStream.
func TestStoreContract(t *testing.T) {
	for name, store := range map[string]Store{"memory": newMemory(), "JetStream": deliveries(t, bustest.Start(t).Connect(t, "test"))} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			type news struct {
				id, state string
				revision  uint64
			}
			seen := make(chan news, 100)
			stop, err := store.Watch(ctx, schema.AllTenants(), func(id string, state []byte, revision uint64) { seen <- news{id, string(state), revision} })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			told := func(id, state string, revision uint64) {
				t.Helper()
				if got := within(t, "word of the write", seen); got != (news{id, state, revision}) {
					t.Errorf("the watch tells %+v, want %s %q %d", got, id, state, revision)
				}
			}
			first, err := store.Create(ctx, schema.DefaultTenant, "m1", []byte("one"), []byte("body"))
			if err != nil {
				t.Fatal(err)
			}
			told("m1", "one", first)
			if _, err := store.Create(ctx, schema.DefaultTenant, "m1", []byte("again"), []byte("other")); !errors.Is(err, bus.ErrConflict) {
				t.Errorf("a second creation: %v", err)
			}
			if b, err := store.Body(ctx, schema.DefaultTenant, "m1"); err != nil || string(b) != "body" {
				t.Errorf("%q, %v", b, err)
			}
			second, err := store.Replace(ctx, schema.DefaultTenant, "m1", []byte("two"), first)
			if err != nil || second <= first {
				t.Fatalf("%d, %v", second, err)
			}
			told("m1", "two", second)
			if _, err := store.Replace(ctx, schema.DefaultTenant, "m1", []byte("late"), first); !errors.Is(err, bus.ErrConflict) {
				t.Errorf("a revision that is over: %v", err)
			}
			if _, err := store.Remove(ctx, schema.DefaultTenant, "m1", first); !errors.Is(err, bus.ErrConflict) {
				t.Errorf("a removal by a revision that is over: %v", err)
			}
			if s, revision, err := store.Get(ctx, schema.AllTenants(), "m1"); err != nil || string(s) != "two" || revision != second {
				t.Errorf("%q, %d, %v", s, revision, err)
			}
			// Somebody who comes later sees what is there.
			late := make(chan news, 100)
			stopLate, err := store.Watch(ctx, schema.AllTenants(), func(id string, state []byte, revision uint64) { late <- news{id, string(state), revision} })
			if err != nil {
				t.Fatal(err)
			}
			if got := <-late; got != (news{"m1", "two", second}) {
				t.Errorf("%+v", got)
			}
			stopLate()
			end, err := store.Remove(ctx, schema.DefaultTenant, "m1", second)
			if err != nil || end <= second {
				t.Fatalf("%d, %v", end, err)
			}
			told("m1", "", end)
			if _, _, err := store.Get(ctx, schema.AllTenants(), "m1"); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("one that is over: %v", err)
			}
			if _, err := store.Body(ctx, schema.DefaultTenant, "m1"); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("the body of one that is over: %v", err)
			}
			if _, err := store.Replace(ctx, schema.DefaultTenant, "m1", []byte("late"), second); !errors.Is(err, bus.ErrConflict) {
				t.Errorf("a change of one that is over: %v", err)
			}
			// The same id can come again.
			third, err := store.Create(ctx, schema.DefaultTenant, "m1", []byte("new"), []byte("new body"))
			if err != nil || third <= end {
				t.Fatalf("%d, %v", third, err)
			}
			told("m1", "new", third)
			if b, err := store.Body(ctx, schema.DefaultTenant, "m1"); err != nil || string(b) != "new body" {
				t.Errorf("%q, %v", b, err)
			}
			if len(seen) != 0 {
				t.Errorf("the watch tells more: %+v", <-seen)
			}
		})
	}
}

// waitUntilEmpty waits until nothing is left to deliver or under way: a delivery is
// counted before its attempt is taken off the list.
func waitUntilEmpty(t *testing.T, s *Sender) {
	t.Helper()
	polltest.Until(t, "nothing is left", func() bool { return s.Load() == (Load{}) })
}

func TestDeliverySurvivesRestartBetweenRetries(t *testing.T) {
	nats := bustest.Start(t)
	var works atomic.Bool
	var mu sync.Mutex
	tried, delivered := map[string]bool{}, map[string]int{}
	srv, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(headerID)
		mu.Lock()
		defer mu.Unlock()
		tried[id] = true
		if works.Load() {
			delivered[id]++
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	o := local(deliveries(t, nats.Connect(t, "one")))
	o.Schedule = slices.Repeat([]time.Duration{time.Second}, 1000)
	first, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		send(t, first, fmt.Sprint("m", i), srv.URL)
	}
	polltest.Until(t, "each is tried", func() bool { mu.Lock(); defer mu.Unlock(); return len(tried) == 20 })
	shut(t, first)

	again := newCounter()
	o.Store, o.Count = deliveries(t, nats.Connect(t, "two")), again.count
	second := start(t, o)
	if l := second.Load(); l.Waiting != 20 {
		t.Fatalf("after the restart %+v", l)
	}
	works.Store(true)
	for range 20 {
		again.wait(t, Delivered)
	}
	waitUntilEmpty(t, second)
	mu.Lock()
	defer mu.Unlock()
	for id, n := range delivered {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
	if len(delivered) != 20 {
		t.Errorf("%d were delivered", len(delivered))
	}
}

// The first process loses its connection in the middle of an attempt, which is
// what its death looks like to the other.
func TestADeadProcessLosesNoDeliveryOnJetStream(t *testing.T) {
	nats := bustest.Start(t)
	hanging, release := make(chan struct{}), make(chan struct{})
	srv, _ := serve(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			close(hanging)
			<-release
		}
	})
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	o := local(nil)
	o.Timeout = time.Minute // so that its attempt does not end before its connection
	dying := nats.Connect(t, "dying")
	o.Store = deliveries(t, dying)
	first, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	send(t, first, "m1", srv.URL)
	within(t, "the first attempt", hanging)
	dying.Close()
	c := newCounter()
	o.Store, o.Count = deliveries(t, nats.Connect(t, "living")), c.count
	o.Timeout, o.Lease = time.Second, 2*time.Second
	began := time.Now() // before the other process sees the delivery
	second := start(t, o)
	c.wait(t, Delivered)
	if d := time.Since(began); d < o.Lease {
		t.Errorf("taken over after %v", d)
	}
	waitUntilEmpty(t, second)
	end()
	shut(t, first)
}

func TestTwoProcessesOnJetStreamDeliverEachOnce(t *testing.T) {
	nats := bustest.Start(t)
	var mu sync.Mutex
	now, hits, twice := map[string]int{}, map[string]int{}, false
	srv, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(headerID)
		mu.Lock()
		now[id]++
		hits[id]++
		n := hits[id]
		twice = twice || now[id] > 1
		mu.Unlock()
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
		}
		mu.Lock()
		now[id]--
		mu.Unlock()
	})
	// Nobody has made an attempt yet, so all come for each at the same time.
	store := deliveries(t, nats.Connect(t, "before"))
	for i := range 200 {
		st := state{V: stateVersion, URL: srv.URL, Receiver: strings.TrimPrefix(srv.URL, "http://"), Type: "call.failed", Next: time.Now()}
		if _, err := store.Create(t.Context(), schema.DefaultTenant, fmt.Sprint("m", i), st.encode(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	c := newCounter()
	for _, name := range []string{"one", "two"} {
		o := local(deliveries(t, nats.Connect(t, name)))
		o.Count, o.UnderWayEach = c.count, 8
		o.Timeout, o.Lease = time.Minute, 5*time.Minute // an attempt that takes too long is repeated
		start(t, o)
	}
	for range 200 {
		c.wait(t, Delivered)
	}
	mu.Lock()
	defer mu.Unlock()
	for id, n := range hits {
		if n != 2 {
			t.Errorf("%s: %d requests, want 2", id, n)
		}
	}
	if twice || len(hits) != 200 || c.of(Retried) != 200 {
		t.Errorf("at the same time: %t, %d ids, %v", twice, len(hits), c.n)
	}
}

func TestDeliveriesAreVisibleToOtherProcesses(t *testing.T) {
	nats := bustest.Start(t)
	srv, _ := serve(t, status(404))
	c := newCounter()
	o := local(deliveries(t, nats.Connect(t, "one")))
	o.Count = c.count
	first := start(t, o)
	send(t, first, "m1", srv.URL)
	c.wait(t, Dead)
	second := start(t, Options{Rules: Rules{AllowPrivate: true}, Store: deliveries(t, nats.Connect(t, "two")), Secrets: []string{secretA}, Log: slog.New(slog.DiscardHandler)})
	d := only(t, second.Deliveries(schema.AllTenants(), true))
	checkContains(t, d.Dead, "answered 404")
	if d.ID != "m1" || d.Attempts != 1 || d.Ended.IsZero() {
		t.Errorf("%+v", d)
	}
}

func TestExpiredDeliveriesAreDroppedByEveryProcess(t *testing.T) {
	d, err := outbox.Open(t.Context(), bustest.Start(t).Connect(t, "test"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan string, 10)
	stop, err := d.Watch(t.Context(), schema.AllTenants(), func(id string, state []byte, _ uint64) {
		if len(state) == 0 {
			gone <- id
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := d.Create(t.Context(), schema.DefaultTenant, "m1", []byte("{}"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if id := within(t, "the end of the delivery", gone); id != "m1" {
		t.Errorf("%q", id)
	}
	if _, err := d.Body(t.Context(), schema.DefaultTenant, "m1"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("its event: %v", err)
	}
}
