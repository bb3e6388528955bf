package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// story is a held call at some point of its life, and the way it
// continues after a process was killed there.
type story struct {
	*heldCall
	step    step
	confirm chan error // closed when the caller's confirmation was answered, or lost
}

// step is a point between two steps in the life of a held call.
type step struct {
	name  string
	ms    int  // duration of its tool
	alone bool // only approvers can stop here: a caller's confirmation is the claim as well
	reach func(t *testing.T, k *killFleet, s *story)
	// open reports that it still waits for a decision after the kill.
	open bool
	// ends lists the valid final states. Additional ones of a victim are in victim.
	ends []string
}

// steps are in the order in which they are reached, all before one kill. The last
// two need stopped processes.
var steps = []step{
	{name: "overdue", ends: []string{"expired"}},
	{name: "held", open: true, ends: []string{"succeeded"}},
	{name: "looked at", open: true, reach: lookedAt, ends: []string{"succeeded"}},
	{name: "refused", reach: refused, ends: []string{"denied"}},
	{name: "ended", reach: runToEnd, ends: []string{"succeeded"}},
	{name: "running", ms: 4000, reach: running, ends: []string{"succeeded"}},
	{name: "claimed", reach: claimed, ends: []string{"succeeded"}},
	{name: "decided", reach: decided, alone: true, ends: []string{"succeeded"}},
}

// victim is a process that is killed and restarted.
type victim struct {
	kill, again func(t *testing.T, k *killFleet)
	// may lists further valid final states after this victim's death, by step or story.
	may map[string][]string
	// forgets reports that its tokens are lost: the caller gets an error, and cancels
	// the call.
	forgets bool
}

// lost are the valid final states of calls in flight, whose outcome cannot be determined.
var lost = []string{"unknown"}

func victims() map[string]victim {
	return map[string]victim{
		"front door": {
			kill:  func(t *testing.T, k *killFleet) { k.doors[0].kill9(t) },
			again: func(t *testing.T, k *killFleet) { k.doors[0] = startFrontDoor(t, k.door) },
			may:   map[string][]string{"running": lost, "claimed": lost},
		},
		"approver": {
			kill:  func(t *testing.T, k *killFleet) { k.approvers[0].kill9(t) },
			again: func(t *testing.T, k *killFleet) { k.approvers[0] = startApprover(t, k.approver) },
		},
		"worker": {
			kill:  func(t *testing.T, k *killFleet) { k.workers[0].kill9(t) },
			again: func(t *testing.T, k *killFleet) { k.workers[0] = startWorker(t, k.worker) },
			// A decided call may be sent before NATS detects that the worker has died.
			may: map[string][]string{"running": lost, "claimed": lost, "decided": lost},
		},
		"Redis": {
			kill:  func(t *testing.T, k *killFleet) { k.redis.Kill() },
			again: func(t *testing.T, k *killFleet) { k.redis = startLastingRedis(t, k.redisDir, k.redis.Address) },
		},
		"Redis that keeps nothing": {
			kill:    func(t *testing.T, k *killFleet) { k.redis.Kill() },
			again:   func(t *testing.T, k *killFleet) { k.redis = confirmtest.StartRedis(t, t.TempDir(), k.redis.Address) },
			may:     map[string][]string{"held by caller": {"canceled"}, "looked at by caller": {"canceled"}},
			forgets: true,
		},
		"NATS": {
			kill: func(t *testing.T, k *killFleet) { k.nats.kill9(t) },
			again: func(t *testing.T, k *killFleet) {
				_, port, _ := net.SplitHostPort(strings.TrimPrefix(k.nats.url, "nats://"))
				k.nats = startNATSOn(t, k.natsDir, port)
			},
			// A call that NATS had not delivered to the frozen worker yet is lost with it. The worker
			// reports that it never got it, so it failed without a run.
			may: map[string][]string{"running": lost, "claimed": {"unknown", "failed"}},
		},
	}
}

// killFleet is a fleet of one process of each kind, one of which is about to be killed.
type killFleet struct {
	*approvalFleet
	redis    *confirmtest.Redis
	redisDir string
}

