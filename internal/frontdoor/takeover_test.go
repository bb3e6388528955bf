package frontdoor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// TestFrontDoorAndWorkerThatStopLeaveOnlySentCallsUnknown stops a front door in the middle of a batch,
// and the worker with it. The next front door runs the calls that were not sent.
func TestFrontDoorAndWorkerThatStopLeaveOnlySentCallsUnknown(t *testing.T) {
	srv := bustest.Start(t)
	const fast, slow = 200, 200 // fast calls let the front door write intents ahead
	const calls = fast + slow
	var batch string
	var sent int64
	t.Run("a front door and a worker stop", func(t *testing.T) {
		h := startCountingWorker(t, srv)
		d := startDoor(t, srv, frontdoor.Options{})
		status, header, answer := d.do("POST", "/batches", batchOf(fast, "write", true)+strings.ReplaceAll(batchOf(slow, "slow", true), `:"c`, `:"s`))
		if status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		batch = header.Get("Location")
		polltest.Until(t, "all calls at the worker that fit", func() bool { return h.runs.Load() == fast+60 }) // a batch leaves 4 of 64 slots
		polltest.Within(t, 30*time.Second, "records of the other calls", func() bool { return len(d.listed(batch)) == calls })
		expired, cancel := context.WithCancel(context.Background())
		cancel()
		_ = d.in.Stop(expired) // it reports the calls that still run
		sent = h.runs.Load() - fast
		h.let()
	})
	h := startCountingWorkerAs(t, srv, "next")
	d := openDoor(t, srv, frontdoor.Options{})
	h.let()
	var end struct {
		State  string
		Counts struct{ Succeeded, Unknown int64 }
	}
	polltest.Within(t, time.Minute, "the end of the batch", func() bool {
		for id, states := range d.listed(batch) {
			if strings.Contains(states, " ") {
				t.Fatalf("call %s is listed twice: %s", id, states)
			}
		}
		_, _, answer := d.do("GET", batch, "")
		return json.Unmarshal([]byte(answer), &end) == nil && end.State == "completed"
	})
	if end.Counts.Unknown != sent || end.Counts.Succeeded != calls-sent {
		t.Errorf("%d calls are unknown and %d succeeded; %d were sent", end.Counts.Unknown, end.Counts.Succeeded, sent)
	}

	var listed string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the call records say %s; %d were sent", listed, sent)
		}
	})
	polltest.Within(t, 30*time.Second, "one record of each call", func() bool {
		states := map[string]int64{}
		for _, state := range d.listed(batch) {
			states[state]++
		}
		listed = fmt.Sprint(states)
		return len(states) == 2 && states["unknown"] == sent && states["succeeded"] == calls-sent
	})
	var usage struct{ Total map[string]float64 }
	if _, _, answer := d.do("GET", "/usage", ""); json.Unmarshal([]byte(answer), &usage) != nil || usage.Total["calls"] != calls || int64(usage.Total["unknown"]) != sent {
		t.Errorf("usage says %s", answer)
	}
}

func TestDurableCallThatIsTriedAgainIsNotListedAsFailed(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{})
	h.down.Store(true)
	status, header, answer := d.do("POST", "/batches", batchOf(2, "write", true))
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	batch := header.Get("Location")
	polltest.Until(t, "several attempts at each call", func() bool {
		for id, state := range d.listed(batch) {
			if state != "queued" && state != "running" {
				t.Fatalf("call %s is listed as %s", id, state)
			}
		}
		return h.refused.Load() >= 8
	})
	h.down.Store(false)
	polltest.Until(t, "the end of both", func() bool { return d.all(batch, "succeeded") })
	if h.runs.Load() != 2 {
		t.Errorf("%d runs", h.runs.Load())
	}
}

// TestCallsOfAFormerFrontDoorAreListedWhileTheyWaitForTheirServer also checks that a call has one record
// if it is held when its server is back.
func TestCallsOfAFormerFrontDoorAreListedWhileTheyWaitForTheirServer(t *testing.T) {
	srv := bustest.Start(t)
	const calls = 66 // of which two wait for a slot
	var batch string
	t.Run("a front door and the only worker of a server stop", func(t *testing.T) {
		h := startCountingWorker(t, srv, "other")
		defer h.let()
		d := startDoor(t, srv, frontdoor.Options{})
		polltest.Until(t, "the other server", func() bool { _, err := d.in.Catalog().Tool("other", "slow"); return err == nil })
		_, header, _ := d.do("POST", "/batches", strings.ReplaceAll(batchOf(calls, "slow", true), `"s"`, `"other"`))
		batch = header.Get("Location")
		polltest.Until(t, "all calls", func() bool { return d.all(batch, "running") })
		expired, cancel := context.WithCancel(context.Background())
		cancel()
		_ = d.in.Stop(expired) // it reports the calls that still run
	})
	startCountingWorkerAs(t, srv, "next").let()
	d := openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, "rules:\n  - {name: ask, match: {server: other}, level: 2, approval: {by: caller, expires: 1h}}\n")})
	waiting := func(state string) func() bool {
		return func() bool {
			found := map[string]int{}
			for _, states := range d.listed(batch) {
				found[states]++
			}
			return len(found) == 2 && found["unknown"]+found[state] == calls && found[state] > 0
		}
	}
	polltest.Within(t, 30*time.Second, "the calls that were not sent are queued", waiting("queued"))
	startCountingWorkerAs(t, srv, "back", "other").let()
	polltest.Within(t, 30*time.Second, "they are held", waiting("held"))
}

