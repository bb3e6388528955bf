package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded/disktest"
	"github.com/callyard/callyard/internal/mcptest"
)

// fullAnswered is the longest response time of a durable request while the disk is full. The front
// door gives a write up after 10 s; the machine may stand still in that time.
const fullAnswered = 30 * time.Second

// shortOfDisk is a fabric whose disk fills up.
type shortOfDisk struct {
	*door
	effects string
	mu      sync.Mutex
	slowest time.Duration
	taken   map[string]string // effect → call ID, of accepted calls
	refused map[string]string // effect → key, "" means none
	batches map[string]batchState
}

// send sends a request that must be answered in time.
func (f *shortOfDisk) send(t *testing.T, method, path, body string, headers ...string) answer {
	begun := time.Now()
	a, err := f.try(method, path, body, headers...)
	took := time.Since(begun)
	f.mu.Lock()
	f.slowest = max(f.slowest, took)
	f.mu.Unlock()
	if err != nil || took > fullAnswered {
		t.Errorf("%s %s was answered after %s: %d %v", method, path, took.Round(time.Millisecond), a.status, err)
	}
	if a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
		t.Errorf("%s %s is refused without Retry-After: %s", method, path, a.body)
	}
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

// store sends a durable call with one effect.
func (f *shortOfDisk) store(t *testing.T, effect, key string) bool {
	headers := []string{"Content-Type: application/json", "Prefer: respond-async"}
	if key != "" {
		headers = append(headers, "Idempotency-Key: "+key)
	}
	a := f.send(t, "POST", "/calls", fmt.Sprintf(`{"server":"books","tool":"effect","arguments":{"path":%q,"id":%q}}`, f.effects, effect), headers...)
	var said struct {
		CallID string `json:"id"`
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a.status {
	case http.StatusAccepted:
		if json.Unmarshal(a.body, &said) != nil || said.CallID == "" {
			t.Errorf("accepted as %s", a.body)
		}
		f.taken[effect] = said.CallID
		delete(f.refused, effect)
		return true
	case http.StatusServiceUnavailable, http.StatusConflict: // 409: a call with the same key is in flight
		f.refused[effect] = key
	default:
		t.Errorf("POST /calls: %d %s", a.status, a.body)
	}
	return false
}

// batch sends a batch of ten effects.
func (f *shortOfDisk) batch(t *testing.T, from int) {
	a := f.send(t, "POST", "/batches", effectLines("books", f.effects, from, 10, 0), ndjsonType)
	var s batchState
	if a.status != http.StatusCreated {
		return
	}
	if err := json.Unmarshal(a.body, &s); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	f.batches[s.ID] = s
	f.mu.Unlock()
}

// writesFailing returns the gauge of the front door.
func (f *shortOfDisk) writesFailing(t *testing.T) string {
	found := regexp.MustCompile(`callyard_journal_writes_failing\{role="frontdoor"\} (\d+)`).FindSubmatch(f.get(t, "/metrics"))
	if found == nil {
		t.Fatal("the gauge callyard_journal_writes_failing is missing")
	}
	return string(found[1])
}

// round sends durable requests of each kind concurrently.
func (f *shortOfDisk) round(t *testing.T, round int, underWay, confirmation, gate string) {
	var some sync.WaitGroup
	for i := range 5 {
		some.Go(func() { f.store(t, fmt.Sprintf("keyed-%d-%d", round, i), fmt.Sprintf("key-%d-%d", round, i)) })
		some.Go(func() { f.store(t, fmt.Sprintf("plain-%d-%d", round, i), "") })
	}
	some.Go(func() { f.batch(t, 1000+10*round) })
	some.Go(func() {
		f.send(t, "POST", toolPath("pay", "effect"), fmt.Sprintf(`{"path":%q,"id":"never"}`, f.effects), "Content-Type: application/json")
	})
	switch round {
	case 1:
		write(t, gate, "")
	case 3:
		some.Go(func() { f.send(t, "POST", "/calls/"+underWay+"/cancel", "") })
		some.Go(func() {
			f.send(t, "POST", "/confirmations/"+confirmation, `{"confirm":true}`, "Content-Type: application/json")
		})
	}
	some.Wait()
}

// survives fills the disk, sends durable requests of each kind while it is full, and
// frees space. heal is the operator's action after that; it may be nil.
func (f *shortOfDisk) survives(t *testing.T, disk string, heal func()) {
	f.taken, f.refused, f.batches = map[string]string{}, map[string]string{}, map[string]batchState{}
	for i := range 20 {
		if !f.store(t, fmt.Sprintf("before-%d", i), fmt.Sprintf("key-%d", i)) {
			t.Fatal("a call was refused before the disk was full")
		}
	}
	// One call is in flight when the disk fills, and ends while it is full.
	gate := filepath.Join(t.TempDir(), "gate")
	under := f.send(t, "POST", "/calls", fmt.Sprintf(`{"server":"books","tool":"effect","arguments":{"path":%q,"id":"under-way","after":%q}}`, f.effects, gate), "Content-Type: application/json", "Prefer: respond-async")
	var said struct {
		CallID string `json:"id"`
	}
	if err := json.Unmarshal(under.body, &said); err != nil || said.CallID == "" {
		t.Fatalf("%d %s", under.status, under.body)
	}
	f.taken["under-way"] = said.CallID
	toConfirm := f.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"confirmed"}`, f.effects))

	empty := disktest.Fill(t, disk)
	full := time.Now()
	var all sync.WaitGroup
	each := time.NewTicker(time.Second) // spread the load over the duration of the fault
	defer each.Stop()
	load := func() {
		for round := range 12 {
			all.Go(func() { f.round(t, round, said.CallID, toConfirm.ID, gate) })
			<-each.C
		}
	}
	all.Go(load)
	f.eventually(t, soon, "telling that nothing can be stored", func() error {
		if a, err := f.try("GET", "/readyz", ""); err != nil || a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "disk") {
			return fmt.Errorf("/readyz: %d %s %v", a.status, a.body, err)
		}
		return nil
	})
	t.Logf("readiness told after %s", time.Since(full).Round(time.Millisecond))
	if n := f.writesFailing(t); n == "0" {
		t.Error("the gauge says that every stream is written")
	}
	all.Wait()
	if len(f.refused) == 0 {
		t.Fatal("nothing was refused: the disk was not full")
	}

	empty()
	freed := time.Now()
	if heal != nil {
		heal()
	}
	f.eventually(t, soon, "being ready with room on the disk", func() error {
		a, err := f.try("GET", "/readyz", "")
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("/readyz: %d %s", a.status, a.body)
		}
		return err
	})
	f.eventually(t, soon, "storing calls with room on the disk", func() error {
		if !f.store(t, "after", "key-after") {
			return fmt.Errorf("a call is refused")
		}
		return nil
	})
	t.Logf("healed %s after there was room; the slowest answer took %s; %d accepted, %d refused, %d batches", time.Since(freed).Round(time.Millisecond), f.slowest.Round(time.Millisecond), len(f.taken), len(f.refused), len(f.batches))
	if n := f.writesFailing(t); n != "0" {
		t.Errorf("the gauge still counts %s", n)
	}
	f.settle(t)
	t.Logf("settled after %s", time.Since(freed).Round(time.Millisecond))
}

// settle resends keyed requests that were refused, and checks that every accepted call ran
// once and no refused call ran.
func (f *shortOfDisk) settle(t *testing.T) {
	for effect, key := range f.refused {
		if key == "" {
			continue
		}
		f.eventually(t, soon, "taking a call under its key again", func() error {
			if !f.store(t, effect, key) {
				return fmt.Errorf("%s is refused", effect)
			}
			return nil
		})
	}
	for effect, id := range f.taken {
		f.eventually(t, soon, "the end of "+effect, func() error {
			if s := f.callStateNow(t, id); s.State != "succeeded" && effect != "under-way" {
				return fmt.Errorf("%s is %s", id, s.State)
			}
			return nil
		})
	}
	for id := range f.batches {
		if s := f.waitBatch(t, id, 40*time.Second); s.Counts["succeeded"] != s.Calls {
			t.Errorf("an accepted batch ended as %+v", s)
		}
	}
	ran := readEffects(t, f.effects)
	for effect, n := range ran {
		if n > 1 {
			t.Errorf("%s ran %d times", effect, n)
		}
		if _, refused := f.refused[effect]; refused {
			t.Errorf("%s ran, and its caller was told that it was not accepted", effect)
		}
	}
	for effect := range f.taken {
		if ran[effect] == 0 {
			t.Errorf("%s was accepted and did not run", effect)
		}
	}
}

func diskServers(t *testing.T) string {
	return serversFile(t, map[string]entry{"books": scripted(mcptest.Echo), "pay": risky(2, scripted(mcptest.Echo))})
}

func TestCallsAreRefusedOnFullDiskUntilItHasSpace(t *testing.T) {
	t.Parallel()
	disk := disktest.Small(t, "64m")
	d := startUp(t, setup{data: filepath.Join(disk, "data"), servers: diskServers(t), env: []string{quickStop}})
	d.waitServers(t, 1, "books", "pay")
	f := &shortOfDisk{door: d, effects: filepath.Join(t.TempDir(), "effects")}
	f.survives(t, disk, nil)
	d.stop(t)
}

func TestNATSServerRecoversFromFullDiskAfterRestart(t *testing.T) {
	t.Parallel()
	disk := disktest.Small(t, "64m")
	nats := startNATS(t, filepath.Join(disk, "nats"))
	port := nats.url[strings.LastIndexByte(nats.url, ':')+1:]
	servers := diskServers(t)
	w := startWorker(t, setup{nats: nats.url, servers: servers})
	d := startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop}})
	d.waitServers(t, 1, "books", "pay")
	f := &shortOfDisk{door: d, effects: filepath.Join(t.TempDir(), "effects")}
	f.survives(t, disk, func() {
		nats.signal(t, syscall.SIGTERM)
		nats.wait(t, stopWithin)
		nats = startNATSOn(t, filepath.Join(disk, "nats"), port)
	})
	d.stop(t)
	w.stop(t)
	nats.signal(t, syscall.SIGTERM)
	nats.wait(t, stopWithin)
}
