package rolling

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/mcptest"
)

// load runs honest callers in closed loops: each sends its next request when the last
// one was answered. Every call has an effect with a unique ID.
type load struct {
	house     *processFiles
	doors     *retryingClient
	approvers *retryingClient // nil means no approvals

	began time.Time
	stop  chan struct{}
	once  sync.Once
	wait  sync.WaitGroup
	asked atomic.Int64        // confirmations that were lost with Redis and requested again
	done  [kinds]atomic.Int64 // ended calls of each kind, successful or not

	// cut reports that the network is partitioned. Then calls in flight may correctly end
	// as unknown.
	cut atomic.Bool

	mu      sync.Mutex
	ran     []string // effects of calls that succeeded
	unknown []string // effects of calls that ended as unknown
	faults  []string
}

// Kinds of calls, each of which takes a different path through the fabric.
const (
	plain     = iota // synchronous; not safe to repeat
	slow             // the same, long enough to be in progress during a stop
	safe             // synchronous; its tool is safe to repeat
	stored           // has an idempotency key: it is stored before it runs
	confirmed        // held until its caller confirms
	approved         // held until an approver approves
	batched          // batches of batchSize calls
	kinds
)

var kindNames = [kinds]string{"plain", "slow", "safe", "stored", "confirmed", "approved", "batched"}

// batchSize is the number of calls of a batch.
const batchSize = 20

// thinks is the pause of a caller before its next call. The load must be present during every
// fault, but must not take the processors from recovering processes.
const thinks = 20 * time.Millisecond

// startLoad runs lanes callers of each kind until the load ends.
func startLoad(t testing.TB, h *processFiles, doors, approvers *proc.Balancer, lanes [kinds]int) *load {
	l := &load{house: h, doors: &retryingClient{b: doors, http: client(t)}, began: time.Now(), stop: make(chan struct{})}
	if approvers != nil {
		l.approvers = &retryingClient{b: approvers, http: client(t)}
	}
	for kind, n := range lanes {
		for lane := range n {
			l.wait.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-l.stop:
						return
					default:
					}
					id := fmt.Sprintf("%s-%d-%d", kindNames[kind], lane, i)
					began := time.Now()
					err := l.call(kind, id, 3)
					l.count(kind, id, time.Since(began), err)
					rest(thinks)
				}
			})
		}
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) count(kind int, id string, took time.Duration, err error) {
	l.mu.Lock()
	var told answer
	switch {
	case err == nil && kind == batched:
		for i := range batchSize {
			l.ran = append(l.ran, inBatch(id, i))
		}
	case err == nil:
		l.ran = append(l.ran, id)
	case l.cut.Load() && errors.As(err, &told) && told.problem().Type == "/problems/outcome-unknown":
		l.unknown = append(l.unknown, id)
	default:
		l.faults = append(l.faults, fmt.Sprintf("%s %s after %s: %v", time.Now().Format("15:04:05.000"), id, took.Round(time.Millisecond), err))
	}
	l.mu.Unlock()
	l.done[kind].Add(1)
}

// end ends the load and waits for its callers.
func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.wait.Wait()
}

// calm waits until n more calls of each kind have ended, and fails the test if any failed.
func (l *load) calm(t testing.TB, n int64, lanes [kinds]int, what string) {
	t.Helper()
	var from [kinds]int64
	for kind := range l.done {
		from[kind] = l.done[kind].Load()
	}
	proc.Eventually(t, patience, what+": more calls", func() error {
		for kind := range l.done {
			if got := l.done[kind].Load() - from[kind]; lanes[kind] > 0 && got < n {
				return fmt.Errorf("%d %s calls have ended", got, kindNames[kind])
			}
		}
		return nil
	})
	t.Logf("%5.1f s: calls go on after %s", time.Since(l.began).Seconds(), what)
	l.mu.Lock()
	failed := len(l.faults)
	l.mu.Unlock()
	if failed > 0 {
		l.end()
		t.Fatalf("after %s %d requests have failed:\n%s", what, failed, strings.Join(l.faults[:min(20, len(l.faults))], "\n"))
	}
}

