package webhook

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

func roomy() limits {
	return limits{underWay: 8, underWayEach: 2, waiting: 10_000, waitingEach: 10_000, bytes: 1 << 30, bytesEach: 1 << 30}
}

func TestQueueIsFairBetweenReceivers(t *testing.T) {
	q, now := newQueue(roomy()), time.Now()
	for i := range 100 {
		q.put(fmt.Sprint("slow", i), state{Receiver: "slow:443"}, uint64(i+1), now.Add(-time.Hour))
	}
	for i := range 3 {
		q.put(fmt.Sprint("quick", i), state{Receiver: fmt.Sprintf("quick%d:443", i)}, uint64(200+i), now)
	}
	began := map[string]int{}
	for {
		r, _ := q.next(now)
		if r == nil {
			break
		}
		began[r.state.Receiver]++
	}
	if began["slow:443"] != 2 || len(began) != 4 {
		t.Errorf("%v", began)
	}
}

func TestLongestDueDeliveryIsSentFirst(t *testing.T) {
	q, now := newQueue(roomy()), time.Now()
	q.put("late", state{Receiver: "a:443"}, 1, now.Add(-time.Second))
	q.put("first", state{Receiver: "b:443"}, 2, now.Add(-time.Minute))
	q.put("future", state{Receiver: "c:443"}, 3, now.Add(time.Minute))
	for _, want := range []string{"first", "late"} {
		if r, _ := q.next(now); r == nil || r.id != want {
			t.Fatalf("%v, want %s", r, want)
		}
	}
	if r, wait := q.next(now); r != nil || wait != time.Minute {
		t.Errorf("%v, %v", r, wait)
	}
}

func TestPausedReceiverDoesNotBlockOthers(t *testing.T) {
	q, now := newQueue(roomy()), time.Now()
	for i := range 3 {
		q.put(fmt.Sprint("m", i), state{Receiver: "a:443"}, uint64(i+1), now)
	}
	r, _ := q.next(now)
	q.done(r, now.Add(time.Minute))
	if r, wait := q.next(now); r != nil || wait != time.Minute {
		t.Errorf("a paused receiver: %v, %v", r, wait)
	}
	q.put("other", state{Receiver: "b:443"}, 9, now)
	if r, _ := q.next(now); r == nil || r.id != "other" {
		t.Errorf("%v", r)
	}
	if r, _ := q.next(now.Add(time.Minute)); r == nil {
		t.Error("a pause does not end")
	}
}

func TestStaleUpdateDoesNotRestoreAnEndedDelivery(t *testing.T) {
	q, now := newQueue(roomy()), time.Now()
	q.put("m", state{Receiver: "a:443"}, 5, now)
	q.put("m", state{Receiver: "a:443"}, 7, now)
	q.drop("m", 9, false)
	q.put("m", state{Receiver: "a:443"}, 7, now)
	if r, _ := q.next(now); r != nil || q.waiting.n != 0 {
		t.Errorf("%v, %d wait", r, q.waiting.n)
	}
	q.drop("m", 9, true)
	if len(q.rows) != 0 || len(q.receivers) != 0 {
		t.Errorf("%d rows and %d receivers are left", len(q.rows), len(q.receivers))
	}
}

func TestOutboxIsBoundedByCountAndBytes(t *testing.T) {
	for name, c := range map[string]struct {
		limits limits
		kind   schema.Kind
	}{
		"deliveries of one receiver": {limits{waiting: 10, waitingEach: 2, bytes: 100, bytesEach: 100}, schema.KindQuota},
		"bytes of one receiver":      {limits{waiting: 10, waitingEach: 10, bytes: 100, bytesEach: 20}, schema.KindQuota},
		"deliveries in all":          {limits{waiting: 2, waitingEach: 10, bytes: 100, bytesEach: 100}, schema.KindUnavailable},
		"bytes in all":               {limits{waiting: 10, waitingEach: 10, bytes: 20, bytesEach: 100}, schema.KindUnavailable},
	} {
		q := newQueue(c.limits)
		for i := range 2 {
			if fault := q.space("a:443", "", 10); fault != nil {
				t.Fatalf("%s: %v", name, fault)
			}
			q.put(fmt.Sprint(i), state{Receiver: "a:443", Size: 10}, uint64(i+1), time.Now())
		}
		fault := q.space("a:443", "", 10)
		if fault == nil || fault.Kind != c.kind || fault.RetryAfter == 0 {
			t.Errorf("%s: %v", name, fault)
		}
		if fault := q.space("b:443", "", 10); (fault != nil) != (c.kind == schema.KindUnavailable) {
			t.Errorf("%s: another receiver: %v", name, fault)
		}
		// What was given up makes room.
		q.put("0", state{Receiver: "a:443", Size: 10, Dead: "x"}, 9, time.Now())
		if fault := q.space("a:443", "", 10); fault != nil {
			t.Errorf("%s: %v", name, fault)
		}
	}
}

