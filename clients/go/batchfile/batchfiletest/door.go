// Package batchfiletest is a fake front door for tests of code that uses batchfile. It
// keeps batches in memory and injects faults that a test asks for. It promises that no
// call is stored twice, and refuses requests that are not about batches.
package batchfiletest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

// Door is a fake front door that keeps batches in memory. It implements the operations
// that batchfile uses, and is safe for concurrent use.
type Door struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	faults   func(what string) Fault
	fails    string
	batches  map[string]*doorBatch
	keys     map[string]string
	requests []string
}

// Fault is a fault that the door injects into a request or a line.
type Fault int

// The faults of a door.
const (
	None         Fault = iota
	Busy               // 503 with Retry-After: 0
	HangsUp            // before the request is processed
	HangsUpAfter       // after the request is processed, before the response
	Cancels            // for lines only: the batch is canceled, and the door hangs up
)

// Faults sets the function that decides which faults to inject from now on. faults is
// called before each request with its method and path, before each line of calls with
// "line", and before each line of results with "result". Calls do not overlap, and it
// must not call the door.
func (d *Door) Faults(faults func(what string) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = faults
}

// Fails makes every call whose custom_id contains the state end in that state.
func (d *Door) Fails(state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = state
}

// Requests returns the method and the path with the query of each request so far.
func (d *Door) Requests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.requests)
}

// Batches returns the number of batches that were created. Their IDs are batch_1,
// batch_2 and so on.
func (d *Door) Batches() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.batches)
}

type doorBatch struct {
	id     string
	state  string
	calls  []string // custom ids
	events *sync.Cond
}

// Open starts a door and closes it when the test ends.
func Open(t testing.TB) *Door {
	t.Helper()
	d := &Door{t: t, batches: map[string]*doorBatch{}, keys: map[string]string{}, faults: NoFaults}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *Door) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, r.Method+" "+r.RequestURI)
	how := d.faults(r.Method + " " + r.URL.Path)
	switch how {
	case Busy:
		w.Header().Set("Retry-After", "0")
		d.problem(w, http.StatusServiceUnavailable, "No room at the moment.")
		return
	case HangsUp:
		panic(http.ErrAbortHandler)
	}
	if r.Method == "POST" && r.URL.Path == "/batches" {
		key := r.Header.Get("Idempotency-Key")
		if key == "" {
			d.t.Error("a batch is made without a key")
		}
		id, ok := d.keys[key]
		if !ok {
			id = fmt.Sprintf("batch_%d", len(d.batches)+1)
			d.keys[key] = id
			d.batches[id] = &doorBatch{id: id, state: "receiving", events: sync.NewCond(&d.mu)}
		}
		if how == HangsUpAfter {
			panic(http.ErrAbortHandler)
		}
		d.show(w, http.StatusCreated, d.batches[id])
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "servers" {
		server := map[string]any{"id": "s", "initialization_state": "ready", "slots": 1} // the server of CallLines
		var answer any = map[string]any{"servers": []any{server}}
		if len(parts) > 1 { // every other server exists too
			server["id"], answer = parts[1], server
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // ignored: the client hung up
		return
	}
	b := d.batches[parts[1]]
	if b == nil {
		d.problem(w, http.StatusNotFound, "There is no batch "+parts[1]+".")
		return
	}
	what := r.Method + " " + strings.Join(parts[2:], "/")
	switch what {
	case "GET ":
	case "POST calls":
		if b.state != "receiving" {
			d.problem(w, http.StatusConflict, "The batch takes no more calls.")
			return
		}
		if from := r.URL.Query().Get("from"); from != "" && from != strconv.Itoa(len(b.calls)) {
			d.problem(w, http.StatusConflict, "Continue from another line.")
			return
		}
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 1<<26)
		for lines.Scan() {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			var c struct {
				CustomID string `json:"custom_id"`
			}
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				d.t.Errorf("the line %.100q: %v", lines.Bytes(), err)
			}
			fault := d.faults("line")
			if fault == Cancels {
				b.state = "canceled"
			}
			if fault != None { // the lines before it are stored
				b.events.Broadcast()
				panic(http.ErrAbortHandler)
			}
			b.calls = append(b.calls, c.CustomID)
		}
		b.events.Broadcast()
	case "POST seal":
		if b.state == "receiving" {
			b.state = "completed"
		}
		b.events.Broadcast()
	case "POST cancel":
		b.state = "canceled"
		b.events.Broadcast()
	case "GET results":
		d.results(w, r, b)
		return
	default:
		d.t.Errorf("nobody should ask for %s", what)
	}
	if how == HangsUpAfter {
		panic(http.ErrAbortHandler)
	}
	d.show(w, http.StatusOK, b)
}