// check compares the responses with the runs.
func (l *load) check(t testing.TB) {
	t.Helper()
	l.end()
	effects, err := mcptest.ReadEffects(l.house.effects)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.faults) > 0 {
		t.Errorf("%d requests have failed:\n%s", len(l.faults), strings.Join(l.faults[:min(20, len(l.faults))], "\n"))
	}
	for _, id := range l.ran {
		if effects[id] == 0 {
			t.Errorf("%s was answered with a result and has not run", id)
		}
	}
	for id, n := range effects {
		if n > 1 && !strings.HasPrefix(id, kindNames[safe]) {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	counts := ""
	for kind := range l.done {
		counts += fmt.Sprintf("%d %s, ", l.done[kind].Load(), kindNames[kind])
	}
	t.Logf("%ssent again: %d after a refusal, %d that did not leave or may be repeated after a break, %d that may be repeated as they were told; %d questions were asked anew; of %d nobody knows", counts, l.doors.refused.Load(), l.doors.broken.Load(), l.doors.repeated.Load(), l.asked.Load(), len(l.unknown))
}

// call makes a call of the kind and returns nil when it has the result.
func (l *load) call(kind int, id string, tries int) error {
	if kind == batched {
		return l.batch(id)
	}
	server, ms := plainServer, 5
	var headers []string
	repeat := false
	switch kind {
	case slow:
		ms = 500
	case safe:
		server, repeat = safeServer, true
	case stored:
		headers, repeat = []string{"Idempotency-Key: " + id}, true
	case confirmed:
		server = callersServer
	case approved:
		server = peoplesServer
	}
	path := "/servers/" + server + "/tools/effect?timeout_ms=30000"
	a, err := l.doors.do(repeat, http.MethodPost, path, fmt.Sprintf(`{"path":%q,"id":%q,"ms":%d}`, l.house.effects, id, ms), headers...)
	for kind == stored && err == nil && a.status == http.StatusConflict {
		// It is running: this client sent it before the connection broke.
		rest(retryAfter(a))
		a, err = l.doors.do(repeat, http.MethodPost, path, fmt.Sprintf(`{"path":%q,"id":%q,"ms":%d}`, l.house.effects, id, ms), headers...)
	}
	if err != nil {
		return err
	}
	if kind != confirmed && kind != approved {
		return isResult(a, id)
	}
	held, err := isHeld(a)
	if err != nil {
		return err
	}
	return l.decide(kind, id, held, tries)
}

// held is the answer to a held call.
type held struct {
	ID         string `json:"confirmation_id"`
	CallID     string `json:"call_id"`
	ApprovalID string `json:"approval_id"`
}

func isHeld(a answer) (h held, err error) {
	if a.status != http.StatusAccepted || json.Unmarshal(a.body, &h) != nil {
		return h, fmt.Errorf("it was not held: %w", a)
	}
	return h, nil
}

// decide confirms or approves a held call and returns nil when it has the result.
func (l *load) decide(kind int, id string, held held, tries int) error {
	if kind == approved {
		if err := l.approve(held.ApprovalID); err != nil {
			return err
		}
		return l.ended(held.CallID, id)
	}
	a, err := l.doors.do(true, http.MethodPost, "/confirmations/"+held.ID, `{"confirm":true}`)
	if err != nil {
		return err
	}
	if a.status >= 400 && a.problem().CallID == held.CallID {
		// An earlier attempt of this client may have succeeded. Or the token is lost, and the call
		// has not run: then it is requested again, as a user would.
		if err := l.ended(held.CallID, id); !errors.Is(err, errHeld) {
			return err
		}
		if l.asked.Add(1); tries > 1 {
			return l.call(kind, id, tries-1)
		}
	}
	return isResult(a, id)
}

// batch sends a batch and returns nil when each of its calls has succeeded.
func (l *load) batch(id string) error {
	var calls []string
	for i := range batchSize {
		one := inBatch(id, i)
		calls = append(calls, fmt.Sprintf(`{"custom_id":%q,"server":%q,"tool":"effect","arguments":{"path":%q,"id":%q,"ms":20}}`, one, plainServer, l.house.effects, one))
	}
	a, err := l.doors.do(true, http.MethodPost, "/batches", `{"calls":[`+strings.Join(calls, ",")+`]}`, "Idempotency-Key: "+id)
	if err != nil {
		return err
	}
	location := a.header.Get("Location")
	if a.status != http.StatusCreated || location == "" {
		return fmt.Errorf("the batch is not taken: %w", a)
	}
	began := time.Now()
	for {
		a, err := l.doors.do(true, http.MethodGet, location, "")
		if err != nil {
			return err
		}
		var s struct {
			State  string         `json:"state"`
			Counts map[string]int `json:"counts"`
		}
		switch {
		case a.status != http.StatusOK || json.Unmarshal(a.body, &s) != nil:
			return a
		case s.State == "completed" && s.Counts["succeeded"] == batchSize:
			return nil
		case s.State == "completed" || time.Since(began) > patience:
			return a
		}
		rest(proc.LookEvery)
	}
}

func inBatch(id string, i int) string { return fmt.Sprintf("%s-%d", id, i) }

// approve approves as an approver.
func (l *load) approve(approval string) error {
	a, err := l.approvers.do(true, http.MethodGet, "/approvals/"+approval, "", "X-API-Key: ann")
	if err != nil {
		return err
	}
	var seen struct {
		Digest string `json:"arguments_digest"`
	}
	if a.status != http.StatusOK || json.Unmarshal(a.body, &seen) != nil {
		return fmt.Errorf("it is not shown: %w", a)
	}
	a, err = l.approvers.do(true, http.MethodPost, "/approvals/"+approval+"/decisions", fmt.Sprintf(`{"kind":"approve","digest":%q}`, seen.Digest), "X-API-Key: ann")
	if err == nil && a.status != http.StatusOK && a.status != http.StatusConflict { // a repeated approval finds it decided
		err = fmt.Errorf("the decision is not taken: %w", a)
	}
	return err
}

// errHeld reports that a call is still held long after its approval.
var errHeld = errors.New("it is held still")

// heldFor limits the time that a call may be held after its approval.
const heldFor = 30 * time.Second

// ended waits until a held call has ended.
func (l *load) ended(call, id string) error {
	began := time.Now()
	for {
		a, err := l.doors.do(true, http.MethodGet, "/calls/"+call+"?wait=5", "")
		if err != nil {
			return err
		}
		var s struct {
			State  string          `json:"state"`
			Result json.RawMessage `json:"result"`
		}
		if a.status != http.StatusOK || json.Unmarshal(a.body, &s) != nil {
			return fmt.Errorf("nobody says what came of it: %w", a)
		}
		switch s.State {
		case "held":
			if time.Since(began) > heldFor {
				return fmt.Errorf("%w: %w", errHeld, a)
			}
			continue
		case "queued", "running":
			if time.Since(began) > patience {
				return fmt.Errorf("it has not ended: %w", a)
			}
			continue
		case "succeeded":
			if strings.Contains(string(s.Result), "done "+id) {
				return nil
			}
		}
		return a
	}
}

func isResult(a answer, id string) error {
	if a.status != http.StatusOK || !strings.Contains(string(a.body), "done "+id) {
		return a
	}
	return nil
}