// startLastingRedis starts a Redis that keeps all data over a kill.
func startLastingRedis(t *testing.T, dir, address string) *confirmtest.Redis {
	t.Helper()
	return confirmtest.StartRedis(t, dir, address, "--appendonly", "yes", "--appendfsync", "always")
}

func openKillFleet(t *testing.T) *killFleet {
	t.Helper()
	k := &killFleet{redisDir: t.TempDir()}
	k.redis = startLastingRedis(t, k.redisDir, porttest.Address(t))
	k.approvalFleet = openApprovalFleet(t, staff{doors: 1, approvers: 1, workers: 1, redis: urlSection(k.redis)})
	// A restarted process has the same address.
	k.door.listen = strings.TrimPrefix(k.doors[0].url, "http://")
	k.approver.listen = strings.TrimPrefix(k.approvers[0].url, "http://")
	return k
}

func lookedAt(t *testing.T, k *killFleet, s *story) {
	k.doors[0].get(t, "/calls/"+s.CallID)
	for _, path := range []string{"/approvals/" + s.ApprovalID, "/a/" + s.ApprovalID} {
		k.approvers[0].ask(t, "GET", path, "", "X-API-Key: "+auditor)
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		k.doors[0].ask(t, method, "/confirmations/"+url.PathEscape(s.ID), "")
		k.approvers[0].ask(t, method, "/approvals/"+s.ApprovalID+"/decisions", "", "X-API-Key: "+deciders[0])
	}
}

func refused(t *testing.T, k *killFleet, s *story) {
	var a answer
	var err error
	if s.people {
		a, err = k.decides(k.approvers[0], s.heldCall, deciders[0], "deny")
	} else {
		a, err = k.confirms(k.doors[0], s.heldCall, false)
	}
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("refusing %s: %d %s, %v", s.id, a.status, a.body, err)
	}
}

// approve sends the approver's approval. It does not wait for the response, which
// arrives when the call has ended.
func (k *killFleet) approve(t *testing.T, s *story) {
	t.Helper()
	if !s.people {
		s.confirm = make(chan error, 1)
		go func() {
			defer close(s.confirm)
			if _, err := k.confirms(k.doors[0], s.heldCall, true); err != nil {
				s.confirm <- err // it may have been killed
			}
		}()
		return
	}
	if a, err := k.decides(k.approvers[0], s.heldCall, deciders[0], "approve"); err != nil || a.status != http.StatusOK {
		t.Fatalf("approving %s: %d %s, %v", s.id, a.status, a.body, err)
	}
}

func runToEnd(t *testing.T, k *killFleet, s *story) {
	k.approve(t, s)
	if got := k.ended(t, k.doors[0], s.heldCall); got.State != "succeeded" {
		t.Fatalf("%s is %s: %s", s.id, got.State, got.Problem)
	}
}

func running(t *testing.T, k *killFleet, s *story) {
	k.approve(t, s)
	hasEffect(t, k.effects, s.id)
}

// claimed stops between the claim and the run: the call is at a worker
// that does not run it.
func claimed(t *testing.T, k *killFleet, s *story) {
	k.workers[0].freeze(t)
	k.approve(t, s)
	k.doors[0].eventually(t, soon, s.id+" has left", func() error {
		if got := k.doors[0].callStateNow(t, s.CallID); got.State != "running" {
			return fmt.Errorf("it is %s", got.State)
		}
		return nil
	})
}

// decided stops between the approval and the claim, which no front door makes.
func decided(t *testing.T, k *killFleet, s *story) {
	k.doors[0].freeze(t)
	k.approve(t, s)
}

// thaw continues every process that still runs.
func (k *killFleet) thaw() {
	k.workers[0].thaw()
	k.doors[0].thaw()
}

func TestConfirmationSurvivesKillBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	for name, v := range victims() {
		t.Run(name, func(t *testing.T) {
			k := openKillFleet(t)
			var stories []*story
			for _, st := range steps {
				for _, people := range []bool{false, true} {
					if st.alone && !people {
						continue
					}
					by := "caller"
					if people {
						by = "people"
					}
					id := st.name + " by " + by
					if st.name == "overdue" {
						id = by + " overdue" // as named in the policy
					}
					s := &story{step: st, heldCall: k.asked(t, k.doors[0], people, id, st.ms)}
					if people {
						k.shown(t, k.approvers[0], s.heldCall)
					}
					stories = append(stories, s)
				}
			}
			for _, s := range stories {
				if s.step.reach != nil {
					s.step.reach(t, k, s)
				}
			}
			v.kill(t, k)
			k.thaw()
			v.again(t, k)
			k.back(t)

			for _, s := range stories {
				if s.step.open {
					k.stillOpen(t, s, v.forgets)
				}
			}
			var seen strings.Builder
			states := make([]callState, len(stories))
			for i, s := range stories {
				states[i] = k.ended(t, k.doors[0], s.heldCall)
			}
			effects := readEffects(t, k.effects)
			for i, s := range stories {
				fmt.Fprintf(&seen, "\n%-22s %-10s %d effects", s.id, states[i].State, effects[s.id])
				if err := s.checkState(states[i], effects[s.id]); err != nil {
					t.Error(err)
				}
				ends := append(append(s.step.ends[:len(s.step.ends):len(s.step.ends)], v.may[s.step.name]...), v.may[s.id]...)
				if !slices.Contains(ends, states[i].State) {
					t.Errorf("%s ends as %s, and %v are honest: %s", s.id, states[i].State, ends, states[i].Problem)
				}
				k.isOver(t, s)
			}
			t.Logf("killed: %s%s", name, &seen)
			for _, s := range stories {
				if s.confirm != nil {
					<-s.confirm // answered, or lost with the front door
				}
			}
			for id, n := range readEffects(t, k.effects) {
				if n != effects[id] {
					t.Errorf("%s had %d effects at first, and %d in the end", id, effects[id], n)
				}
			}
		})
	}
}

// back waits until all processes of the fleet are ready again.
func (k *killFleet) back(t *testing.T) {
	t.Helper()
	for _, d := range append(k.doors, k.approvers...) {
		d.eventually(t, startWithin, "being ready again", func() error {
			a, err := d.try("GET", "/readyz", "")
			if err == nil && a.status != http.StatusOK {
				err = &refusal{a}
			}
			return err
		})
	}
	k.ready(t)
}

// stillOpen asserts that the approval is unchanged, and approves it. If the token
// was forgotten, the caller must get an error, and cancels the call.
func (k *killFleet) stillOpen(t *testing.T, s *story, forgotten bool) {
	t.Helper()
	if got := k.doors[0].callStateNow(t, s.CallID); got.State != "held" {
		t.Errorf("%s is %s after the kill", s.id, got.State)
		return
	}
	var a answer
	eventually(t, startWithin, "answering "+s.id, func() (err error) {
		if s.people {
			a, err = k.decides(k.approvers[0], s.heldCall, deciders[1], "approve")
		} else {
			a, err = k.confirms(k.doors[0], s.heldCall, true)
		}
		if err == nil && a.status == http.StatusServiceUnavailable {
			err = &refusal{a} // Redis, or the connection to it, takes time to recover
		}
		return err
	})
	if forgotten && !s.people {
		p := a.problem(t, http.StatusNotFound, "not-found")
		if p.CallID != s.CallID || !strings.Contains(p.Detail, "lost this confirmation") {
			t.Errorf("%s: the caller is not told that its token was lost: %s", s.id, a.body)
		}
		a = k.doors[0].ask(t, "POST", "/calls/"+s.CallID+"/cancel", "")
	}
	if a.status != http.StatusOK {
		t.Errorf("%s is answered with %d %s", s.id, a.status, a.body)
	}
}

// isOver asserts that it cannot be decided again.
func (k *killFleet) isOver(t *testing.T, s *story) {
	t.Helper()
	var a answer
	var err error
	want := http.StatusConflict
	if s.people {
		a, err = k.decides(k.approvers[0], s.heldCall, deciders[2], "approve")
	} else {
		want = http.StatusNotFound
		a, err = k.confirms(k.doors[0], s.heldCall, true)
	}
	var p problem
	if err == nil {
		err = json.Unmarshal(a.body, &p)
	}
	if err == nil && p.CallID != s.CallID {
		err = errors.New("the answer names another call")
	}
	if err != nil || a.status != want && !(a.status == http.StatusGone && s.step.name == "overdue") {
		t.Errorf("%s was decided once more: %d %s, %v", s.id, a.status, a.body, err)
	}
}
