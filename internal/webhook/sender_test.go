package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const hook = "https://hooks.example.com/x?secret=hunter2"

// receiving is the other side in tests without sockets.
type receiving struct {
	mu      sync.Mutex
	at      []time.Time // of each request
	ids     []string
	now     map[string]int // requests of an id that are under way
	twice   bool           // two of one id were at one time
	takes   time.Duration
	hangs   bool
	answers []answer // for request 1, 2, …; the last one for all after
}

func (r *receiving) post(ctx context.Context, q request) answer {
	r.mu.Lock()
	if r.now == nil {
		r.now = map[string]int{}
	}
	r.at, r.ids = append(r.at, time.Now()), append(r.ids, q.id)
	r.now[q.id]++
	r.twice = r.twice || r.now[q.id] > 1
	a := answer{status: 204}
	if n := len(r.answers); n > 0 {
		a = r.answers[min(len(r.at), n)-1]
	}
	takes, hangs := r.takes, r.hangs
	r.mu.Unlock()
	defer func() { r.mu.Lock(); r.now[q.id]--; r.mu.Unlock() }()
	if hangs {
		<-ctx.Done()
		return answer{reason: "cut off"}
	}
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return answer{reason: "cut off"}
		}
	}
	return a
}

func (r *receiving) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.at)
}

// begin opens a sender over a fake receiver, inside a bubble.
func begin(t *testing.T, o Options, r *receiving) *Sender {
	t.Helper()
	o.Secrets = []string{secretA}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if fault := o.fill(); fault != nil {
		t.Fatal(fault)
	}
	s, err := open(t.Context(), o, r.post, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFailedDeliveryFollowsScheduleAndKeepsItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c, m := &receiving{answers: []answer{{status: 500}}}, newCounter(), newMemory()
		s := begin(t, Options{Store: m, Count: c.count}, r)
		defer shut(t, s)
		began := time.Now()
		send(t, s, "m1", hook)
		time.Sleep(72 * time.Hour) // the bubble's clock
		synctest.Wait()
		want, sum := []time.Duration{0}, time.Duration(0)
		for _, d := range defaultSchedule() {
			sum += d
			want = append(want, sum)
		}
		if len(r.at) != len(want) {
			t.Fatalf("%d attempts, want %d", len(r.at), len(want))
		}
		for i, at := range r.at {
			if d := at.Sub(began); d < want[i] || d > want[i]*6/5+time.Second {
				t.Errorf("attempt %d after %v, want %v and at most a fifth more", i+1, d, want[i])
			}
		}
		d := only(t, s.Deliveries(schema.AllTenants(), true))
		checkContains(t, d.Dead, "answered 500. That was attempt 8, the last one.")
		if d.Attempts != 8 || d.URL != hook || !d.Next.IsZero() || c.of(Retried) != 7 || c.of(Dead) != 1 || len(s.Deliveries(schema.AllTenants(), false)) != 0 {
			t.Errorf("%+v, %v", d, c.n)
		}

		// Once the receiver is repaired it is sent again, with the same id.
		r.mu.Lock()
		r.answers = nil
		r.mu.Unlock()
		other := schema.OnlyTenant("billing")
		if _, err := s.Retry(t.Context(), other, "m1"); schema.KindOf(err) != schema.KindNotFound || len(s.Deliveries(other, true)) != 0 {
			t.Errorf("another tenant sees the delivery: %v", err)
		}
		if again, err := s.Retry(t.Context(), schema.AllTenants(), "m1"); err != nil || again.Dead != "" || again.Attempts != 0 || again.ID != "m1" {
			t.Fatalf("%+v, %v", again, err)
		}
		synctest.Wait()
		if c.of(Delivered) != 1 || r.ids[8] != "m1" || s.Load() != (Load{}) {
			t.Errorf("%v, %v, %+v", c.n, r.ids, s.Load())
		}
		if _, err := s.Retry(t.Context(), schema.AllTenants(), "m1"); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("a delivery that is over: %v", err)
		}
	})
}

func TestRetryAfterPausesTheReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiving{answers: []answer{{status: 429, retryAfter: 10 * time.Minute}, {status: 204}}}
		s := begin(t, Options{Store: newMemory(), UnderWayEach: 1}, r)
		defer shut(t, s)
		began := time.Now()
		send(t, s, "m1", hook)
		synctest.Wait()
		send(t, s, "m2", hook) // new ones to the same receiver wait too
		send(t, s, "other", "https://other.example.com/")
		synctest.Wait()
		if r.requests() != 2 || r.ids[1] != "other" {
			t.Fatalf("%v", r.ids)
		}
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if n := r.requests(); n != 2 {
			t.Fatalf("%d requests before the time", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := r.requests(); n != 4 || s.Load().Waiting != 0 {
			t.Errorf("%d requests %v after the start", n, time.Since(began))
		}
	})
}

func TestASlowReceiverDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &receiving{takes: 9 * time.Second}
		quick := &receiving{}
		o := Options{Store: newMemory(), Secrets: []string{secretA}, Log: slog.New(slog.DiscardHandler)}
		if fault := o.fill(); fault != nil {
			t.Fatal(fault)
		}
		s, err := open(t.Context(), o, func(ctx context.Context, q request) answer {
			if strings.Contains(q.url, "slow") {
				return slow.post(ctx, q)
			}
			return quick.post(ctx, q)
		}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, s)
		began := time.Now()
		for i := range 200 {
			send(t, s, fmt.Sprint("s", i), "https://slow.example.com/")
		}
		for i := range 50 {
			send(t, s, fmt.Sprint("q", i), fmt.Sprintf("https://quick%d.example.com/", i))
		}
		synctest.Wait()
		if quick.requests() != 50 || slow.requests() != 4 || !time.Now().Equal(began) {
			t.Errorf("%d quick and %d slow requests after %v", quick.requests(), slow.requests(), time.Since(began))
		}
		time.Sleep(200/4*9*time.Second + time.Second)
		synctest.Wait()
		if slow.requests() != 200 || s.Load().Waiting != 0 {
			t.Errorf("%d slow requests, %d wait", slow.requests(), s.Load().Waiting)
		}
	})
}

func TestTwoProcessesNeverDeliverOneAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMemory(), newCounter()
		r := &receiving{takes: 3 * time.Second, answers: []answer{{status: 503}, {status: 503}, {status: 503}, {status: 503}, {status: 204}}}
		var all []*Sender
		for range 3 {
			s := begin(t, Options{Store: m, Count: c.count}, r)
			defer shut(t, s)
			all = append(all, s)
		}
		for i := range 90 {
			send(t, all[i%3], fmt.Sprint("m", i), hook)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if r.twice || c.of(Delivered) != 90 || r.requests() != 94 {
			t.Errorf("at the same time: %t, %v, %d requests", r.twice, c.n, r.requests())
		}
		for _, s := range all {
			if s.Load() != (Load{}) || len(s.queue.rows) != 0 || len(s.queue.receivers) != 0 {
				t.Errorf("%+v, %d rows and %d receivers are left", s.Load(), len(s.queue.rows), len(s.queue.receivers))
			}
		}
	})
}

// frozen is a store that one process can no longer write to: what a process that
// died looks like to the others.
type frozen struct {
	*memory
	mu   sync.Mutex
	dead bool
}

func (f *frozen) gone() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return errors.New("gone")
	}
	return nil
}

func (f *frozen) Replace(ctx context.Context, tenant schema.TenantID, id string, s []byte, revision uint64) (uint64, error) {
	if err := f.gone(); err != nil {
		return 0, err
	}
	return f.memory.Replace(ctx, tenant, id, s, revision)
}

func (f *frozen) Remove(ctx context.Context, tenant schema.TenantID, id string, revision uint64) (uint64, error) {
	if err := f.gone(); err != nil {
		return 0, err
	}
	return f.memory.Remove(ctx, tenant, id, revision)
}

func TestTakeoverHappensOnlyAfterTheLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := &frozen{memory: m}
		dying, living, c := &receiving{hangs: true}, &receiving{}, newCounter()
		first := begin(t, Options{Store: f}, dying)
		second := begin(t, Options{Store: m, Count: c.count}, living)
		defer shut(t, second)
		send(t, first, "m1", hook)
		synctest.Wait()
		f.mu.Lock()
		f.dead = true
		f.mu.Unlock()
		time.Sleep(30*time.Second - time.Millisecond)
		synctest.Wait()
		if dying.requests() != 1 || living.requests() != 0 {
			t.Fatalf("%d and %d requests before the lease is over", dying.requests(), living.requests())
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if living.requests() != 1 || c.of(Delivered) != 1 {
			t.Errorf("%d requests after the lease, %v", living.requests(), c.n)
		}
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Close(cut); err == nil {
			t.Error("an attempt was cut off and nothing says so")
		}
	})
}

func TestDeliveryThatCrashesProcessesIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, r := newMemory(), newCounter(), &receiving{}
		st := state{V: stateVersion, URL: hook, Receiver: "hooks.example.com:443", Type: "call.failed", Attempts: len(defaultSchedule()) + 1, Owner: "died", By: "died"}
		if _, err := m.Create(t.Context(), schema.DefaultTenant, "m1", st.encode(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		s := begin(t, Options{Store: m, Count: c.count}, r)
		defer shut(t, s)
		time.Sleep(time.Hour)
		synctest.Wait()
		if r.requests() != 0 || c.of(Dead) != 1 {
			t.Errorf("%d requests, %v", r.requests(), c.n)
		}
		checkContains(t, only(t, s.Deliveries(schema.AllTenants(), true)).Dead, "stopped during it")
	})
}

func TestCloseWaitsThenReleasesDeliveriesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiving{takes: 4 * time.Second}
		s := begin(t, Options{Store: m}, r)
		send(t, s, "m1", hook)
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil || time.Since(began) != 4*time.Second || m.stateOf("m1") != nil {
			t.Errorf("%v after %v, left %s", err, time.Since(began), m.stateOf("m1"))
		}
		if err := s.Send(t.Context(), Message{URL: hook, Event: event(1)}); schema.KindOf(err) != schema.KindUnavailable {
			t.Errorf("after closing: %v", err)
		}

		hanging := &receiving{hangs: true}
		s = begin(t, Options{Store: m}, hanging)
		send(t, s, "m2", hook)
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if st := m.stored(t, "m2"); st.Owner != "" || st.By != "" || st.Attempts != 0 {
			t.Errorf("%+v", st)
		}
		c := newCounter()
		s = begin(t, Options{Store: m, Count: c.count}, &receiving{})
		defer shut(t, s)
		synctest.Wait()
		if c.of(Delivered) != 1 {
			t.Errorf("the next process does not begin at once: %v", c.n)
		}
	})
}

func (m *memory) stateOf(id string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[id].state
}

// flaky is a store whose next writes are made but not acknowledged, or not made.
type flaky struct {
	*memory
	mu   sync.Mutex
	lose int // answers of writes that were made
	fail int // writes that are not made
}

func (f *flaky) write(do func() (uint64, error)) (uint64, error) {
	f.mu.Lock()
	lose, fail := f.lose > 0, f.fail > 0
	switch {
	case fail:
		f.fail--
	case lose:
		f.lose--
	}
	f.mu.Unlock()
	if fail {
		return 0, errors.New("down")
	}
	revision, err := do()
	if lose && err == nil {
		return 0, errors.New("no answer")
	}
	return revision, err
}

func (f *flaky) Replace(ctx context.Context, tenant schema.TenantID, id string, s []byte, revision uint64) (uint64, error) {
	return f.write(func() (uint64, error) { return f.memory.Replace(ctx, tenant, id, s, revision) })
}

func (f *flaky) Remove(ctx context.Context, tenant schema.TenantID, id string, revision uint64) (uint64, error) {
	return f.write(func() (uint64, error) { return f.memory.Remove(ctx, tenant, id, revision) })
}

func TestStoreOutageCostsNoDeliveryOrAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		lose, fail int
		later      bool // while the request is under way
	}{
		"claims are not made":                   {fail: 5},
		"claims are not acknowledged":           {lose: 12},
		"one acknowledgement is lost":           {lose: 1},
		"the outcome is not made":               {fail: 2, later: true},
		"the outcome's acknowledgement is lost": {lose: 1, later: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, r := &flaky{memory: newMemory()}, &receiving{takes: time.Second, answers: []answer{{status: 500}, {status: 204}}}
			s := begin(t, Options{Store: store}, r)
			defer shut(t, s)
			upset := func() { store.mu.Lock(); defer store.mu.Unlock(); store.lose, store.fail = c.lose, c.fail }
			if !c.later {
				upset()
			}
			send(t, s, "m1", hook)
			if c.later {
				time.Sleep(500 * time.Millisecond)
				upset()
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if r.requests() != 2 || s.Load() != (Load{}) || store.stateOf("m1") != nil {
				t.Fatalf("%s: %d requests, %+v, left %s", name, r.requests(), s.Load(), store.stateOf("m1"))
			}
			if gap := r.at[1].Sub(r.at[0]); gap < 6*time.Second || gap > 20*time.Second {
				t.Errorf("%s: the second attempt came after %v, want the schedule's first wait", name, gap)
			}
		})
	}
}

