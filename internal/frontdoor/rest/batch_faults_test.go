package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

func (f *fabric) batch(body string) batches.Batch {
	f.t.Helper()
	return f.batchOf(f.do("POST", "/batches", body, "Content-Type", "application/json"), http.StatusCreated)
}

func (f *fabric) batchOf(a answer, status int) batches.Batch {
	f.t.Helper()
	var b batches.Batch
	if err := json.Unmarshal(a.body, &b); err != nil || a.status != status {
		f.t.Fatalf("%d %s", a.status, a.body)
	}
	return b
}

func (f *fabric) showBatch(id schema.BatchID) batches.Batch {
	f.t.Helper()
	return f.batchOf(f.do("GET", "/batches/"+string(id), ""), http.StatusOK)
}

// callID returns the ID of a call of a batch, for callers without a key.
func (f *fabric) callID(batchID schema.BatchID, index uint64) string {
	return string(f.api.o.Batches.CallID(batchID, index, authn.Local))
}

// lines returns the results of a batch by their index.
func (f *fabric) lines(id schema.BatchID) map[uint64]batches.BatchResult {
	f.t.Helper()
	found := make(map[uint64]batches.BatchResult)
	for line := range bytes.Lines(f.do("GET", "/batches/"+string(id)+"/results", "").body) {
		var head batches.BatchResult
		if err := json.Unmarshal(line, &head); err != nil {
			f.t.Fatalf("%v: %s", err, line)
		}
		if _, twice := found[head.Index]; twice {
			f.t.Errorf("line %d has two results", head.Index)
		}
		found[head.Index] = head
	}
	return found
}

// openHeldCallsFabric has another server like demo whose calls are held until their caller confirms them.
func openHeldCallsFabric(t *testing.T) *fabric {
	f := openFabric(t, func(o *Options) { o.AllowAddServers = true })
	if a := f.do("POST", "/servers", `{"id":"risky","command":"cat","riskLevel":2}`); a.status >= 300 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	f.WaitFor("the risky server", func() bool {
		tool, err := f.api.o.Catalog.Tool("risky", "echo")
		return err == nil && tool.Risk == 2
	})
	return f
}

const twoHeld = `{"calls":[{"custom_id":"runs","server":"risky","tool":"hang"},{"custom_id":"waits","server":"risky","tool":"echo"}]}`

// held waits until n calls of the batch are held, and lists them.
func (f *fabric) held(id schema.BatchID, n int) []batches.HeldCall {
	f.t.Helper()
	var list batches.HeldCalls
	polltest.Until(f.t, "the calls being held", func() bool {
		a := f.do("GET", "/batches/"+string(id)+"/held", "")
		if err := json.Unmarshal(a.body, &list); err != nil || a.status != http.StatusOK {
			f.t.Fatalf("%d %s", a.status, a.body)
		}
		return len(list.Calls) == n
	})
	return list.Calls
}

// runApproved runs an approved call as a front door does.
func (f *fabric) runApproved(callID schema.CallID) (ended <-chan error) {
	f.t.Helper()
	a, err := f.Calls.Desk.Claim(f.t.Context(), schema.DefaultTenant, ledger.IDFor(callID), f.Calls.FrontDoor)
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := f.Calls.Release(f.t.Context(), a, nil)
		done <- err
	}()
	return done
}

