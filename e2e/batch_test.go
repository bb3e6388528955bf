package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

const ndjsonType = "Content-Type: application/x-ndjson"

// batchState is the part of a batch that the tests read.
type batchState struct {
	ID     string         `json:"id"`
	State  string         `json:"state"`
	Calls  int            `json:"calls"`
	Counts map[string]int `json:"counts"`
}

// batchLine is the part of a line of results that the tests read.
type batchLine struct {
	Index    int             `json:"index"`
	CustomID string          `json:"custom_id"`
	CallID   string          `json:"call_id"`
	State    string          `json:"state"`
	Cursor   string          `json:"cursor"`
	Result   json.RawMessage `json:"result"`
	Problem  json.RawMessage `json:"problem"`
}

// effectLines returns n calls of the tool effect, one per line.
func effectLines(server, effects string, from, n, ms int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, `{"custom_id":"c%d","server":%q,"tool":"effect","arguments":{"path":%q,"id":"e%d","ms":%d}}`+"\n", i, server, effects, i, ms)
	}
	return b.String()
}

// heldLine returns a call like those of [effectLines] that ends only when a file exists at
// gate, so that its batch does not end before.
func heldLine(server, effects, gate string, i int) string {
	return fmt.Sprintf(`{"custom_id":"c%d","server":%q,"tool":"effect","arguments":{"path":%q,"id":"e%d","after":%q},"timeout_ms":300000}`+"\n", i, server, effects, i, gate)
}

func (d *door) startBatch(t testing.TB, lines string) batchState {
	t.Helper()
	a := d.ask(t, "POST", "/batches", lines, ndjsonType)
	var s batchState
	if json.Unmarshal(a.body, &s) != nil || a.status != http.StatusCreated || a.header.Get("Location") != "/batches/"+s.ID {
		t.Fatalf("POST /batches: %d %.500s", a.status, a.body)
	}
	return s
}

func (d *door) waitBatch(t testing.TB, id string, within time.Duration) batchState {
	t.Helper()
	var s batchState
	d.eventually(t, within, "the batch ending", func() error {
		a, err := d.try("GET", "/batches/"+id, "")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(a.body, &s); err != nil {
			return fmt.Errorf("%d %.200s", a.status, a.body)
		}
		switch s.State {
		case "receiving", "running", "canceling", "":
			return fmt.Errorf("it is %q: %v", s.State, s.Counts)
		}
		return nil
	})
	return s
}

// results reads all results of a batch after a cursor.
func (d *door) results(t testing.TB, id, cursor string) []batchLine {
	t.Helper()
	return readLines(t, bytes.NewReader(d.get(t, "/batches/"+id+"/results?cursor="+cursor)))
}

func readLines(t testing.TB, from io.Reader) (all []batchLine) {
	t.Helper()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var l batchLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("a line of results: %v: %.300s", err, lines.Bytes())
		}
		all = append(all, l)
	}
	return all
}

// countEffects returns the number of IDs that ran, and of those that ran more than once.
func countEffects(t testing.TB, path string) (once, twice int) {
	t.Helper()
	for _, n := range readEffects(t, path) {
		if n > 1 {
			twice++
		}
		once++
	}
	return once, twice
}

