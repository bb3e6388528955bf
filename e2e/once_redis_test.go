package e2e

import (
	"encoding/json"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// redisFault is a fault of Redis in the middle of a race. All functions are called
// on the test's own goroutine.
type redisFault struct {
	section string                                  // of the configuration of the fleet
	before  func()                                  // when all calls are held
	strike  func()                                  // when half of them were decided; returns when Redis is reachable again
	after   func() *confirmtest.Redis               // returns the Redis that is used afterwards
	spent   func(t *testing.T, ran, calls, old int) // checks the number of runs, and of tokens that Redis still considers valid
}

// allRan is for faults that restore tokens: Redis offers spent tokens again,
// but every call runs only once.
func allRan(t *testing.T, ran, calls, old int) {
	t.Helper()
	if ran != calls {
		t.Errorf("%d of %d calls ran", ran, calls)
	}
	if old == 0 {
		t.Error("Redis offers no token again that was spent, so nothing was put to the test")
	}
}

func TestRedisFaultsDuringConfirmationsRunNoCallTwice(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) redisFault{
		"flushed": func(t *testing.T) redisFault {
			s := confirmtest.StartRedis(t, "", porttest.Address(t))
			return redisFault{
				section: urlSection(s), before: func() {},
				strike: func() {
					if err := s.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				},
				after: func() *confirmtest.Redis { return s },
				spent: func(t *testing.T, ran, calls, _ int) {
					t.Helper()
					if ran < calls/4 || ran >= calls {
						t.Errorf("%d of %d calls ran; those whose token was forgotten cannot", ran, calls)
					}
				},
			}
		},
		"restarted from an old dump": func(t *testing.T) redisFault {
			s := confirmtest.StartRedis(t, "", porttest.Address(t))
			return redisFault{
				section: urlSection(s), spent: allRan,
				before: func() { // before any token is spent
					if err := s.Dump(t.Context()); err != nil {
						t.Fatal(err)
					}
				},
				strike: func() { s = s.Restart(t) },
				after:  func() *confirmtest.Redis { return s },
			}
		},
		"failed over by Sentinel": func(t *testing.T) redisFault {
			main := confirmtest.StartRedis(t, "", porttest.Address(t))
			replica := main.Replica(t)
			watch := proc.StartSentinels(t, main)
			return redisFault{
				section: watch.Section(), spent: allRan,
				before: func() {
					follows(t, main, replica)
					cut(t, main, replica)
				},
				strike: func() {
					main.Kill()
					watch.Failover(t, replica)
				},
				after: func() *confirmtest.Redis { return replica },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const calls, racers = 60, 100
			f := open(t)
			b := openApprovalFleet(t, staff{doors: 2, approvers: 2, workers: 2, redis: f.section})
			all := b.questions(t, calls, false)
			f.before()
			tallies := b.raceAll(t, all, racers, 4, f.strike)
			old := validTokens(t, f.after())
			// Regardless of Redis's current state, also of tokens that were spent long ago.
			for i, q := range all {
				late := b.decideConcurrently(t, q, 10, nil)
				if won := tallies[i].won.Load() + late.won.Load(); won > 1 {
					t.Errorf("%s: %d confirmations were answered with a result", q.id, won)
				}
			}
			effects := readEffects(t, b.effects)
			ran, away := 0, int64(0)
			for i, q := range all {
				var s callState
				b.doors[i%2].read(t, "/calls/"+q.CallID, &s)
				if err := q.checkState(s, effects[q.id]); err != nil {
					t.Error(err)
				}
				ran += effects[q.id]
				away += tallies[i].away.Load()
			}
			f.spent(t, ran, calls, old)
			t.Logf("%d calls × %d racers: %d effects; %d times it was said that Redis is away; in the end it took %d tokens for unspent", calls, racers, ran, away, old)
		})
	}
}

func urlSection(s *confirmtest.Redis) string {
	text, _ := json.Marshal("redis://" + s.Address)
	return "redis: {url: " + string(text) + "}\n"
}