func TestCanceledBatchWaitsForRunningApprovedCall(t *testing.T) {
	t.Parallel()
	f := openHeldCallsFabric(t)
	b := f.batch(twoHeld)
	held := f.held(b.ID, 2)
	a := f.do("POST", "/confirmations", `{"confirm":true,"calls":["`+string(held[0].CallID)+`"]}`, "Content-Type", "application/json")
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	ended := f.runApproved(held[0].CallID)
	<-f.Worker.Asked
	if a := f.do("POST", "/batches/"+string(b.ID)+"/cancel", ""); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	polltest.Until(t, "the end of the call that was not approved", func() bool { return f.lines(b.ID)[1].State == "canceled" })
	if now := f.showBatch(b.ID); now.State != "canceling" || now.Counts.Waiting != 1 {
		t.Errorf("while the approved call runs, the batch is %+v", now)
	}
	if n := f.Worker.Finish(); n != 1 {
		t.Fatalf("%d calls run", n)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the end of the batch", func() bool { return f.showBatch(b.ID).State == "canceled" })
	if all := f.lines(b.ID); all[0].State != "succeeded" || all[1].State != "canceled" || len(all) != 2 {
		t.Errorf("the results are %+v", all)
	}
}

func TestHeldCallsOfABatchAreCountedListedAndConfirmedByTheirCaller(t *testing.T) {
	t.Parallel()
	f := openHeldCallsFabric(t)
	b := f.batch(`{"calls":[{"custom_id":"a","server":"risky","tool":"echo"},{"custom_id":"b","server":"risky","tool":"echo"},{"custom_id":"c","server":"risky","tool":"echo"}]}`)
	held := f.held(b.ID, 3)
	for i, h := range held {
		if h.Index != uint64(i) || h.CustomID != string(rune('a'+i)) || h.By != "caller" || h.CallID != schema.CallID(f.callID(b.ID, uint64(i))) || h.ApprovalID != ledger.IDFor(h.CallID) || h.Tool != "echo" || h.RiskLevel != 2 || h.ArgumentsDigest == "" {
			t.Errorf("held call %d is %+v", i, h)
		}
	}
	if now := f.showBatch(b.ID); now.Counts.Held != 3 || now.Counts.Waiting != 3 {
		t.Errorf("the counts are %+v", now.Counts)
	}
	confirm := func(approve bool, ids ...string) batches.ConfirmedCalls {
		t.Helper()
		body, err := json.Marshal(batches.ConfirmCalls{Confirm: approve, Calls: ids})
		if err != nil {
			t.Fatal(err)
		}
		a := f.do("POST", "/confirmations", string(body), "Content-Type", "application/json")
		var c batches.ConfirmedCalls
		if err := json.Unmarshal(a.body, &c); err != nil || a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return c
	}
	if c := confirm(true, string(held[0].CallID), f.callID(b.ID, 77), "call_06b2t8m3c0w3v2q5n7k9a1d4fz"); c.Accepted != 1 || len(c.Refused) != 2 || c.Refused[0].Problem.Status != 404 || c.Refused[1].Problem.Status != 403 {
		t.Errorf("confirmed: %+v", c)
	}
	if c := confirm(false, string(held[1].CallID)); c.Accepted != 1 || len(c.Refused) != 0 {
		t.Errorf("rejected: %+v", c)
	}
	if c := confirm(true, string(held[1].CallID)); c.Accepted != 0 || len(c.Refused) != 1 || c.Refused[0].Problem.Status != 409 {
		t.Errorf("a yes after the no: %+v", c)
	}
	if err := <-f.runApproved(held[0].CallID); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the ends", func() bool { return len(f.lines(b.ID)) == 2 })
	if all := f.lines(b.ID); all[0].State != "succeeded" || all[1].State != "denied" {
		t.Errorf("the results are %+v", all)
	}
	if now := f.showBatch(b.ID); now.Counts.Held != 1 || now.Counts.Waiting != 1 {
		t.Errorf("the counts are %+v", now.Counts)
	}
	for _, body := range []string{`{"confirm":true,"calls":[]}`, `{"confirm":true}`, `{"calls":["x"]}`, `{"confirm":1,"calls":["x"]}`, `{"confirm":true,"calls":[` + strings.Repeat(`"x",`, 1000) + `"x"]}`} {
		if p := problemOf(t, f.do("POST", "/confirmations", body, "Content-Type", "application/json")); p.Status != 400 {
			t.Errorf("%.40s: %+v", body, p)
		}
	}
	if a := f.do("POST", "/batches/"+string(b.ID)+"/cancel", ""); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	polltest.Until(t, "the end of the batch", func() bool { return f.showBatch(b.ID).State == "canceled" })
	if now := f.showBatch(b.ID); now.Counts.Held != 0 {
		t.Errorf("at its end the counts are %+v", now.Counts)
	}
}

func TestARefusedLineKeepsItsCustomID(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	lines := `{"custom_id":"a","server":"demo","tool":"echo","argument":{}}` + "\n" + `{"custom_id":"b","server":5,"tool":"echo"}` + "\n" + `{"custom_id":7,"x":1}` + "\n" + `{"custom_id":"` + strings.Repeat("c", 1000) + `","x":1}` + "\n" + `no JSON`
	var b batches.Batch
	if err := json.Unmarshal(f.do("POST", "/batches", lines, "Content-Type", "application/x-ndjson").body, &b); err != nil || b.Refused != 5 || len(b.Refusals) != 5 {
		t.Fatalf("%+v, %v", b, err)
	}
	for i, want := range []string{"a", "b", "", "", ""} {
		if got := b.Refusals[i].CustomID; got != want {
			t.Errorf("line %d has the custom_id %q, want %q: %s", i, got, want, b.Refusals[i].Detail)
		}
	}
}

func TestIdempotencyKeyOfABatchIsBoundToItsLines(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	line := func(id string) string { return `{"custom_id":"` + id + `","server":"demo","tool":"echo"}` + "\n" }
	for _, query := range []string{"", "?stream=true"} {
		send := func(body string) answer {
			return f.do("POST", "/batches"+query, body, "Content-Type", "application/x-ndjson", "Idempotency-Key", "lines"+query)
		}
		first := send(line("a") + line("b"))
		if first.status/100 != 2 {
			t.Fatalf("%q: %d %s", query, first.status, first.body)
		}
		if again := send(line("a") + line("b")); again.status != first.status || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%q: the same lines: %d %v %s", query, again.status, again.header, again.body)
		}
		for _, other := range []string{line("a"), line("a") + line("c"), line("a") + line("b") + line("c"), line("b") + line("a"), "\n"} {
			a := send(other)
			if p := problemOf(t, a); p.Status != http.StatusUnprocessableEntity || p.Type != "/problems/"+string(schema.KindKeyReused) {
				t.Errorf("%q: %q: %+v", query, other, p)
			}
		}
	}
}

