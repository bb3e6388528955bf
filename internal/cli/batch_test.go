package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
)

// batchDoor is a front door that keeps batches in memory. What it does badly is
// what break says, asked before each request and each line of results.
type batchDoor struct {
	*httptest.Server
	t       *testing.T
	badly   func(line string) badly
	mu      sync.Mutex
	batches map[string]*doorBatch
	keys    map[string]string

	fails    string // a custom_id with this in it fails
	requests []string
}

type badly int

const (
	well         badly = iota
	busy               // 503 with Retry-After: 0
	hangsUp            // before anything is done
	hangsUpAfter       // when all is done, before it is said
)

type doorBatch struct {
	id     string
	state  string
	calls  []string // custom ids
	events *sync.Cond
}

func openBatchDoor(t *testing.T) *batchDoor {
	t.Helper()
	d := &batchDoor{t: t, batches: map[string]*doorBatch{}, keys: map[string]string{}, badly: func(string) badly { return well }}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *batchDoor) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, r.Method+" "+r.RequestURI)
	how := d.badly(r.Method + " " + r.URL.Path)
	switch how {
	case busy:
		w.Header().Set("Retry-After", "0")
		d.problem(w, http.StatusServiceUnavailable, "No room at the moment.")
		return
	case hangsUp:
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
		if how == hangsUpAfter {
			panic(http.ErrAbortHandler)
		}
		d.show(w, http.StatusCreated, d.batches[id])
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
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
			d.problem(w, http.StatusConflict, "Go on from another line.")
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
			if d.badly("line") == hangsUp { // what came before it is stored
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
	if how == hangsUpAfter {
		panic(http.ErrAbortHandler)
	}
	d.show(w, http.StatusOK, b)
}

// results answers with one line for each call, the last call first, as its batch
// grows.
func (d *batchDoor) results(w http.ResponseWriter, r *http.Request, b *doorBatch) {
	at := 0
	if c := r.URL.Query().Get("cursor"); c != "" {
		if _, err := fmt.Sscanf(c, "c%d", &at); err != nil {
			d.t.Errorf("the cursor %q", c)
		}
	}
	w.Header().Set("Content-Type", mediaLines)
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
		if d.badly("result") == hangsUp {
			_, _ = io.WriteString(w, line[:len(line)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, line)
	}
}

// wakeWhenGone wakes who waits for a batch when the client has gone.
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
	return func() { close(over) } // it takes the lock that the caller has, so nobody waits here
}

func (d *batchDoor) stateOf(customID string) string {
	if d.fails != "" && strings.Contains(customID, d.fails) {
		return d.fails
	}
	return "succeeded"
}

func (d *batchDoor) show(w http.ResponseWriter, status int, b *doorBatch) {
	counts := map[string]int{}
	for _, c := range b.calls {
		counts[d.stateOf(c)]++
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"id": b.id, "state": b.state, "calls": len(b.calls), "counts": counts})
}

func (d *batchDoor) problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": "No", "status": status, "detail": detail, "retryable": status >= 500})
}

