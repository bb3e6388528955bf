package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// load runs callers in closed loops: each sends its next call when the last one was
// answered. It ends with the test at the latest.
type load struct {
	calls  atomic.Int64 // ended calls, successful or not
	failed atomic.Int64
	stop   chan struct{}
	once   sync.Once
	wait   sync.WaitGroup

	mu     sync.Mutex
	faults []error // the first few
}

const faultsKept = 20

// startLoad starts lanes callers that run call until the load ends. An error of call
// is a failure.
func startLoad(t testing.TB, lanes int, call func(lane, n int) error) *load {
	l := &load{stop: make(chan struct{})}
	for lane := range lanes {
		l.wait.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.count(call(lane, n))
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// runCalls runs a total of calls calls with lanes callers and returns when they have ended.
func runCalls(lanes, calls int, call func(n int) error) *load {
	l := &load{stop: make(chan struct{})}
	var next atomic.Int64
	for range lanes {
		l.wait.Go(func() {
			for n := next.Add(1); n <= int64(calls); n = next.Add(1) {
				l.count(call(int(n)))
			}
		})
	}
	l.end()
	return l
}

func (l *load) count(err error) {
	if err != nil {
		l.failed.Add(1)
		l.mu.Lock()
		if len(l.faults) < faultsKept {
			l.faults = append(l.faults, err)
		}
		l.mu.Unlock()
	}
	l.calls.Add(1)
}

// end ends the load and waits for its callers.
func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.wait.Wait()
}

// errors returns the first failures.
func (l *load) errors() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.faults...)
}

// more waits until n more calls have ended.
func (l *load) more(t testing.TB, n int64) {
	t.Helper()
	from := l.calls.Load()
	eventually(t, soon, fmt.Sprintf("%d more calls", n), func() error {
		if got := l.calls.Load() - from; got < n {
			return fmt.Errorf("there were %d", got)
		}
		return nil
	})
}

// none checks that no call failed, and that there were calls.
func (l *load) none(t testing.TB, what string) {
	t.Helper()
	if l.failed.Load() > 0 {
		t.Errorf("%s: %d of %d calls failed: %v", what, l.failed.Load(), l.calls.Load(), l.errors())
	}
	if l.calls.Load() == 0 {
		t.Errorf("%s: there was no call", what)
	}
}

// echo calls the tool echo of a scripted server with the text and
// checks that the answer contains it.
func (d *door) echo(server, said string) error {
	a, err := d.tryCall(server, "echo", fmt.Sprintf(`{"text":%q}`, said))
	if err != nil {
		return err
	}
	if a.status != 200 {
		return &refusal{a}
	}
	if want := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, said); string(a.body) != want {
		return fmt.Errorf("the answer is %.300s, want %s", a.body, want)
	}
	return nil
}

// refusal is a response that is not a result.
type refusal struct{ answer }

// Error shows the answer.
func (r *refusal) Error() string { return fmt.Sprintf("status %d: %.500s", r.status, r.body) }
