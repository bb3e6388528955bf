//go:build mixed

package rolling

import (
	"os"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// "make mixed" runs this test: processes of an earlier commit, whose folder is in
// CALLYARD_TEST_OLD, run with those of this one, and it upgrades and downgrades under load.
func TestThePreviousReleaseWorksWithThisOne(t *testing.T) {
	old := os.Getenv("CALLYARD_TEST_OLD")
	if old == "" {
		t.Fatal("CALLYARD_TEST_OLD names no folder of programs: run make mixed OLD=commit")
	}
	now := bin(t, programs.now)
	for _, c := range []struct{ name, first, then string }{{"upgrade", old, now}, {"back", now, old}} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, startSingle(t), "")
			h.replicas = 1
			ports := porttest.Ports(t, 4)
			start := func(name, from string, port int) *role {
				r := h.role(t, program{name: name, from: from, port: port})
				r.up(t)
				return r
			}
			doors := []*role{start("frontdoor", c.first, ports[0]), start("frontdoor", c.first, ports[1])}
			workers := []*role{start("worker", c.first, ports[2]), start("worker", c.first, ports[3])}
			all := func() {
				t.Helper()
				for _, d := range doors {
					sees(t, d, 2)
				}
			}
			all()
			b := proc.StartBalancer(t, client(t), doors[0].url, doors[1].url)
			lanes := [kinds]int{plain: 2, slow: 2, safe: 1, stored: 2, confirmed: 1}
			l := startLoad(t, h, b, nil, lanes)
			l.calm(t, 3, lanes, "the start")
			for i := range workers {
				workers[i].Stop(t)
				workers[i] = start("worker", c.then, ports[2+i])
				all()
				l.calm(t, 3, lanes, "the change of a worker")
			}
			for i := range doors {
				doors[i].Stop(t)
				doors[i] = start("frontdoor", c.then, ports[i])
				proc.Eventually(t, proc.Soon, "the new one is used", func() error { return b.Uses(doors[i].url) })
				l.calm(t, 3, lanes, "the change of a front door")
			}
			l.check(t)
		})
	}
}