// callLines are n calls, with some blank lines between them.
func callLines(n int) string {
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

// wantResults checks that the file has the result of each of n calls once, and
// the batch each call once.
func (d *batchDoor) wantResults(t *testing.T, path, id string, n int) {
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

// runOf is a run of the command whose pieces and pauses are small.
func runOf(t *testing.T, d *batchDoor, o batchOptions) *batchRun {
	t.Helper()
	c := clientOf(t, &door{Server: d.Server}, io.Discard, io.Discard)
	c.out.terminal, c.note.terminal = false, false
	if o.giveUp == 0 {
		o.giveUp = time.Minute
	}
	r := newBatchRun(c, o)
	r.pieceLines, r.pieceBytes, r.keepEvery = 7, 1<<10, time.Millisecond
	r.patience.pauses.First, r.patience.pauses.Max = time.Millisecond, 4*time.Millisecond
	return r
}

func (r *batchRun) start(t *testing.T) error {
	t.Helper()
	order, err := r.o.order()
	if err != nil {
		t.Fatal(err)
	}
	return r.run(t.Context(), order)
}

func callsFile(t *testing.T, text string) (path, out string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "calls.ndjson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, filepath.Join(dir, "results.ndjson")
}

var errKilled = errors.New("killed")

// killAt ends all writing at the k-th step, as a kill does.
func killAt(k int) (fault func(string) error, where func() string) {
	var mu sync.Mutex
	n, at := 0, ""
	return func(step string) error {
			mu.Lock()
			defer mu.Unlock()
			if n++; n < k {
				return nil
			}
			if n == k {
				at = step
			}
			return errKilled
		}, func() string {
			mu.Lock()
			defer mu.Unlock()
			return at
		}
}

// wantKept checks that a state never promises results that are not in the file.
func wantKept(t *testing.T, out string, k int, step string) {
	t.Helper()
	text, err := os.ReadFile(statePath(out))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var s batchState
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatalf("after a kill at write %d (%s) the state is broken: %v", k, step, err)
	}
	if info, err := os.Stat(out); err != nil || info.Size() < s.Bytes {
		t.Fatalf("after a kill at write %d (%s) the state promises %d bytes: %v, %v", k, step, s.Bytes, info, err)
	}
}

func TestAKillAtAnyWriteLosesAndRepeatsNothing(t *testing.T) {
	plainEnvironment(t)
	const n = 40
	seen := map[string]bool{}
	for k := 1; ; k++ {
		d := openBatchDoor(t)
		in, out := callsFile(t, callLines(n))
		o := batchOptions{input: in, out: out, follow: true}
		first := runOf(t, d, o)
		fault, where := killAt(k)
		first.fault = fault
		err := first.start(t)
		if where() == "" {
			if err != nil || k < 50 {
				t.Errorf("it ended before its write %d: %v", k, err)
			}
			break
		}
		seen[where()] = true
		if err == nil {
			t.Fatalf("killed at write %d (%s), it says that all is well", k, where())
		}
		wantKept(t, out, k, where())
		if err := runOf(t, d, o).start(t); err != nil {
			t.Fatalf("after a kill at write %d (%s): %v", k, where(), err)
		}
		d.wantResults(t, out, "batch_1", n)
		if len(d.batches) != 1 {
			t.Fatalf("after a kill at write %d (%s) there are %d batches", k, where(), len(d.batches))
		}
		if t.Failed() {
			t.Fatalf("after a kill at write %d (%s)", k, where())
		}
		d.Close()
	}
	for _, step := range []string{"line", "flush", "sync", "new state", "rename", "saved", "cut"} {
		if !seen[step] {
			t.Errorf("it was never killed at %q: %v", step, seen)
		}
	}
}

func TestABadConnectionLosesAndRepeatsNothing(t *testing.T) {
	plainEnvironment(t)
	const n = 300
	for seed := range uint64(8) {
		for _, piped := range []bool{false, true} {
			d := openBatchDoor(t)
			dice := rand.New(rand.NewPCG(seed, 1))
			d.badly = func(what string) badly {
				odds := 8
				if what == "line" || what == "result" {
					odds = 60
				}
				if dice.IntN(odds) > 0 {
					return well
				}
				if odds == 60 {
					return hangsUp
				}
				return badly(1 + dice.IntN(3))
			}
			in, out := callsFile(t, callLines(n))
			o := batchOptions{input: in, out: out, follow: true}
			if piped {
				o.input, o.stdin = "-", strings.NewReader(callLines(n))
			}
			// Before there is a batch a front door that hangs up ends the command.
			var err error
			for range 10 {
				if err = runOf(t, d, o).start(t); err == nil {
					break
				}
				if piped {
					o.stdin = strings.NewReader(callLines(n))
				}
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			d.wantResults(t, out, "batch_1", n)
			d.Close()
		}
	}
}

func TestAnInterruptedBatchSaysHowToGoOnAndDoes(t *testing.T) {
	plainEnvironment(t)
	d := openBatchDoor(t)
	in, out := callsFile(t, callLines(100))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.badly = func(what string) badly {
		if what == "result" {
			cancel()
		}
		return well
	}
	r := runOf(t, d, batchOptions{input: in, out: out, follow: true})
	order, err := r.o.order()
	if err != nil {
		t.Fatal(err)
	}
	err = r.run(ctx, order)
	if exitCode(err) != exitInterrupted || !strings.Contains(err.Error(), "The same command") && !strings.Contains(err.Error(), "the same command") {
		t.Fatalf("interrupted: %v", err)
	}
	d.mu.Lock()
	d.badly = func(string) badly { return well }
	d.mu.Unlock()
	if err := runOf(t, d, batchOptions{input: in, out: out, follow: true}).start(t); err != nil {
		t.Fatal(err)
	}
	d.wantResults(t, out, "batch_1", 100)
	// Once more, and nothing runs again.
	if err := runOf(t, d, batchOptions{input: in, out: out, follow: true}).start(t); err != nil {
		t.Fatal(err)
	}
	d.wantResults(t, out, "batch_1", 100)
	// The results are gone, and come again.
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := runOf(t, d, batchOptions{input: in, out: out, follow: true}).start(t); err != nil {
		t.Fatal(err)
	}
	d.wantResults(t, out, "batch_1", 100)
	if len(d.batches) != 1 {
		t.Errorf("there are %d batches", len(d.batches))
	}
}

func TestOnlyTheSameInputGoesOn(t *testing.T) {
	plainEnvironment(t)
	d := openBatchDoor(t)
	in, out := callsFile(t, callLines(20))
	o := batchOptions{input: in, out: out, follow: true}
	if err := runOf(t, d, o).start(t); err != nil {
		t.Fatal(err)
	}
	other := o
	other.priority, other.chosen = 3, true
	if err := runOf(t, d, other).start(t); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--priority") {
		t.Errorf("another priority: %v", err)
	}
	if err := os.WriteFile(in, []byte(callLines(21)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runOf(t, d, o).start(t); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "changed") {
		t.Errorf("another input: %v", err)
	}
	d.wantResults(t, out, "batch_1", 20)
	o.anew = true
	if err := runOf(t, d, o).start(t); err != nil {
		t.Fatal(err)
	}
	d.wantResults(t, out, "batch_2", 21)
	// Of longer results nothing stays.
	if err := os.WriteFile(in, []byte(callLines(5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runOf(t, d, o).start(t); err != nil {
		t.Fatal(err)
	}
	d.wantResults(t, out, "batch_3", 5)
	if err := os.Remove(statePath(out)); err != nil {
		t.Fatal(err)
	}
	o.anew = false
	if err := runOf(t, d, o).start(t); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--new") {
		t.Errorf("results without a state: %v", err)
	}
	d.wantResults(t, out, "batch_3", 5)
	held, _, err := openNotebook(out)
	if err != nil {
		t.Fatal(err)
	}
	defer held.close()
	if err := runOf(t, d, o).start(t); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "Another callyard") {
		t.Errorf("two at once: %v", err)
	}
}

func TestABatchEndsWithTheCodeOfItsWorstCall(t *testing.T) {
	plainEnvironment(t)
	for fails, want := range map[string]int{"": exitOK, "failed": exitToolError, "unknown": exitToolError, "denied": exitRefused, "canceled": exitToolError} {
		d := openBatchDoor(t)
		d.fails = fails
		id := "x"
		if fails != "" {
			id = fails
		}
		in, _ := callsFile(t, callLines(3)+fmt.Sprintf("\n"+`{"custom_id":%q,"server":"s","tool":"t"}`+"\n", id))
		stdout, stderr, code := typed(t, "", "batch", in, "--url", d.URL)
		if code != want || !strings.Contains(stdout, "succeeded") || !strings.Contains(stdout, "calls.results.ndjson, 4 lines") || fails != "" && !strings.Contains(stdout, fails) {
			t.Errorf("%q: code %d, want %d\n%s%s", fails, code, want, stdout, stderr)
		}
		if strings.Contains(stdout, "calls settle") != (fails == "unknown") {
			t.Errorf("%q: %s", fails, stdout)
		}
		stdout, _, _ = typed(t, "", "batch", in, "--url", d.URL, "--json")
		if !json.Valid([]byte(stdout)) || !strings.Contains(stdout, `"batch_1"`) {
			t.Errorf("with --json: %s", stdout)
		}
	}
}

func TestABatchThatWasCanceledSaysWhatItDidNotTake(t *testing.T) {
	plainEnvironment(t)
	d := openBatchDoor(t)
	in, _ := callsFile(t, callLines(30))
	n := 0
	d.badly = func(what string) badly {
		if what == "line" {
			if n++; n == 10 {
				d.batches["batch_1"].state = "canceled"
				return hangsUp
			}
		}
		return well
	}
	stdout, stderr, code := typed(t, "", "batch", in, "--url", d.URL)
	if code != exitToolError || !strings.Contains(stdout, "canceled") || !strings.Contains(stdout, "21  not taken") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := typed(t, "", "batch", in, "--url", d.URL, "--cancel"); code == exitUsage {
		t.Errorf("cancel: code %d, %s", code, stderr)
	}
}

func TestWhatCannotBeginSaysWhy(t *testing.T) {
	plainEnvironment(t)
	d := openBatchDoor(t)
	in, _ := callsFile(t, callLines(3))
	empty, _ := callsFile(t, "\n \n")
	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	for _, c := range []struct {
		args string
		code int
		said string
	}{
		{empty, exitUsage, "no calls"},
		{in + ".gone", exitUsage, "cannot be read"},
		{filepath.Dir(in), exitUsage, "folder"},
		{in + "|--priority|11", exitUsage, "--priority"},
		{in + "|--label|x", exitUsage, "KEY=VALUE"},
		{in + "|--expires|1ms", exitUsage, "--expires"},
		{in + "|--out|-", exitUsage, "--out"},
		{in + "|--cancel", exitUsage, "no batch to cancel"},
		{in + "|--url|" + nowhere.URL, exitUnreachable, "callyard up"},
	} {
		_, stderr, code := typed(t, "", append([]string{"batch", "--url", d.URL}, strings.Split(c.args, "|")...)...)
		if code != c.code || !strings.Contains(stderr, c.said) {
			t.Errorf("%s: code %d, want %d and %q: %s", c.args, code, c.code, c.said, stderr)
		}
	}
	if len(d.batches) != 0 {
		t.Errorf("%d batches were made", len(d.batches))
	}
}

func TestABusyFrontDoorIsGivenUpAfterAWhile(t *testing.T) {
	plainEnvironment(t)
	d := openBatchDoor(t)
	in, out := callsFile(t, callLines(3))
	d.badly = func(what string) badly {
		if strings.Contains(what, "/calls") {
			return busy
		}
		return well
	}
	r := runOf(t, d, batchOptions{input: in, out: out, follow: true, giveUp: 20 * time.Millisecond})
	if err := r.start(t); exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "No room") || !strings.Contains(err.Error(), "The same command sends the rest") {
		t.Errorf("%v", err)
	}
	d.mu.Lock()
	d.badly = func(string) badly { return well }
	d.mu.Unlock()
	if err := runOf(t, d, batchOptions{input: in, out: out, follow: false}).start(t); err != nil {
		t.Error(err)
	}
	if err := runOf(t, d, batchOptions{input: in, out: out, follow: true}).start(t); err != nil {
		t.Error(err)
	}
	d.wantResults(t, out, "batch_1", 3)
}

func TestAFrontDoorThatAsksForTimeGetsIt(t *testing.T) {
	var waits []time.Duration
	p := patience{giveUp: time.Hour, pauses: backoff.Policy{First: time.Millisecond, Max: time.Second}}
	p.sleep = func(_ context.Context, d time.Duration) bool {
		waits = append(waits, d)
		return true
	}
	no := &refusal{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"7"}}}
	for range 12 {
		if err := p.again(t.Context(), no); err != nil {
			t.Fatal(err)
		}
	}
	for i, w := range waits {
		if w < 7*time.Second || w > 8*time.Second {
			t.Errorf("wait %d was %s", i, w)
		}
	}
	if err := p.again(t.Context(), &refusal{status: http.StatusForbidden}); err == nil {
		t.Error("a refusal was tried again")
	}
	p.giveUp = time.Second
	if err := p.again(t.Context(), no); err == nil {
		t.Error("it waits for longer than it may")
	}
}