func TestConcurrentBatchesWithOneKeyAcceptOneBody(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	var mu sync.Mutex
	taken := make(map[string]int)
	var wait sync.WaitGroup
	for i := range 40 {
		line := fmt.Sprintf(`{"custom_id":"%d","server":"demo","tool":"echo"}`, i%2)
		wait.Go(func() {
			polltest.Until(t, "an answer", func() bool {
				a := f.send(f.request("POST", "/batches", strings.NewReader(line), "Content-Type", "application/x-ndjson", "Idempotency-Key", "one"))
				switch a.status {
				case http.StatusConflict:
					return false // another request is sending its calls
				case http.StatusCreated:
					mu.Lock()
					taken[line]++
					mu.Unlock()
				case http.StatusUnprocessableEntity:
				default:
					t.Errorf("%d %s", a.status, a.body)
				}
				return true
			})
		})
	}
	wait.Wait()
	if len(taken) != 1 {
		t.Errorf("one key stands for %v", taken)
	}
}

func TestConcurrentRequestsWithOneKeyMakeOneBatch(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const body = `{"calls":[{"custom_id":"a","server":"demo","tool":"echo"}]}`
	var mu sync.Mutex
	ids := make(map[schema.BatchID]int)
	var wait sync.WaitGroup
	for range 40 {
		wait.Go(func() {
			polltest.Until(t, "the batch", func() bool {
				r := f.request("POST", "/batches", strings.NewReader(body), "Content-Type", "application/json", "Idempotency-Key", "one")
				a := f.send(r)
				if a.status == http.StatusConflict && a.header.Get("Retry-After") != "" {
					return false // another request is sending its calls
				}
				var b batches.Batch
				if err := json.Unmarshal(a.body, &b); err != nil || a.status != http.StatusCreated {
					t.Errorf("%d %s", a.status, a.body)
				}
				mu.Lock()
				ids[b.ID]++
				mu.Unlock()
				return true
			})
		})
	}
	wait.Wait()
	if len(ids) != 1 {
		t.Fatalf("one key stands for %d batches: %v", len(ids), ids)
	}
	p := problemOf(t, f.do("POST", "/batches", strings.Replace(body, `"a"`, `"b"`, 1), "Content-Type", "application/json", "Idempotency-Key", "one"))
	if p.Status != http.StatusUnprocessableEntity {
		t.Errorf("another body: %+v", p)
	}
	// The later batches are empty and end. The first one has run.
	polltest.Until(t, "all batches having ended", func() bool {
		var list batches.BatchList
		if err := json.Unmarshal(f.do("GET", "/batches", "").body, &list); err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Batches {
			want := "canceled"
			if ids[b.ID] > 0 {
				want = "completed"
			}
			if b.State != want {
				return false
			}
			if want == "canceled" && b.Calls != 0 {
				t.Errorf("a batch of nobody's has calls: %+v", b)
			}
		}
		return true
	})
}