// TestHeldCallOfABatchRunsOnceIfTheNextFrontDoorHasAnotherPolicy stops a front door that holds a call. Its
// successor has a policy that allows or denies the call.
func TestHeldCallOfABatchRunsOnceIfTheNextFrontDoorHasAnotherPolicy(t *testing.T) {
	for name, rules := range map[string]string{
		"allows it": "rules: [{name: run, match: {tool: write}, level: 1}]",
		"denies it": "rules: [{name: no, match: {tool: write}, deny: not any longer}]",
	} {
		t.Run(name, func(t *testing.T) {
			srv := bustest.Start(t)
			h := startCountingWorker(t, srv)
			h.let()
			d := startDoor(t, srv, frontdoor.Options{Policy: policyOf(t, "rules: [{name: ask, match: {tool: write}, level: 2, approval: {by: caller, expires: 1h}}]")})
			later := strings.ReplaceAll(batchOf(1, "read", true), `"s"`, `"other"`) // it shows that the next front door has read the batch
			_, header, _ := d.do("POST", "/batches", batchOf(1, "write", true)+strings.ReplaceAll(later, "c0", "c1"))
			batch := header.Get("Location")
			var id string
			polltest.Until(t, "the call is held", func() bool {
				for call, state := range d.listed(batch) {
					if state == "held" {
						id = call
					}
				}
				return id != ""
			})
			stop(t, d.in)

			next := startCountingWorkerAs(t, srv, "next", "other")
			next.let()
			d = openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, rules)})
			ended := func() (succeeded, denied int) {
				var b struct {
					Counts struct{ Succeeded, Denied int }
				}
				_, _, answer := d.do("GET", batch, "")
				if err := json.Unmarshal([]byte(answer), &b); err != nil {
					t.Fatal(err, answer)
				}
				return b.Counts.Succeeded, b.Counts.Denied
			}
			polltest.Within(t, 30*time.Second, "the next front door runs the batch", func() bool { succeeded, _ := ended(); return succeeded > 0 })
			_, _, answer := d.do("POST", "/confirmations", `{"confirm":true,"calls":["`+id+`"]}`)
			if strings.Contains(answer, `"accepted":0`) { // the policy denies it now; it is still held
				d.do("POST", "/confirmations", `{"confirm":false,"calls":["`+id+`"]}`)
			}
			polltest.Until(t, "the end of the call", func() bool {
				for _, states := range d.listed(batch) {
					if strings.Contains(states, "held") {
						return false
					}
				}
				succeeded, denied := ended()
				return succeeded+denied == 2
			})
			succeeded, denied := ended()
			if runs := h.runs.Load() + next.runs.Load(); int(runs) != succeeded {
				t.Errorf("%d runs; of two calls %d succeeded and %d were denied; the confirmation was answered with %s", runs, succeeded, denied, answer)
			}
		})
	}
}

// all reports whether the batch has calls, and all are listed once, with the state.
func (d *door) all(batch, state string) bool {
	states := d.listed(batch)
	for _, is := range states {
		if is != state {
			return false
		}
	}
	return len(states) > 0
}

// listed returns the states of the calls of a batch in GET /calls, by ID. The states of a call that is
// listed more than once are separated by spaces.
func (d *door) listed(batch string) map[string]string {
	d.t.Helper()
	states := map[string]string{}
	for cursor := ""; ; {
		var page struct {
			Calls []struct{ ID, State string }
			Next  string
		}
		_, _, answer := d.do("GET", "/calls?limit=1000&batch="+strings.TrimPrefix(batch, "/batches/")+"&cursor="+cursor, "")
		if err := json.Unmarshal([]byte(answer), &page); err != nil {
			d.t.Fatal(err, answer)
		}
		for _, c := range page.Calls {
			states[c.ID] = strings.TrimSpace(states[c.ID] + " " + c.State)
		}
		if cursor = page.Next; cursor == "" {
			return states
		}
	}
}