func TestTenantsDoNotUseTheOutboxOfOthers(t *testing.T) {
	q := newQueue(limits{waiting: 8, waitingEach: 3, bytes: 1000, bytesEach: 1000})
	fill := func(receiver string) (kind schema.Kind) {
		for {
			if fault := q.space(receiver, "red", 10); fault != nil {
				return fault.Kind
			}
			n := len(q.rows)
			q.put(fmt.Sprint(n), state{Receiver: receiver, Tenant: "red", Size: 10}, uint64(n+1), time.Now())
		}
	}
	if kind := fill("a:443"); kind != schema.KindQuota || len(q.rows) != 3 {
		t.Errorf("%d deliveries to one receiver: %s", len(q.rows), kind)
	}
	for _, tenant := range []schema.TenantID{"blue", "default", ""} {
		if fault := q.space("a:443", tenant, 10); fault != nil {
			t.Errorf("tenant %q, the same receiver: %v", tenant, fault)
		}
	}
	fill("b:443")
	if kind := fill("c:443"); kind != schema.KindQuota || len(q.rows) != 6 {
		t.Errorf("%d deliveries of one tenant: %s", len(q.rows), kind)
	}
	for _, tenant := range []schema.TenantID{"blue", ""} {
		if fault := q.space("d:443", tenant, 10); fault != nil {
			t.Errorf("tenant %q, the rest of the outbox: %v", tenant, fault)
		}
	}
	for id := range q.rows {
		q.drop(id, 99, true)
	}
	if len(q.tenants) != 0 || len(q.receivers) != 0 || q.waiting != (total{}) {
		t.Errorf("%v, %v and %v are left", q.tenants, q.receivers, q.waiting)
	}
}

// The totals and orders are kept by many small steps; after any of them they
// must be what counting afresh gives.
func TestQueueTotalsStayConsistent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	q, now := newQueue(roomy()), time.Now()
	var busy []*row
	revision := uint64(0)
	for range 20_000 {
		id := fmt.Sprint(rnd.IntN(40))
		name := fmt.Sprintf("r%d:443", len(id)*7%5)
		revision++
		switch rnd.IntN(6) {
		case 0, 1:
			st := state{Receiver: name, Size: rnd.IntN(9)}
			if r := q.rows[id]; r != nil {
				st.Receiver = r.state.Receiver
			}
			if rnd.IntN(5) == 0 {
				st.Dead = "x"
			}
			q.put(id, st, revision-uint64(rnd.IntN(3)), now.Add(time.Duration(rnd.IntN(10)-5)*time.Second))
		case 2:
			q.drop(id, revision, rnd.IntN(2) == 0)
		case 3:
			if r, _ := q.next(now); r != nil {
				busy = append(busy, r)
			}
		case 4:
			if len(busy) > 0 {
				i := rnd.IntN(len(busy))
				q.done(busy[i], now.Add(time.Duration(rnd.IntN(5)-4)*time.Second))
				busy = append(busy[:i], busy[i+1:]...)
			}
		case 5:
			q.reserve(name, "red", 1, 3)
			q.reserve(name, "red", -1, 3)
		}
		balanced(t, q, len(busy))
	}
}

func balanced(t *testing.T, q *queue, busy int) {
	t.Helper()
	var waiting, dead total
	each := map[string]int{}
	for _, r := range q.rows {
		switch {
		case r.gone:
		case r.state.Dead != "":
			dead.add(1, r.state.Size)
		default:
			waiting.add(1, r.state.Size)
			each[r.state.Receiver]++
		}
		if queued := r.place >= 0; queued != (!r.gone && !r.busy && r.state.Dead == "") {
			t.Fatalf("row %s: queued %t, %+v", r.id, queued, r)
		}
	}
	under := 0
	for name, r := range q.receivers {
		under += r.underWay
		if r.waiting.n != each[name] {
			t.Fatalf("receiver %s counts %d and has %d", name, r.waiting.n, each[name])
		}
		if ready := r.place >= 0; ready != (len(r.rows) > 0 && r.underWay < q.limits.underWayEach) {
			t.Fatalf("receiver %s: ready %t, %d rows, %d under way", name, ready, len(r.rows), r.underWay)
		}
		delete(each, name)
	}
	if waiting != q.waiting || dead != q.dead || len(each) != 0 || under != busy || q.underWay != busy {
		t.Fatalf("waiting %+v for %+v, dead %+v for %+v, unknown receivers %v, under way %d, %d for %d", q.waiting, waiting, q.dead, dead, each, q.underWay, under, busy)
	}
}
