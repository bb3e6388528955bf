package catalog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// beats looks for silent processes once in each of these seconds. deaf means that NATS delivers nothing,
// and down that the connection is lost.
func beats(p *peers, seconds int, down, deaf bool) {
	for range seconds {
		time.Sleep(time.Second)
		if !down && !deaf {
			p.sawRouter(&schema.FrontDoor{ID: "own"})
		}
		p.expire(time.Now(), down || p.deaf(time.Now()))
	}
}

// When NATS is back after a restart, a front door reads what others store before it hears them.
func TestNoFrontDoorCountsAsDeadBecauseOfAnOutageOfNATS(t *testing.T) {
	for name, down := range map[string]bool{"down": true, "frozen": false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeers("own")
			p.sawRouter(&schema.FrontDoor{ID: "own"})
			p.sawRouter(&schema.FrontDoor{ID: "other"})
			beats(p, 60, down, true)
			if !p.routerAlive("other") || p.count() != 2 {
				t.Errorf("%s: the other front door counts as dead after the outage", name)
			}
			beats(p, 4, false, false)
			if p.routerAlive("other") || p.count() != 1 {
				t.Errorf("%s: a front door that stays silent after the outage counts as alive", name)
			}
		})
	}
}

func TestAFrontDoorMayLiveUntilTheGracePeriodHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 15 * time.Second
		p := newPeers("own")
		if !p.routerMayLive("unheard", 0) || !p.routerMayLive("own", 0) {
			t.Error("at the start nobody can have been heard")
		}
		p.sawRouter(&schema.FrontDoor{ID: "other"})
		beats(p, 4, false, false)
		if p.routerMayLive("unheard", 0) || p.routerMayLive("other", 0) || p.routerAlive("other") {
			t.Error("without a grace period, a silent front door may live")
		}
		beats(p, 10, false, false)
		if !p.routerMayLive("unheard", grace) || !p.routerMayLive("other", grace) {
			t.Error("the grace period has not passed")
		}
		beats(p, 20, true, true) // does not count
		beats(p, 14, false, false)
		if !p.routerMayLive("unheard", grace) || !p.routerMayLive("other", grace) {
			t.Error("the outage counts as silence")
		}
		beats(p, 2, false, false)
		if p.routerMayLive("unheard", grace) || p.routerMayLive("other", grace) || !p.routerMayLive("own", grace) {
			t.Error("the grace period has passed")
		}
		beats(p, 60, false, false)
		if len(p.lost) != 0 || p.routerMayLive("other", grace) {
			t.Errorf("%d front doors are remembered", len(p.lost))
		}
	})
}