func TestABatchRunsEachLineOnceAndAnswersEach(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	const n = 2500
	lines := effectLines("books", effects, 0, n, 0) + "no json\n" + effectLines("books", effects, 7, 1, 0) +
		`{"custom_id":"x","server":"books","tool":"nope"}` + "\n" + `{"custom_id":"y","server":"nowhere","tool":"echo","timeout_ms":10}` + "\n\n"
	a := d.ask(t, "POST", "/batches", strings.Replace(lines, `"nowhere"`, `"books"`, 1), ndjsonType)
	var s struct {
		batchState
		Refused  int `json:"refused"`
		Refusals []struct {
			Index  int    `json:"index"`
			Detail string `json:"detail"`
		} `json:"refusals"`
	}
	decode(t, a.body, &s)
	if a.status != http.StatusCreated || s.Calls != n+4 || s.Refused != 2 || len(s.Refusals) != 2 || s.Refusals[0].Index != n || s.Refusals[1].Index != n+1 {
		t.Fatalf("%d %.1000s", a.status, a.body)
	}
	end := d.waitBatch(t, s.ID, time.Minute)
	if end.State != "completed" || end.Counts["succeeded"] != n || end.Counts["failed"] != 4 || end.Counts["waiting"] != 0 {
		t.Errorf("the batch ends as %+v", end)
	}
	seen := map[int]batchLine{}
	for _, l := range d.results(t, s.ID, "") {
		if _, twice := seen[l.Index]; twice {
			t.Errorf("line %d has two results", l.Index)
		}
		seen[l.Index] = l
		if l.State == "succeeded" && (l.CustomID != fmt.Sprint("c", l.Index) || len(l.Result) == 0 || l.Cursor == "") {
			t.Errorf("line %d: %+v", l.Index, l)
		}
		if l.State == "failed" && len(l.Problem) == 0 {
			t.Errorf("line %d failed without a problem", l.Index)
		}
	}
	if len(seen) != n+4 {
		t.Errorf("there are %d results", len(seen))
	}
	if once, twice := countEffects(t, effects); once != n || twice != 0 {
		t.Errorf("%d calls had an effect, %d of them twice", once, twice)
	}
	// One of its calls is found by its ID, and does not count as a duplicate.
	if state := d.callState(t, seen[3].CallID); state.State != "succeeded" || len(state.Result) == 0 {
		t.Errorf("the call is %+v", state)
	}
}

func TestResultsResumeFromAnyLine(t *testing.T) {
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	effects := filepath.Join(t.TempDir(), "effects")
	s := d.startBatch(t, effectLines("books", effects, 0, 3000, 0))
	d.waitBatch(t, s.ID, time.Minute)
	all := d.results(t, s.ID, "")
	for _, at := range []int{0, 1, 499, 998, 999, 1000, 1001, 2000, 2998, 2999} {
		rest := d.results(t, s.ID, all[at].Cursor)
		if len(rest) != len(all)-at-1 {
			t.Fatalf("after line %d of %d come %d", at, len(all), len(rest))
		}
		if len(rest) > 0 && rest[0].Index != all[at+1].Index {
			t.Errorf("after line %d comes %d, not %d", at, rest[0].Index, all[at+1].Index)
		}
	}
	limited := readLines(t, bytes.NewReader(d.get(t, "/batches/"+s.ID+"/results?limit=7")))
	if len(limited) != 7 {
		t.Errorf("with limit=7 come %d", len(limited))
	}
	d.ask(t, "GET", "/batches/"+s.ID+"/results?cursor=zz..", "").problem(t, http.StatusBadRequest, "invalid-request")
}

func TestBatchStreamsResultsDuringUpload(t *testing.T) {
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	effects := filepath.Join(t.TempDir(), "effects")
	from, to := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", d.url+"/batches?stream=true", from)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	first := make(chan struct{})
	go func() {
		_, _ = io.WriteString(to, effectLines("books", effects, 0, 1000, 0))
		<-first // send the rest when a result of the beginning has arrived
		_, _ = io.WriteString(to, effectLines("books", effects, 1000, 10, 0))
		_ = to.Close()
	}()
	a, err := d.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	got := 0
	for lines.Scan() {
		if got++; got == 1 {
			close(first)
		}
	}
	if got != 1010 || lines.Err() != nil {
		t.Errorf("%d results came, %v", got, lines.Err())
	}
}

