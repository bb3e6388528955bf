//go:build mixed

package rolling

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// "make mixed" runs this test: processes of an earlier commit, whose folder is in
// CALLYARD_TEST_OLD, run with those of this one, and it upgrades and downgrades under load,
// in the order of docs/how-to/upgrades.md.
func TestThePreviousReleaseWorksWithThisOne(t *testing.T) {
	old := os.Getenv("CALLYARD_TEST_OLD")
	if old == "" {
		t.Fatal("CALLYARD_TEST_OLD names no folder of programs: run make mixed OLD=commit")
	}
	now := bin(t, programs.now)
	for _, c := range []struct{ name, first, then string }{{"upgrade", old, now}, {"back", now, old}} {
		t.Run(c.name, func(t *testing.T) {
			redis := confirmtest.StartRedis(t, "", porttest.Address(t))
			h := newHouse(t, startSingle(t), fmt.Sprintf("redis: {url: redis://%s/0}\n", redis.Address))
			h.replicas = 1
			ports := porttest.Ports(t, 6)
			start := func(name, from string, port int) *role {
				r := h.role(t, program{name: name, from: from, port: port})
				r.up(t)
				return r
			}
			workers := []*role{start("worker", c.first, ports[0]), start("worker", c.first, ports[1])}
			approvers := []*role{start("approver", c.first, ports[2]), start("approver", c.first, ports[3])}
			doors := []*role{start("frontdoor", c.first, ports[4]), start("frontdoor", c.first, ports[5])}
			all := func() {
				t.Helper()
				for _, d := range doors {
					sees(t, d, 2)
				}
			}
			all()
			front := proc.StartBalancer(t, client(t), doors[0].url, doors[1].url)
			office := proc.StartBalancer(t, client(t), approvers[0].url, approvers[1].url)
			lanes := [kinds]int{plain: 2, slow: 2, safe: 1, stored: 2, confirmed: 1, approved: 1, batched: 1}
			l := startLoad(t, h, front, office, lanes)
			l.calm(t, 3, lanes, "the start")
			early, late := l.hold(t, "early"), l.hold(t, "late")
			for i := range workers {
				workers[i].Stop(t)
				workers[i] = start("worker", c.then, ports[i])
				all()
				l.calm(t, 3, lanes, "the change of a worker")
			}
			for i := range approvers {
				approvers[i].Stop(t)
				approvers[i] = start("approver", c.then, ports[2+i])
				proc.Eventually(t, proc.Soon, "the new one is used", func() error { return office.Uses(approvers[i].url) })
				l.calm(t, 3, lanes, "the change of an approver")
			}
			l.release(t, early)
			between := l.hold(t, "between")
			for i := range doors {
				doors[i].Stop(t)
				doors[i] = start("frontdoor", c.then, ports[4+i])
				proc.Eventually(t, proc.Soon, "the new one is used", func() error { return front.Uses(doors[i].url) })
				l.calm(t, 3, lanes, "the change of a front door")
			}
			l.release(t, late)
			l.release(t, between)
			l.check(t)
		})
	}
}

// waiting is a held call that nobody has decided yet.
type waiting struct {
	kind int
	id   string
	held held
}

// heldOfEach is the number of calls that hold leaves undecided, of each kind.
const heldOfEach = 10

// hold makes calls that wait for their caller and for an approver, and leaves them undecided.
func (l *load) hold(t testing.TB, name string) (all []waiting) {
	t.Helper()
	for kind, server := range map[int]string{confirmed: callersServer, approved: peoplesServer} {
		for i := range heldOfEach {
			id := fmt.Sprintf("held-%s-%s-%d", name, kindNames[kind], i)
			a, err := l.doors.do(false, http.MethodPost, "/servers/"+server+"/tools/effect", fmt.Sprintf(`{"path":%q,"id":%q}`, l.house.effects, id))
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			h, err := isHeld(a)
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			all = append(all, waiting{kind, id, h})
		}
	}
	return all
}

// release decides held calls, none of which may have run before.
func (l *load) release(t testing.TB, all []waiting) {
	t.Helper()
	effects, err := mcptest.ReadEffects(l.house.effects)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		if effects[w.id] > 0 {
			t.Errorf("%s ran before it was decided", w.id)
		}
		err := l.decide(w.kind, w.id, w.held, 1)
		l.mu.Lock()
		if l.ran = append(l.ran, w.id); err != nil {
			l.faults = append(l.faults, fmt.Sprintf("%s: %v", w.id, err))
		}
		l.mu.Unlock()
	}
}
