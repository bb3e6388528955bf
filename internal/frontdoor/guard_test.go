package frontdoor_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// waiting returns the number of calls that wait for a slot at the front door, from its metrics.
func (d *door) waiting() (n int) {
	d.t.Helper()
	_, _, text := d.do("GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "callyard_waiting_calls{") {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			n += int(f)
		}
	}
	return n
}

// sentBy waits until all calls that the front doors have sent run at the worker, and returns their number. None
// may have ended.
func (h *countingWorker) sentBy(doors ...*door) (runs int64) {
	polltest.Until(doors[0].t, "all calls that were sent run", func() bool {
		sent := 0
		for _, d := range doors {
			sent += d.in.Router().Load()["s"].InFlight
		}
		runs = h.runs.Load()
		return runs == int64(sent)
	})
	return runs
}

// await waits until done returns true. It checks after each change of the front door's catalog.
func (d *door) await(done func(*catalog.Catalog) bool) {
	d.t.Helper()
	changes, cancel := d.in.Catalog().Changes()
	defer cancel()
	for !done(d.in.Catalog()) {
		select {
		case <-changes:
		case <-d.t.Context().Done():
			d.t.Fatal("it did not come about")
		}
	}
}

// 10,000 calls wait in all queues of two front doors when their tool is disabled at one of them. Then
// all slots become free.
func TestQueuedCallsAreNotSentOnceToolIsDisabled(t *testing.T) {
	lines, stored, plain := 3000, 1000, 1000 // at each front door
	if testing.Short() {
		lines, stored, plain = 600, 300, 100 // every queue still has some
	}
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	o := frontdoor.Options{Config: settings.FrontDoor{MaxWait: 10 * time.Minute}}
	doors := []*door{openDoor(t, srv, o), openDoor(t, srv, o)}
	var all sync.WaitGroup
	var ran, refused, other atomic.Int64
	var batches, calls []string
	for _, d := range doors {
		status, header, text := d.do("POST", "/batches", batchOf(lines, "slow", true))
		if status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		batches = append(batches, header.Get("Location"))
		places := make(chan string, stored)
		slots := make(chan struct{}, 50)
		for range stored {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				status, header, text := d.do("POST", "/calls", `{"server":"s","tool":"slow"}`, "Prefer", "respond-async")
				if status != 202 {
					t.Errorf("%d %s", status, text)
				}
				places <- header.Get("Location")
			})
		}
		all.Wait()
		for range stored {
			calls = append(calls, <-places)
		}
	}
	for _, d := range doors {
		for range plain {
			all.Go(func() {
				switch status, _, text := d.do("POST", "/servers/s/tools/slow", `{}`); {
				case status == 200:
					ran.Add(1)
				case status == 403 && strings.Contains(text, "/problems/tool-disabled") && strings.Contains(text, "disabled: found unsafe"):
					refused.Add(1)
				default:
					other.Add(1)
					t.Errorf("a plain call: %d %s", status, text)
				}
			})
		}
	}
	wait, tick := 0, time.NewTicker(100*time.Millisecond) // a check is expensive, and this takes a while
	defer tick.Stop()
	for wait < 2*(plain+512+256-64) { // calls for which the server has slots have left
		<-tick.C
		wait = doors[0].waiting() + doors[1].waiting()
	}
	if status, _, text := doors[0].do("PATCH", "/servers/s/tools/slow", `{"enabled":false,"reason":"found unsafe"}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	off := time.Now()
	for _, d := range doors {
		d.await(func(c *catalog.Catalog) bool { return c.Standing("s", "slow", "") != nil })
	}
	known := time.Since(off)
	before := h.sentBy(doors...)
	h.let()
	all.Wait()
	ends := map[string]int{}
	for i, d := range doors {
		_, _, text := d.do("GET", batches[i]+"/results?follow=true", "")
		for line := range strings.Lines(text) {
			ends["line "+endOf(t, line)]++
		}
	}
	for _, place := range calls {
		status, _, text := doors[0].do("GET", place+"?wait=20", "")
		if ends["call "+endOf(t, text)]++; status != 200 {
			t.Errorf("%s: %d %s", place, status, text)
		}
	}
	t.Logf("%d calls ran and %d waited in the routers when the tool was switched off; both front doors knew %s after the answer; %d left later; ends: %v, plain: %d ran, %d refused",
		before, wait, known.Round(time.Microsecond), h.runs.Load()-before, ends, ran.Load(), refused.Load())
	if left := h.runs.Load() - before; left != 0 {
		t.Errorf("%d calls left although their tool was switched off", left)
	}
	good := ran.Load() + int64(ends["line succeeded "]+ends["call succeeded "])
	if denied := refused.Load() + int64(ends["line denied tool-disabled"]+ends["call denied tool-disabled"]); good != before || good+denied != int64(2*(lines+stored+plain)) {
		t.Errorf("%d ran of %d that left, %d were refused", good, before, denied)
	}
}

func TestQueuedCallsAreNotSentOnceKeyHasExpired(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	key, hash := authn.Generate()
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Keys: []authn.Key{{Name: "short", Hash: hash}}}})
	short := *d
	short.key = key
	var blocking sync.WaitGroup
	for range 64 { // all slots
		blocking.Go(func() { d.do("POST", "/servers/s/tools/slow", `{}`) })
	}
	polltest.Until(t, "64 calls run", func() bool { return h.runs.Load() == 64 })
	status, header, text := short.do("POST", "/batches", batchOf(10, "slow", true))
	if status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	// A time that is set at the start may pass before the batch is accepted.
	if err := d.in.ReplaceKeys([]authn.Key{{Name: "ci", Hash: authn.Hash(d.key)}, {Name: "short", Hash: hash, Expires: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the key has expired", func() bool {
		status, _, text := short.do("GET", header.Get("Location"), "")
		return status == 401 && strings.Contains(text, "expired")
	})
	h.let()
	blocking.Wait()
	polltest.Until(t, "a call has ended", func() bool { return d.ended() > 0 })
	if n := h.runs.Load(); n != 64 {
		t.Errorf("%d calls of an expired key left", n-64)
	}
}

func TestWhatWaitsDoesNotLeaveOnceItsKeyLostTheTool(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	key, hash := authn.Generate()
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Keys: []authn.Key{{Name: "demoted", Hash: hash, Role: scope.Caller}}}})
	var blocking sync.WaitGroup
	for range 64 { // all slots
		blocking.Go(func() { d.do("POST", "/servers/s/tools/slow", `{}`) })
	}
	polltest.Until(t, "64 calls run", func() bool { return h.runs.Load() == 64 })
	narrowed, kept := d.newKey(d.key, `{"name":"narrowed","scopes":["tools:call"]}`), d.newKey(d.key, `{"name":"kept","scopes":["tools:call"]}`)
	places := map[string]string{} // of the batches, by the secret of their key
	for _, secret := range []string{narrowed.Secret, kept.Secret, key} {
		as := *d
		as.key = secret
		status, header, text := as.do("POST", "/batches", batchOf(10, "slow", true))
		if status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		places[secret] = header.Get("Location")
	}
	for _, k := range []apiKey{narrowed, kept} {
		tools := map[string]string{narrowed.ID: `["s/read"]`, kept.ID: `["s/read","s/slow"]`}[k.ID]
		if status, _, text := d.with(d.key, "PATCH", "/keys/"+k.ID, `{"tools":`+tools+`}`, "If-Match", k.ETag); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
	}
	if err := d.in.ReplaceKeys([]authn.Key{{Name: "ci", Hash: authn.Hash(d.key)}, {Name: "demoted", Hash: hash, Role: scope.Auditor}}); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the kept key no longer sees the tool", func() bool {
		_, _, text := d.with(kept.Secret, "GET", "/servers/s/tools", "")
		return !strings.Contains(text, `"write"`)
	})
	polltest.Until(t, "the narrowed key is refused", func() bool {
		status, _, _ := d.with(narrowed.Secret, "POST", "/servers/s/tools/slow", "{}")
		return status == 403
	})
	h.let()
	blocking.Wait()
	for secret, want := range map[string]string{narrowed.Secret: "denied forbidden", key: "denied forbidden", kept.Secret: "succeeded "} {
		_, _, text := d.with(secret, "GET", places[secret]+"/results?follow=true", "")
		ends := map[string]int{}
		for line := range strings.Lines(text) {
			ends[endOf(t, line)]++
		}
		if ends[want] != 10 {
			t.Errorf("%s: %v", want, ends)
		}
	}
	if n := h.runs.Load(); n != 64+10 {
		t.Errorf("%d calls of the keys ran", n-64)
	}
}

// ended returns the number of calls that ended because their key is unknown.
func (d *door) ended() (n int) {
	_, _, text := d.do("GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "callyard_calls_total{") && strings.Contains(line, `outcome="unauthenticated"`) {
			n++
		}
	}
	return n
}

// endOf returns the state of a result line, or of a call, and the kind of its problem.
func endOf(t *testing.T, text string) string {
	t.Helper()
	var end struct {
		State   string `json:"state"`
		Problem struct {
			Type string `json:"type"`
		} `json:"problem"`
	}
	if err := json.Unmarshal([]byte(text), &end); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return end.State + " " + strings.TrimPrefix(end.Problem.Type, "/problems/")
}

// Calls of a key wait in all queues of two front doors when the key is removed, as by a reload of
// the configuration file. Then all slots become free.
func TestQueuedCallsAreNotSentOnceKeyIsRevoked(t *testing.T) {
	const lines, stored, plain = 600, 50, 50 // at each front door
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	key, hash := authn.Generate()
	o := frontdoor.Options{Config: settings.FrontDoor{MaxWait: 10 * time.Minute, Keys: []authn.Key{{Name: "short", Hash: hash}}}}
	doors := []*door{openDoor(t, srv, o), openDoor(t, srv, o)}
	var all sync.WaitGroup
	var ran, refused atomic.Int64
	for _, d := range doors {
		short := *d
		short.key = key
		if status, _, text := short.do("POST", "/batches", batchOf(lines, "slow", true)); status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		for range stored {
			if status, _, text := short.do("POST", "/calls", `{"server":"s","tool":"slow"}`, "Prefer", "respond-async"); status != 202 {
				t.Fatalf("%d %s", status, text)
			}
		}
		for range plain {
			all.Go(func() {
				switch status, _, text := short.do("POST", "/servers/s/tools/slow", `{}`); {
				case status == 200:
					ran.Add(1)
				case status == 401 && strings.Contains(text, "/problems/unauthenticated"):
					refused.Add(1)
				default:
					t.Errorf("a plain call of the key: %d %s", status, text)
				}
			})
		}
	}
	polltest.Until(t, "all calls wait, and 64 run", func() bool { return doors[0].waiting()+doors[1].waiting() >= 2*(plain+512) && h.runs.Load() >= 64 })
	for _, d := range doors {
		if err := d.in.ReplaceKeys([]authn.Key{{Name: "ci", Hash: authn.Hash(d.key)}}); err != nil {
			t.Fatal(err)
		}
	}
	before := h.sentBy(doors...)
	h.let()
	all.Wait()
	total := func() int { return int(before) + doors[0].revoked() + doors[1].revoked() }
	polltest.Until(t, "all calls have ended", func() bool { return total() >= 2*(lines+stored+plain) })
	if left := h.runs.Load() - before; left != 0 || total() != 2*(lines+stored+plain) {
		t.Errorf("%d calls of a revoked key left; %d ran before, %d of %d ended", left, before, total(), 2*(lines+stored+plain))
	}
	t.Logf("%d ran before, %d plain ones among them; %d plain ones were refused", before, ran.Load(), refused.Load())
}

// revoked returns the number of calls that ended because their key is unknown.
func (d *door) revoked() (n int) {
	d.t.Helper()
	_, _, text := d.do("GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "callyard_calls_total{") && strings.Contains(line, `outcome="unauthenticated"`) {
			f, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				d.t.Fatal(err)
			}
			n += int(f)
		}
	}
	return n
}