func TestCanceledBatchStartsNoMoreCalls(t *testing.T) {
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	effects := filepath.Join(t.TempDir(), "effects")
	// One call ends when the gate opens. The others need 40 s with the slots of a worker, so they
	// cannot all have run before the cancel.
	gate := filepath.Join(t.TempDir(), "gate")
	const total = 5000
	s := d.startBatch(t, heldLine("books", effects, gate, 0)+effectLines("books", effects, 1, total-1, 1000))
	d.eventually(t, soon, "some calls having run", func() error {
		// Many lines are sent concurrently, so the first need not be the first to run.
		if ran := readEffects(t, effects); len(ran) < 20 || ran["e0"] == 0 {
			return fmt.Errorf("%d ran, the held one %d times", len(ran), ran["e0"])
		}
		return nil
	})
	if a := d.ask(t, "POST", "/batches/"+s.ID+"/cancel", ""); a.status != http.StatusOK {
		t.Fatalf("cancel: %d %s", a.status, a.body)
	}
	begun := 0
	d.eventually(t, soon, "only the held call running", func() error {
		d.read(t, "/batches/"+s.ID, &s)
		if begun, _ = countEffects(t, effects); s.Counts["succeeded"] != begun-1 {
			return fmt.Errorf("%d have begun, and the batch says %+v", begun, s)
		}
		return nil
	})
	write(t, gate, "")
	end := d.waitBatch(t, s.ID, soon)
	if end.State != "canceled" || end.Counts["succeeded"] != begun || end.Counts["canceled"] != total-begun || begun == total {
		t.Errorf("it ends as %+v; %d calls had begun", end, begun)
	}
	if once, twice := countEffects(t, effects); once != begun || twice != 0 {
		t.Errorf("after the cancel %d calls had begun, and %d at the end, %d of them twice", begun, once, twice)
	}
	if all := d.results(t, s.ID, ""); len(all) != total {
		t.Errorf("there are %d results", len(all))
	}
}

func TestBatchSurvivesKillOfEverything(t *testing.T) {
	t.Parallel()
	data, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	s := setup{data: data, servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)}), env: []string{quickStop}}
	d := startUp(t, s)
	d.waitServers(t, 1, "books")
	const n = 3000
	b := d.startBatch(t, effectLines("books", effects, 0, n, 1))
	for round := range 3 {
		want := (round + 1) * n / 5
		d.eventually(t, soon, "calls running", func() error {
			if once, _ := countEffects(t, effects); once < want {
				return fmt.Errorf("%d ran", once)
			}
			return nil
		})
		d.kill9(t)
		d = startUp(t, s)
	}
	d.waitServers(t, 1, "books")
	end := d.waitBatch(t, b.ID, 90*time.Second)
	once, twice := countEffects(t, effects)
	t.Logf("ended as %v; %d effects", end.Counts, once)
	if end.State != "completed" || end.Counts["succeeded"]+end.Counts["unknown"] != n {
		t.Errorf("it ends as %+v", end)
	}
	if twice != 0 {
		t.Errorf("%d calls ran twice", twice)
	}
	if once < end.Counts["succeeded"] || once > end.Counts["succeeded"]+end.Counts["unknown"] {
		t.Errorf("%d effects; the batch says %v", once, end.Counts)
	}
	if end.Counts["unknown"] > 3*512 {
		t.Errorf("%d are unknown, which is more than were under way", end.Counts["unknown"])
	}
	if all := d.results(t, b.ID, ""); len(all) != n {
		t.Errorf("there are %d results", len(all))
	}
	for _, l := range d.results(t, b.ID, "") {
		if l.State != "unknown" {
			continue
		}
		d.ask(t, "POST", "/calls/"+l.CallID+"/settle", `{"as":"done"}`).problem(t, http.StatusBadRequest, "invalid-request")
		if a := d.ask(t, "POST", "/calls/"+l.CallID+"/settle", `{"as":"done","reason":"steht im 書"}`); a.status != http.StatusOK || !strings.Contains(string(a.body), "steht im 書") {
			t.Errorf("settling: %d %s", a.status, a.body)
		}
		if s := d.callState(t, l.CallID); s.State != "succeeded" {
			t.Errorf("settled, it is %+v", s)
		}
		break
	}
}