func (f *fabric) stateOfCall(id string) string {
	f.t.Helper()
	var s submit.CallState
	a := f.do("GET", "/calls/"+id, "")
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK {
		f.t.Fatalf("%d %s", a.status, a.body)
	}
	return s.State
}

func (f *fabric) cancelCall(id string) string {
	f.t.Helper()
	var s submit.CallState
	a := f.do("POST", "/calls/"+id+"/cancel", "")
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK {
		f.t.Fatalf("%d %s", a.status, a.body)
	}
	return s.State
}

func TestCancelOfAPlainCallSaysHowItIsCanceled(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	id := f.do("POST", "/servers/demo/tools/echo", `{}`, "Content-Type", "application/json").header.Get("Callyard-Call-Id")
	a := f.do("POST", "/calls/"+id+"/cancel", "")
	if id == "" || a.status != http.StatusNotFound || !strings.Contains(string(a.body), "no held or durable call") || !strings.Contains(string(a.body), "when its caller disconnects") {
		t.Errorf("%s: %d %s", id, a.status, a.body)
	}
}

func TestCallCanceledWhileRunningReportsItMayHaveRun(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	b := f.batch(`{"calls":[{"server":"demo","tool":"hang"}]}`)
	<-f.Worker.Asked
	a := f.do("POST", "/servers/demo/tools/hang", `{}`, "Content-Type", "application/json", "Prefer", "respond-async")
	<-f.Worker.Asked
	for _, id := range []string{f.callID(b.ID, 0), strings.TrimPrefix(a.header.Get("Location"), "/calls/")} {
		got := f.do("POST", "/calls/"+id+"/cancel", "")
		<-f.Worker.Canceled
		for _, a := range []answer{got, f.do("GET", "/calls/"+id, "")} {
			var s submit.CallState
			var p problem.Document
			if err := json.Unmarshal(a.body, &s); err != nil || json.Unmarshal(s.Problem, &p) != nil || s.State != "unknown" || !s.CancelRequested || !p.CancelRequested || p.Status != http.StatusGatewayTimeout {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
	}
	if a := f.do("GET", "/batches/"+string(b.ID)+"/results", ""); !strings.Contains(string(a.body), `"state":"unknown"`) || !strings.Contains(string(a.body), `"attempt":1,"cancel_requested":true,`) {
		t.Errorf("%s", a.body)
	}
}

func TestWaitingCallCanBeCanceledInEveryQueue(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const n = 2000 // more than a journal has in flight at once
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"custom_id":"c%d","server":"demo","tool":"hang"}`, i))
	}
	b := f.batch(`{"calls":[` + strings.Join(calls, ",") + `]}`)
	<-f.Worker.Asked
	// One waits for a slot or its quota, and one was not even read.
	running := make(map[uint64]bool)
	for index := range uint64(n) {
		if index < 400 && f.stateOfCall(f.callID(b.ID, index)) == "running" {
			running[index] = true
		}
	}
	waiting := uint64(0)
	for index := range uint64(400) {
		if !running[index] {
			waiting = index
		}
	}
	for _, index := range []uint64{waiting, n - 1} {
		if state := f.cancelCall(f.callID(b.ID, index)); state != "canceled" {
			t.Errorf("call %d, which had not left, is %s", index, state)
		}
	}
	lines := f.lines(b.ID)
	for _, index := range []uint64{waiting, n - 1} {
		if l := lines[index]; l.State != "canceled" || l.CustomID != fmt.Sprint("c", index) {
			t.Errorf("call %d: %+v", index, l)
		}
	}
	// A single call that waits for its quota after them.
	a := f.do("POST", "/servers/demo/tools/hang", `{}`, "Content-Type", "application/json", "Prefer", "respond-async")
	if a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	single := strings.TrimPrefix(a.header.Get("Location"), "/calls/")
	if state := f.stateOfCall(single); state == "queued" {
		if state := f.cancelCall(single); state != "canceled" {
			t.Errorf("the single call is %s", state)
		}
	} else {
		t.Errorf("it is %s beside so many that wait", state)
	}
	if a := f.do("POST", "/batches/"+string(b.ID)+"/cancel", ""); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	polltest.Until(t, "the end of the batch", func() bool {
		f.Worker.Finish()
		return f.showBatch(b.ID).State == "canceled"
	})
	if all := f.lines(b.ID); len(all) != n {
		t.Errorf("there are %d results", len(all))
	}
}

// overtaken is the writer of an answer that lets another request go first as soon as its own has
// created a batch.
type overtaken struct {
	*httptest.ResponseRecorder
	made func() bool
	by   func()
}

func (w *overtaken) Header() http.Header {
	if by := w.by; by != nil && w.made() {
		w.by = nil
		by()
	}
	return w.ResponseRecorder.Header()
}

func TestRepeatedBatchRequestMayOvertakeTheFirst(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?stream=true"} {
		t.Run(query, func(t *testing.T) {
			f := openFabric(t, nil)
			request := func() *http.Request {
				return f.request("POST", "/batches"+query, strings.NewReader(`{"calls":[{"custom_id":"a","server":"demo","tool":"echo"}]}`), "Content-Type", "application/json", "Idempotency-Key", "one")
			}
			var second answer
			w := &overtaken{ResponseRecorder: httptest.NewRecorder()}
			w.made = func() bool {
				var list batches.BatchList
				return json.Unmarshal(f.do("GET", "/batches", "").body, &list) == nil && len(list.Batches) > 0
			}
			w.by = func() { second = f.send(request()) }
			f.api.ServeHTTP(w, request())
			first := w.Result()
			if second.status == 0 {
				t.Fatal("the second request was not sent")
			}
			if first.StatusCode != second.status || first.StatusCode/100 != 2 {
				t.Errorf("the first is answered with %d %s, the second with %d %s", first.StatusCode, w.Body, second.status, second.body)
			}
			if one, other := first.Header.Get("Location"), second.header.Get("Location"); one != other || one == "" {
				t.Errorf("the batches are %q and %q", one, other)
			}
		})
	}
}

func TestBatchYieldsToSingleCalls(t *testing.T) {
	f := openFabric(t, nil)
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, "{\"custom_id\":\"%d\",\"server\":\"demo\",\"tool\":\"echo\"}\n", i)
	}
	a := f.send(f.request("POST", "/batches", strings.NewReader(lines.String()), "Content-Type", "application/x-ndjson"))
	b := f.batchOf(a, http.StatusCreated)
	polltest.Until(t, "the pace of the batch", func() bool {
		for range 32 {
			if a := f.do("POST", "/servers/demo/tools/echo", "{}"); a.status != http.StatusOK {
				t.Fatalf("a single call is answered with %d %s", a.status, a.body)
			}
		}
		if now := f.showBatch(b.ID); now.State != "running" {
			t.Fatalf("the batch is %s before it was slowed down", now.State)
		}
		return f.api.o.Router.BatchPace() > 0
	})
	f.do("POST", "/batches/"+string(b.ID)+"/cancel", "")
}