// results writes one line per call, in the order of the calls, and waits for more while
// the batch receives calls.
func (d *Door) results(w http.ResponseWriter, r *http.Request, b *doorBatch) {
	at := 0
	if c := r.URL.Query().Get("cursor"); c != "" {
		if _, err := fmt.Sscanf(c, "c%d", &at); err != nil {
			d.t.Errorf("the cursor %q", c)
		}
	}
	w.Header().Set("Content-Type", callyard.LinesType)
	w.WriteHeader(http.StatusOK)
	defer wakeWhenGone(r, b)()
	for ; ; at++ {
		for at == len(b.calls) && b.state == "receiving" && r.Context().Err() == nil {
			_ = http.NewResponseController(w).Flush()
			b.events.Wait()
		}
		if at == len(b.calls) || r.Context().Err() != nil {
			return
		}
		line := fmt.Sprintf(`{"index":%d,"custom_id":%q,"call_id":"call_%d","state":%q,"cursor":"c%d","result":{"text":"%s"}}`+"\n",
			at, b.calls[at], at, d.stateOf(b.calls[at]), at+1, strings.Repeat("x", at%50))
		if d.faults("result") == HangsUp {
			_, _ = io.WriteString(w, line[:len(line)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, line)
	}
}

// wakeWhenGone wakes the goroutine that waits for the batch when the client disconnects.
func wakeWhenGone(r *http.Request, b *doorBatch) (stop func()) {
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-r.Context().Done():
			b.events.L.Lock()
			b.events.Broadcast()
			b.events.L.Unlock()
		case <-over:
		}
	})
	return func() { close(over) } // not waited for: the goroutine needs the lock that the caller holds
}

func (d *Door) stateOf(customID string) string {
	if d.fails != "" && strings.Contains(customID, d.fails) {
		return d.fails
	}
	return "succeeded"
}

func (d *Door) show(w http.ResponseWriter, status int, b *doorBatch) {
	counts := map[string]int{}
	for _, c := range b.calls {
		counts[d.stateOf(c)]++
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"id": b.id, "state": b.state, "calls": len(b.calls), "counts": counts})
}

func (d *Door) problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": "No", "status": status, "detail": detail, "retryable": status >= 500})
}

// CallLines returns n calls with the custom IDs c0, c1 and so on, with some blank lines
// between them.
func CallLines(n int) string {
	var b strings.Builder
	for i := range n {
		if i%7 == 3 {
			b.WriteString(" \t\r\n")
		}
		fmt.Fprintf(&b, `{"custom_id":"c%d","server":"s","tool":"t","arguments":{"n":%q}}`, i, strings.Repeat("y", i%40))
		if i < n-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// WantResults checks that the file has one result for each of n calls, and that the batch
// has each call once.
func (d *Door) WantResults(t testing.TB, path, id string, n int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := d.batches[id].calls; len(got) != n {
		t.Errorf("the batch has %d calls, want %d", len(got), n)
	}
	for i, c := range d.batches[id].calls {
		if c != fmt.Sprint("c", i) {
			t.Fatalf("call %d is %s", i, c)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if last := lines[len(lines)-1]; last != "" || len(lines)-1 != n {
		t.Errorf("there are %d results, want %d; the last ends in %q", len(lines)-1, n, last)
	}
	for i, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(line, fmt.Sprintf(`{"index":%d,`, i)) || !json.Valid([]byte(line)) {
			t.Fatalf("result %d is %.200s", i, line)
		}
	}
}

// NoFaults injects no fault.
func NoFaults(string) Fault { return None }
