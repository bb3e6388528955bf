package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/hostile"
)

// memoryBound limits the memory of every process, whatever requests it gets.
const memoryBound = 512 << 20

// attackSize returns the size of the attack. `make hostile` sets CALLYARD_HOSTILE to the number of
// requests for each operation.
func attackSize(t testing.TB) (each int, full bool) {
	t.Helper()
	text := os.Getenv("CALLYARD_HOSTILE")
	if text == "" {
		return 250, false
	}
	each, err := strconv.Atoi(text)
	if err != nil || each < 1 {
		t.Fatalf("CALLYARD_HOSTILE is a number of requests, not %q", text)
	}
	return each, true
}

// attackSeed returns the seed of the requests.
func attackSeed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("CALLYARD_HOSTILE_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("CALLYARD_HOSTILE_SEED is a number, not %q", text)
	}
	return seed
}

// processes returns the attacked processes.
func (b *hostileTarget) processes() map[string]*process {
	return map[string]*process{"front door": b.door.process, "approver": b.approver.process, "worker": b.worker.process}
}

// holds checks that no process exceeded the memory limit or panicked, and that
// honest calls continue to succeed.
func (b *hostileTarget) holds(t testing.TB) {
	t.Helper()
	for name, p := range b.processes() {
		if p.ended() {
			t.Fatalf("the %s has ended", name)
		}
		peak, err := hostile.Peak(p.pid())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: at most %d MiB", name, peak>>20)
		if peak > memoryBound {
			t.Errorf("the %s took %d MiB, over %d", name, peak>>20, memoryBound>>20)
		}
		if said := p.out.String(); strings.Contains(said, "panicked") || strings.Contains(said, "goroutine ") {
			t.Errorf("the %s has panicked", name)
		}
	}
	if err := b.honestCall(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// honestCall makes a call of an honest caller.
func (b *hostileTarget) honestCall(context.Context) error {
	a, err := b.door.tryCall("everything", "echo", `{"message":"honest"}`)
	if err == nil && (a.status != 200 || !strings.Contains(string(a.body), "honest")) {
		err = &refusal{a}
	}
	return err
}

// footprints returns the footprint of the front door, whose goroutines can be read, and
// the descriptors of all processes.
func (b *hostileTarget) footprints(t testing.TB, looks int) (ofDoor footprint, files map[string]int) {
	t.Helper()
	ofDoor = b.door.most(t, looks)
	files = map[string]int{}
	for name, p := range b.processes() {
		n, err := descriptors(p.pid())
		if err != nil {
			t.Fatal(err)
		}
		files[name] = n
	}
	return ofDoor, files
}

// cancelOpen cancels the batches that the requests have created, a thousand of each state,
// because an open batch waits for more calls. It returns their number.
func (b *hostileTarget) cancelOpen() (open int, err error) {
	for _, state := range []string{"receiving", "running", "canceling"} {
		var list struct {
			Batches []struct {
				ID string `json:"id"`
			} `json:"batches"`
		}
		a, err := b.door.try("GET", "/batches?limit=1000&state="+state, "")
		if err == nil {
			err = json.Unmarshal(a.body, &list)
		}
		if err != nil {
			return open, err
		}
		open += len(list.Batches)
		for _, one := range list.Batches {
			if state == "canceling" {
				break
			}
			if _, err := b.door.try("POST", "/batches/"+one.ID+"/cancel", ""); err != nil {
				return open, err
			}
		}
	}
	return open, nil
}

// cancelBatches cancels all of them.
func (b *hostileTarget) cancelBatches(t testing.TB) {
	t.Helper()
	b.door.eventually(t, answerWithin, "having no batch under way", func() error {
		open, err := b.cancelOpen()
		if err == nil && open > 0 {
			err = fmt.Errorf("%d were", open)
		}
		return err
	})
}

// keepCanceling cancels batches from time to time until stop is called, so that there is room
// for others.
func (b *hostileTarget) keepCanceling(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for rest := time.NewTicker(10 * time.Second); ; {
			select {
			case <-ctx.Done():
				rest.Stop()
				return
			case <-rest.C:
			}
			if _, err := b.cancelOpen(); err != nil {
				t.Errorf("canceling batches: %v", err)
			}
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

// leavesNothing waits until the resources of the processes are back at their earlier level.
func (b *hostileTarget) leavesNothing(t testing.TB, ofDoor footprint, files map[string]int) {
	t.Helper()
	b.approver.http.CloseIdleConnections()
	b.cancelBatches(t)
	// Work that a request has started may take time to end: the front door waits for a missing
	// body, and a held call has its watcher.
	const slack, within = 10, 90 * time.Second
	eventually(t, within, "letting go of everything", func() error {
		now, have := b.footprints(t, 1)
		if now.Goroutines > ofDoor.Goroutines+slack || now.Processes > ofDoor.Processes {
			return fmt.Errorf("the front door holds %+v, before it held %+v", now, ofDoor)
		}
		for name, n := range have {
			if n > files[name]+slack {
				return fmt.Errorf("the %s has %d descriptors, before it had %d", name, n, files[name])
			}
		}
		return nil
	})
}

func TestMalformedRequestsCauseNoServerErrorAndNoLeak(t *testing.T) {
	b := openHostileTarget(t)
	each, full := attackSize(t)
	targets := b.targets(t)
	if err := b.honestCall(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkGoldens(t, targets)
	quiet := b.honestFor(t, 200)
	ofDoor, files := b.footprints(t, 20)
	honest := hostile.KeepCalling(t.Context(), 2, 20*time.Millisecond, b.honestCall)
	tidied := b.keepCanceling(t)
	attack := &hostile.Attack{Seed: attackSeed(t), Targets: targets, Each: each, Lanes: 8}
	if full { // at a rate that leaves processor time of this machine, which also runs the attack, to others
		attack.Lanes, attack.Pause = 4, 4*time.Millisecond
		quiet = b.honestFor(t, 2000)
	}
	report, err := attack.Run(t.Context())
	during := honest.Stop()
	tidied()
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d requests in %s (%.0f a second): %v\n%v", report.Sent, report.Took.Round(time.Millisecond), float64(report.Sent)/report.Took.Seconds(), report.Statuses, report.Damages)
	t.Logf("honest before: %s\nhonest meanwhile: %s, p99 %.1f times\nmost time: %s", quiet, during, float64(during.P99)/float64(quiet.P99), strings.Join(report.Slowest(12), "\n  "))
	for _, finding := range report.Findings {
		t.Error(finding)
	}
	if report.FindingCount > len(report.Findings) {
		t.Errorf("and %d more", report.FindingCount-len(report.Findings))
	}
	operations := 0
	for _, target := range targets {
		operations += len(target.Goldens)
	}
	if report.Sent != operations*each || operations < 60 {
		t.Errorf("%d requests for %d operations were sent", report.Sent, operations)
	}
	if report.Statuses[400] == 0 || report.Statuses[200] == 0 || report.Statuses[404] == 0 || report.Statuses[431] == 0 {
		t.Errorf("these answers cannot be to such requests: %v", report.Statuses)
	}
	if during.Failed > 0 {
		t.Errorf("%d of %d honest calls failed meanwhile: %v", during.Failed, during.Calls, during.Faults)
	}
	b.holds(t)
	b.leavesNothing(t, ofDoor, files)
	if full {
		b.paced(t, targets)
	}
	b.door.http.CloseIdleConnections()
	for _, d := range []*process{b.door.process, b.approver.process, b.worker.process} {
		d.stop(t)
	}
}

// checkGoldens checks that undamaged requests succeed. Otherwise the
// damage would not be tested.
func checkGoldens(t testing.TB, targets []hostile.Target) {
	t.Helper()
	for _, target := range targets {
		for _, g := range target.Goldens {
			status, err := hostile.Whole(t.Context(), target, g)
			if err != nil {
				t.Fatal(err)
			}
			if status < 200 || status >= 300 {
				t.Logf("%s %s is answered with %d", target.Name, g.Operation, status)
			}
		}
	}
}

// honestFor makes n honest calls on an idle system.
func (b *hostileTarget) honestFor(t testing.TB, n int) hostile.Figures {
	t.Helper()
	h := hostile.KeepCalling(t.Context(), 2, 20*time.Millisecond, b.honestCall)
	eventually(t, answerWithin, "honest calls", func() error {
		if h.Calls() < n {
			return fmt.Errorf("there were %d", h.Calls())
		}
		return nil
	})
	return h.Stop()
}

// paced reports the effect of attacks on honest callers at several rates, up to the maximum
// of the machine.
func (b *hostileTarget) paced(t testing.TB, targets []hostile.Target) {
	t.Helper()
	for _, pause := range []time.Duration{20 * time.Millisecond, time.Millisecond, 0} {
		before := b.honestFor(t, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		honest := hostile.KeepCalling(ctx, 2, 20*time.Millisecond, b.honestCall)
		attack := &hostile.Attack{Seed: attackSeed(t) + 1, Targets: targets, Each: 1 << 20, Lanes: 4, Pause: pause}
		report, err := attack.Run(ctx)
		during := honest.Stop()
		cancel()
		if err != nil {
			t.Error(err)
		}
		t.Logf("%.0f malformed requests a second: honest p99 %s, quiet %s: %.1f times", float64(report.Sent)/report.Took.Seconds(), during.P99, before.P99, float64(during.P99)/float64(before.P99))
		for _, finding := range report.Findings {
			t.Error(finding)
		}
	}
}

// of returns the goldens of a target that pick selects.
func of(target hostile.Target, pick func(hostile.Golden) bool) (found []hostile.Golden) {
	for _, g := range target.Goldens {
		if pick(g) {
			found = append(found, g)
		}
	}
	return found
}

func TestStalledClientsDoNotAffectOthers(t *testing.T) {
	b := openHostileTarget(t)
	_, full := attackSize(t)
	each, stalled := 20, 12
	if full {
		each, stalled = 300, 60
	}
	targets := b.targets(t)
	if err := b.honestCall(t.Context()); err != nil {
		t.Fatal(err)
	}
	quiet := b.honestFor(t, 200)
	ofDoor, files := b.footprints(t, 20)

	var crowds []*hostile.Crowd
	hold := func(c *hostile.Crowd, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		crowds = append(crowds, c)
		t.Cleanup(c.Stop)
	}
	for _, target := range targets {
		slow := &hostile.Slow{Target: target, Each: each}
		slow.Bodies = of(target, func(g hostile.Golden) bool { return g.Method == "POST" && len(g.Body) > 0 })
		slow.Streams = of(target, func(g hostile.Golden) bool {
			return strings.HasSuffix(g.Path, "/events") || strings.HasSuffix(g.Operation, " stream") || strings.HasSuffix(g.Operation, "subscriptions/listen")
		})
		hold(slow.Hold(t.Context()))
	}
	// Bodies of the maximum size, without their last byte.
	for _, large := range []struct {
		target    int
		operation string
		size      int
	}{
		{0, "POST /batches", 32 << 20}, {0, "POST /calls", 1 << 20}, {0, "POST /tool-calls", 1 << 20}, {1, "MCP " + modern + " tools/call", 1 << 20}, {2, "POST /decisions", 1 << 20},
	} {
		for _, g := range of(targets[large.target], func(g hostile.Golden) bool { return g.Operation == large.operation }) {
			hold(hostile.Stall(t.Context(), targets[large.target], g, large.size, stalled))
		}
	}
	during := b.honestFor(t, 200)
	opened := 0
	for _, c := range crowds {
		n, _ := c.Size()
		opened += n
	}
	t.Logf("%d connections are held\nhonest before: %s\nhonest meanwhile: %s", opened, quiet, during)
	if during.Failed > 0 {
		t.Errorf("%d of %d honest calls failed meanwhile: %v", during.Failed, during.Calls, during.Faults)
	}
	if opened < 15*each {
		t.Errorf("%d connections were opened", opened)
	}
	within, cancel := context.WithTimeout(t.Context(), answerWithin)
	defer cancel()
	var waits sync.WaitGroup
	for _, target := range targets { // connections that never complete a head are closed
		waits.Go(func() {
			if err := hostile.Closed(within, target.Addr, "GET / HTTP/1.1\r\nX-"); err != nil {
				t.Errorf("the %s: %v", target.Name, err)
			}
		})
	}
	waits.Wait()
	b.bombs(t)
	b.holds(t)
	for _, c := range crowds {
		c.Stop()
	}
	b.leavesNothing(t, ofDoor, files)
	b.door.http.CloseIdleConnections()
	for _, p := range []*process{b.door.process, b.approver.process, b.worker.process} {
		p.stop(t)
	}
}

// bombs sends small bodies that would decode to large values. They are refused,
// or their lines are, one by one.
func (b *hostileTarget) bombs(t testing.TB) {
	t.Helper()
	members := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `"%x":0,`, i)
		}
		return text.String() + `"x":0`
	}
	for name, body := range map[string]string{
		"labels":  `{"open":true,"labels":{` + members(2_000_000) + `}}`,
		"numbers": `{"priority":[` + strings.Repeat("0,", 15<<20) + `0]}`,
		"objects": `{"calls":{"x":[` + strings.Repeat("{},", 10<<20) + `{}]}}`,
		"deep":    strings.Repeat(`{"calls":[`, 3<<20),
	} {
		a := b.door.ask(t, "POST", "/batches", body)
		if a.status != 400 && a.status != 503 {
			t.Errorf("%s: a bomb of %d bytes is answered with %d %.300s", name, len(body), a.status, a.body)
		}
	}
}