func TestAnotherFrontDoorFinishesBatchOfAKilledOne(t *testing.T) {
	t.Parallel()
	n := startNATS(t, t.TempDir())
	effects := filepath.Join(t.TempDir(), "effects")
	startWorker(t, setup{nats: n.url, servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	a := startFrontDoor(t, setup{nats: n.url, env: []string{quickStop}})
	b := startFrontDoor(t, setup{nats: n.url, env: []string{quickStop}})
	a.waitServers(t, 1, "books")
	b.waitServers(t, 1, "books")
	const total = 4000
	batch := a.startBatch(t, effectLines("books", effects, 0, total, 2))
	a.eventually(t, soon, "calls running", func() error {
		if once, _ := countEffects(t, effects); once < total/4 {
			return fmt.Errorf("%d ran", once)
		}
		return nil
	})
	a.kill9(t)
	end := b.waitBatch(t, batch.ID, 90*time.Second)
	once, twice := countEffects(t, effects)
	t.Logf("ended as %v; %d effects", end.Counts, once)
	// The worker was not killed, so it reported every call that was in flight.
	if end.State != "completed" || end.Counts["succeeded"] != total || once != total || twice != 0 {
		t.Errorf("it ends as %+v; %d ran, %d twice", end, once, twice)
	}
}

// A stopping front door cancels its running calls at the workers. No caller canceled them,
// and they may have done their work, so they are unknown.
func TestCallEndedByStoppingFrontDoorIsUnknown(t *testing.T) {
	n := startNATS(t, t.TempDir())
	dir := t.TempDir()
	effects, gate := filepath.Join(dir, "effects"), filepath.Join(dir, "gate")
	startWorker(t, setup{nats: n.url, servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	a := startFrontDoor(t, setup{nats: n.url, env: []string{quickStop, "CALLYARD_FRONT_DOOR_DRAIN_GRACE=1s"}})
	b := startFrontDoor(t, setup{nats: n.url, env: []string{quickStop}})
	a.waitServers(t, 1, "books")
	b.waitServers(t, 1, "books")
	batch := a.startBatch(t, heldLine("books", effects, gate, 0))
	a.eventually(t, soon, "the call running", func() error {
		if once, _ := countEffects(t, effects); once != 1 {
			return fmt.Errorf("%d ran", once)
		}
		return nil
	})
	a.stop(t)
	end := b.waitBatch(t, batch.ID, 90*time.Second)
	once, twice := countEffects(t, effects)
	if end.State != "completed" || end.Counts["unknown"] != 1 || once != 1 || twice != 0 {
		t.Errorf("it ends as %+v; %d ran, %d twice", end, once, twice)
	}
}

func TestIdempotencyKeyRunsOneCallThroughKills(t *testing.T) {
	data, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	s := setup{data: data, servers: serversFile(t, map[string]entry{"pay": scripted(mcptest.Echo)}), env: []string{quickStop}}
	d := startUp(t, s)
	d.waitServers(t, 1, "pay")
	arguments := fmt.Sprintf(`{"path":%q,"id":"once","ms":200}`, effects)
	send := func() (answer, error) {
		return d.try("POST", "/servers/pay/tools/effect", arguments, "Idempotency-Key: the-key")
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	bodies, conflicts := map[string]int{}, 0
	for range 100 {
		wait.Go(func() {
			again := time.NewTicker(50 * time.Millisecond) // like a client that honors Retry-After
			defer again.Stop()
			for ; ; <-again.C {
				a, err := send()
				mu.Lock()
				if err != nil || a.status != http.StatusOK && a.status != http.StatusConflict {
					t.Errorf("%d %s %v", a.status, a.body, err)
				}
				if a.status == http.StatusConflict {
					conflicts++
					if a.header.Get("Retry-After") == "" {
						t.Error("409 without Retry-After")
					}
				} else {
					bodies[string(a.body)]++
				}
				mu.Unlock()
				if err != nil || a.status != http.StatusConflict {
					return
				}
			}
		})
	}
	wait.Wait()
	if len(bodies) != 1 {
		t.Errorf("there were %d different answers: %v", len(bodies), bodies)
	}
	if got := readEffects(t, effects)["once"]; got != 1 {
		t.Errorf("it ran %d times", got)
	}
	other := strings.Replace(arguments, "200", "100", 1)
	d.ask(t, "POST", "/servers/pay/tools/effect", other, "Idempotency-Key: the-key").problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	d.kill9(t)
	d = startUp(t, s)
	d.waitServers(t, 1, "pay")
	a, err := send()
	if err != nil || a.status != http.StatusOK || a.header.Get("Idempotency-Replayed") != "true" || bodies[string(a.body)] == 0 {
		t.Errorf("after a restart: %d %s %v", a.status, a.body, err)
	}
	if got := readEffects(t, effects)["once"]; got != 1 {
		t.Errorf("after the restart it had run %d times", got)
	}
}

func TestIdempotencyKeyCreatesOneBatchThroughKills(t *testing.T) {
	data, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	s := setup{data: data, servers: serversFile(t, map[string]entry{"pay": scripted(mcptest.Echo)}), env: []string{quickStop}}
	d := startUp(t, s)
	d.waitServers(t, 1, "pay")
	body := fmt.Sprintf(`{"calls":[{"custom_id":"a","server":"pay","tool":"effect","arguments":{"path":%q,"id":"once"}}]}`, effects)
	send := func(body string) (answer, error) {
		return d.try("POST", "/batches", body, "Content-Type: application/json", "Idempotency-Key: the-batch")
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	handles := map[string]int{}
	for range 50 {
		wait.Go(func() {
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			for ; ; <-again.C {
				a, err := send(body)
				if err == nil && a.status == http.StatusConflict && a.header.Get("Retry-After") != "" {
					continue // another request is sending calls at the moment
				}
				mu.Lock()
				defer mu.Unlock()
				if handles[a.header.Get("Location")]++; err != nil || a.status != http.StatusCreated {
					t.Errorf("%d %s %v", a.status, a.body, err)
				}
				return
			}
		})
	}
	wait.Wait()
	if len(handles) != 1 {
		t.Fatalf("one key stands for %v", handles)
	}
	for handle := range handles {
		if end := d.waitBatch(t, strings.TrimPrefix(handle, "/batches/"), time.Minute); end.State != "completed" || end.Calls != 1 {
			t.Errorf("the batch ends as %+v", end)
		}
	}
	d.kill9(t)
	d = startUp(t, s)
	d.waitServers(t, 1, "pay")
	a, err := send(body)
	if err != nil || a.status != http.StatusCreated || handles[a.header.Get("Location")] == 0 || a.header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("after a restart: %d %s %v", a.status, a.body, err)
	}
	a, err = send(strings.Replace(body, `"a"`, `"b"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	a.problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	if got := readEffects(t, effects)["once"]; got != 1 {
		t.Errorf("the call ran %d times", got)
	}
}

func TestAsynchronousCallCompletesAfterItsResponse(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"pay": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "pay")
	a := d.ask(t, "POST", "/servers/pay/tools/effect", fmt.Sprintf(`{"path":%q,"id":"a","ms":300}`, effects), "Prefer: respond-async")
	if a.status != http.StatusAccepted || a.header.Get("Preference-Applied") != "respond-async" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := strings.TrimPrefix(a.header.Get("Location"), "/calls/")
	if s := d.callState(t, id); s.State != "succeeded" || len(s.Result) == 0 {
		t.Errorf("the call is %+v", s)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	a = d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":"pay","tool":"effect","arguments":{"path":%q,"id":"b","after":%q}}`, effects, gate), "Prefer: wait=1")
	if a.status != http.StatusAccepted {
		t.Errorf("a call that takes longer than wait=1: %d %s", a.status, a.body)
	}
	write(t, gate, "")
	if s := d.callState(t, strings.TrimPrefix(a.header.Get("Location"), "/calls/")); s.State != "succeeded" {
		t.Errorf("afterwards it is %+v", s)
	}
	a = d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":"pay","tool":"effect","arguments":{"path":%q,"id":"c"}}`, effects), "Prefer: wait=60")
	if a.status != http.StatusOK {
		t.Errorf("a quick call with wait=60: %d %s", a.status, a.body)
	}
	d.ask(t, "POST", "/servers/pay/tools/nope", `{}`, "Prefer: respond-async").problem(t, http.StatusNotFound, "not-found")
}