func TestStoreOutageIsLoggedAFewTimesForAllDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		store := &flaky{memory: newMemory(), fail: 1000}
		s := begin(t, Options{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))}, &receiving{answers: []answer{{status: 204}}})
		defer shut(t, s)
		for i := range 10 {
			send(t, s, fmt.Sprint("m", i), hook)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		store.mu.Lock()
		left := store.fail
		store.fail = 0
		store.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if failed := log.Count("could not be claimed"); left > 900 || failed < 2 || failed > 6 || log.Count("can be stored again") != 1 {
			t.Errorf("%d writes were left to fail, and the log is:\n%s", left, log.String())
		}
	})
}

func TestFullOutboxRefusesAndLogsNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c, r := newCounter(), &receiving{takes: 5 * time.Second, answers: []answer{{status: 404}}}
		s := begin(t, Options{Store: newMemory(), WaitingEach: 3, Waiting: 4, Count: c.count, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, r)
		defer shut(t, s)
		for i := range 3 {
			send(t, s, fmt.Sprint("m", i), hook)
		}
		if err := s.Send(t.Context(), Message{URL: hook, Event: event(1)}); schema.KindOf(err) != schema.KindQuota || s.Check(hook, "") == nil {
			t.Errorf("the receiver's part is full: %v, %v", err, s.Check(hook, ""))
		}
		send(t, s, "other", "https://other.example.com/")
		if fault := s.Check("https://third.example.com/", ""); fault == nil || fault.Kind != schema.KindUnavailable || fault.RetryAfter == 0 {
			t.Errorf("the outbox is full: %v", fault)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.of(Refused) != 1 || c.of(Dead) != 4 || s.Check(hook, "") != nil {
			t.Errorf("%v, %v", c.n, s.Check(hook, ""))
		}
		// As many dead ones are kept as may wait; the oldest go.
		send(t, s, "more", hook)
		time.Sleep(time.Minute)
		synctest.Wait()
		if list := s.Deliveries(schema.AllTenants(), true); len(list) != 4 || list[3].ID != "more" {
			t.Errorf("%+v", list)
		}
		for _, secret := range []string{"hunter2", "hooks.example.com", secretA[6:], "call_1"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log holds %q:\n%s", secret, log.String())
			}
		}
		checkContains(t, log.String(), "answered 404")
	})
}

func TestSameIDIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &receiving{takes: time.Second}, newMemory()
		a, b := begin(t, Options{Store: m}, r), begin(t, Options{Store: m}, r)
		defer shut(t, a)
		defer shut(t, b)
		for range 10 {
			send(t, a, "m1", hook)
			send(t, b, "m1", hook)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if r.requests() != 1 || a.Load() != (Load{}) || b.Load() != (Load{}) {
			t.Errorf("%d requests, %+v, %+v", r.requests(), a.Load(), b.Load())
		}
		for _, id := range []string{"a.b", "a b", "a>", strings.Repeat("a", 65)} {
			if err := a.Send(t.Context(), Message{ID: id, URL: hook, Event: event(1)}); err == nil {
				t.Errorf("the id %q is taken", id)
			}
		}
	})
}

func TestStateOfANewerVersionIsLeftUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiving{}
		for id, st := range map[string]string{"m1": `{"v":2}`, "m2": "garbage"} {
			if _, err := m.Create(t.Context(), schema.DefaultTenant, id, []byte(st), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		s := begin(t, Options{Store: m}, r)
		defer shut(t, s)
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, _, err := m.Get(t.Context(), schema.AllTenants(), "m1"); r.requests() != 0 || err != nil {
			t.Errorf("%d requests, %v", r.requests(), err)
		}
	})
}

func TestAnEventThatIsNoLongerKeptIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiving{}
		st := state{V: stateVersion, URL: hook, Receiver: "hooks.example.com:443", Type: "call.failed"}
		if _, err := m.Create(t.Context(), schema.DefaultTenant, "m1", st.encode(), nil); err != nil {
			t.Fatal(err)
		}
		s := begin(t, Options{Store: m}, r)
		defer shut(t, s)
		synctest.Wait()
		checkContains(t, only(t, s.Deliveries(schema.AllTenants(), true)).Dead, "no longer kept")
		if _, err := m.Body(t.Context(), schema.DefaultTenant, "m1"); !errors.Is(err, bus.ErrNotFound) || r.requests() != 0 {
			t.Errorf("%v, %d requests", err, r.requests())
		}
	})
}
