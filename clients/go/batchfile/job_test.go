package batchfile

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/clients/go/batchfile/batchfiletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jobOf returns a run with small pieces and pauses.
func jobOf(t *testing.T, d *batchfiletest.Door, o Options) *Job {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := callyard.New(d.URL, "", callyard.WithHTTPClient(&http.Client{Transport: transport}), callyard.WithRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	o.Client, o.Address = client, d.URL
	if o.GiveUp == 0 {
		o.GiveUp = time.Minute
	}
	j := New(o)
	j.pieceLines, j.pieceBytes, j.keepEvery = 7, 1<<10, time.Millisecond
	j.patience.first, j.patience.most = time.Millisecond, 4*time.Millisecond
	return j
}

// run runs a new job and returns its error.
func run(t *testing.T, d *batchfiletest.Door, o Options) error {
	t.Helper()
	_, err := jobOf(t, d, o).Run(t.Context())
	return err
}

// isFault reports whether err is an [Error] with the fault.
func isFault(err error, f Fault) bool {
	var e *Error
	return errors.As(err, &e) && e.Fault == f
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

// killAt fails all writes from the k-th step on, as a kill would.
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

// wantKept checks that the state never refers to results that are not in the file.
func wantKept(t *testing.T, out string, k int, step string) {
	t.Helper()
	text, err := os.ReadFile(statePath(out))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var s state
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
	const n = 40
	seen := map[string]bool{}
	for k := 1; ; k++ {
		d := batchfiletest.Open(t)
		in, out := callsFile(t, batchfiletest.CallLines(n))
		o := Options{Calls: in, Results: out}
		first := jobOf(t, d, o)
		fault, where := killAt(k)
		first.fault = fault
		_, err := first.Run(t.Context())
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
		if err := run(t, d, o); err != nil {
			t.Fatalf("after a kill at write %d (%s): %v", k, where(), err)
		}
		d.WantResults(t, out, "batch_1", n)
		if d.Batches() != 1 {
			t.Fatalf("after a kill at write %d (%s) there are %d batches", k, where(), d.Batches())
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
	const n = 300
	for seed := range uint64(8) {
		for _, piped := range []bool{false, true} {
			d := batchfiletest.Open(t)
			dice := rand.New(rand.NewPCG(seed, 1))
			d.Faults(func(what string) batchfiletest.Fault {
				odds := 8
				if what == "line" || what == "result" {
					odds = 60
				}
				if dice.IntN(odds) > 0 {
					return batchfiletest.None
				}
				if odds == 60 {
					return batchfiletest.HangsUp
				}
				return batchfiletest.Fault(1 + dice.IntN(3))
			})
			in, out := callsFile(t, batchfiletest.CallLines(n))
			o := Options{Calls: in, Results: out}
			if piped {
				o.Calls, o.Pipe = "", strings.NewReader(batchfiletest.CallLines(n))
			}
			// Before the batch is created, a front door that hangs up ends the run.
			var err error
			for range 10 {
				if err = run(t, d, o); err == nil {
					break
				}
				if piped {
					o.Pipe = strings.NewReader(batchfiletest.CallLines(n))
				}
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			d.WantResults(t, out, "batch_1", n)
			d.Close()
		}
	}
}

func TestAnInterruptedBatchIsContinued(t *testing.T) {
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(100))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.Faults(func(what string) batchfiletest.Fault {
		if what == "result" {
			cancel()
		}
		return batchfiletest.None
	})
	j := jobOf(t, d, Options{Calls: in, Results: out})
	if _, err := j.Run(ctx); !errors.Is(err, context.Canceled) || j.Progress().Batch != "batch_1" {
		t.Fatalf("interrupted: %v", err)
	}
	d.Faults(batchfiletest.NoFaults)
	if err := run(t, d, Options{Calls: in, Results: out}); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_1", 100)
	// A further run does not send anything again.
	if err := run(t, d, Options{Calls: in, Results: out}); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_1", 100)
	// If the results file is removed, all results are read again.
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := run(t, d, Options{Calls: in, Results: out}); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_1", 100)
	if d.Batches() != 1 {
		t.Errorf("there are %d batches", d.Batches())
	}
}

func TestOnlyTheSameInputIsContinued(t *testing.T) {
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(20))
	o := Options{Calls: in, Results: out}
	if err := run(t, d, o); err != nil {
		t.Fatal(err)
	}
	other := o
	other.Order = &Order{Priority: 3}
	if err := run(t, d, other); !isFault(err, OtherOrder) {
		t.Errorf("another priority: %v", err)
	}
	if err := os.WriteFile(in, []byte(batchfiletest.CallLines(21)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t, d, o); !isFault(err, OtherCalls) {
		t.Errorf("another input: %v", err)
	}
	d.WantResults(t, out, "batch_1", 20)
	o.Restart = true
	if err := run(t, d, o); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_2", 21)
	// A restart removes longer old results completely.
	if err := os.WriteFile(in, []byte(batchfiletest.CallLines(5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t, d, o); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_3", 5)
	if err := os.Remove(statePath(out)); err != nil {
		t.Fatal(err)
	}
	o.Restart = false
	if err := run(t, d, o); !isFault(err, NotEmpty) {
		t.Errorf("results without a state: %v", err)
	}
	d.WantResults(t, out, "batch_3", 5)
	held := &notebook{path: out}
	if _, err := held.open(); err != nil {
		t.Fatal(err)
	}
	defer held.close()
	if err := run(t, d, o); !isFault(err, InUse) {
		t.Errorf("two at once: %v", err)
	}
}

func TestResultsNeverReplaceTheCalls(t *testing.T) {
	d := batchfiletest.Open(t)
	text := batchfiletest.CallLines(3)
	in, out := callsFile(t, text)
	link := filepath.Join(filepath.Dir(in), "link")
	if err := os.Link(in, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(in, statePath(out)); err != nil {
		t.Fatal(err)
	}
	piped, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer piped.Close()
	for name, o := range map[string]Options{
		"the same path": {Calls: in, Results: in}, "started again": {Calls: in, Results: in, Restart: true}, "another path": {Calls: in, Results: link, Restart: true},
		"the path of the state": {Calls: in, Results: out, Restart: true}, "a pipe": {Pipe: piped, Results: in, Restart: true},
	} {
		if err := run(t, d, o); !isFault(err, BadResults) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if kept, err := os.ReadFile(in); err != nil || string(kept) != text {
		t.Errorf("the calls are %q, %v", kept, err)
	}
	if d.Batches() != 0 {
		t.Errorf("there are %d batches", d.Batches())
	}
}

func TestCancelCreatesNoBatch(t *testing.T) {
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(3))
	if err := run(t, d, Options{Calls: in, Results: out}); err != nil {
		t.Fatal(err)
	}
	if err := run(t, d, Options{Calls: in, Results: out, Cancel: true, Restart: true}); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_1", 3)
}

func TestRetriesAtABusyFrontDoorAreLimited(t *testing.T) {
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(3))
	d.Faults(func(what string) batchfiletest.Fault {
		if strings.Contains(what, "/calls") {
			return batchfiletest.Busy
		}
		return batchfiletest.None
	})
	var refused *callyard.ProblemError
	if err := run(t, d, Options{Calls: in, Results: out, GiveUp: 20 * time.Millisecond}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "No room") || !Passing(refused) {
		t.Errorf("%v", err)
	}
	d.Faults(batchfiletest.NoFaults)
	if err := run(t, d, Options{Calls: in, Results: out, UploadOnly: true}); err != nil {
		t.Error(err)
	}
	if err := run(t, d, Options{Calls: in, Results: out}); err != nil {
		t.Error(err)
	}
	d.WantResults(t, out, "batch_1", 3)
}

func TestRetryAfterOfFrontDoorIsObserved(t *testing.T) {
	var waits []time.Duration
	p := patience{giveUp: time.Hour, first: time.Millisecond, most: time.Second}
	p.sleep = func(_ context.Context, d time.Duration) bool {
		waits = append(waits, d)
		return true
	}
	no := &callyard.ProblemError{Problem: callyard.Problem{Status: http.StatusTooManyRequests}, RetryAfter: 7 * time.Second}
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
	if err := p.again(t.Context(), &callyard.ProblemError{Problem: callyard.Problem{Status: http.StatusForbidden}}); err == nil {
		t.Error("a refusal was tried again")
	}
	p.giveUp = time.Second
	if err := p.again(t.Context(), no); err == nil {
		t.Error("it waits for longer than it may")
	}
}

func TestCanceledBatchReportsCallsNotTaken(t *testing.T) {
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(30))
	n := 0
	d.Faults(func(what string) batchfiletest.Fault {
		if what == "line" {
			if n++; n == 10 {
				return batchfiletest.Cancels
			}
		}
		return batchfiletest.None
	})
	report, err := jobOf(t, d, Options{Calls: in, Results: out}).Run(t.Context())
	if err != nil || report.NotTaken != 21 || report.Batch.State != callyard.BatchStateCanceled || report.Progress.Results.Lines != 9 {
		t.Errorf("%+v, %v", report, err)
	}
}

func FuzzTheStateOfABatchIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"version":1,"url":"http://x","key":"k","order":{"open":true},"batch":"batch_1","lines":3,"cursor":"c","bytes":10,"tally":{"lines":1}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"bytes":-1,"lines":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s state
		if json.Unmarshal(text, &s) == nil && len(s.Order) > 0 && !json.Valid(s.Order) {
			t.Fatalf("%q has the order %q", text, s.Order)
		}
	})
}
