package episode

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// slots is a fleet of workers with one process each, and their catalog.
type slots struct {
	oneTool
	workers []schema.WorkerID
	opened  func(asked int) error // error of an open that succeeded; nil means none
	states  []string              // successive digests; after them, "same"
	hung    string                // prefix of workers that do not answer when a lease is closed; "" means none

	mu    sync.Mutex
	taken map[schema.WorkerID]string
	asked int
	full  int // opens that found no free process
}

func (s *slots) Holders(schema.ServerID) (out []schema.Worker) {
	for _, id := range s.workers {
		out = append(out, schema.Worker{ID: id, Servers: []schema.Server{{ID: "files", State: schema.StateInitialized, Transport: "stdio"}}})
	}
	return out
}

func (s *slots) Request(_ context.Context, worker schema.WorkerID, method string, _ schema.ServerID, payload []byte, timeout time.Duration) ([]byte, error) {
	var q bus.LeaseRequest
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, err
	}
	if method == bus.MethodCloseLease && s.hung != "" && strings.HasPrefix(string(worker), s.hung) {
		time.Sleep(timeout)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case bus.MethodOpenLease:
		if s.taken[worker] != "" {
			s.full++
			e := schema.Errorf(schema.KindUnavailable, "full")
			e.Retryable = true
			return nil, e
		}
		s.taken[worker] = q.ID
		s.asked++
		if s.opened != nil {
			return nil, s.opened(s.asked)
		}
	case bus.MethodCloseLease:
		if s.taken[worker] == q.ID {
			delete(s.taken, worker)
		}
	case bus.MethodLeaseDigest:
		if len(s.states) > 0 {
			state := s.states[0]
			s.states = s.states[1:]
			return json.Marshal(state)
		}
		return []byte(`"same"`), nil
	}
	return nil, nil
}

// echoes is a [Calls] in which every call succeeds.
type echoes struct{ Calls }

func (echoes) Submit(context.Context, calls.Request) (calls.Outcome, error) {
	return calls.Outcome{Result: &schema.Result{Body: []byte(`{"content":[]}`)}}, nil
}

// slotted returns a manager over workers with one process each, and its environment, whose reward is
// the state.
func slotted(t *testing.T, s *slots) (*Manager, *Environment) {
	t.Helper()
	s.taken = make(map[schema.WorkerID]string)
	f, err := Load(written(t, map[string]string{
		"env.yaml":    "environments:\n  notes:\n    tools: [files/*]\n    isolation: process\n    state: {dir: .}\n    tasks_file: tasks.jsonl\n    reward: {weights: {selection: 0, format: 0, state: 1}}\n",
		"tasks.jsonl": `{"id":"a","question":"a","labels":[{"name":"read"}]}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{File: f, Calls: echoes{}, Catalog: s, Workers: s, Log: slog.New(slog.DiscardHandler)}), f.Environments["notes"]
}

func (s *slots) leased() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// The only process is needed twice: by the episode, and by the replay of the labelled calls.
func TestEpisodeWithTheOnlyProcessIsScored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slots{workers: []schema.WorkerID{"w"}}
		m, e := slotted(t, s)
		defer m.Close()
		ep, err := m.Begin(t.Context(), e, Begin{Task: e.tasks.byID["a"]})
		if err != nil {
			t.Fatal(err)
		}
		o, err := ep.Step(t.Context(), "finish", nil)
		if err != nil || o.Masked || o.Reward == nil || *o.Reward != 1 {
			t.Errorf("the episode ended with %+v, %v", o, err)
		}
		ep.Close()
		if n := s.leased(); n != 0 {
			t.Errorf("%d processes are leased", n)
		}
	})
}

// Another episode takes the process between the episode and the replay.
func TestAReplayWaitsForAFreeProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slots{workers: []schema.WorkerID{"w"}}
		m, e := slotted(t, s)
		defer m.Close()
		s.taken["w"] = "another"
		of := &Episode{m: m, env: e, task: e.tasks.byID["a"], ctx: t.Context()}
		over := make(chan error, 1)
		go func() {
			_, err := m.replay(t.Context(), of)
			over <- err
		}()
		synctest.Wait()
		s.mu.Lock()
		if s.full == 0 {
			t.Error("nobody asked for a process")
		}
		delete(s.taken, "w")
		s.mu.Unlock()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestWorkersThatDoNotAnswerDoNotDelayTheEndOfIdleEpisodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slots{workers: []schema.WorkerID{"hung1", "hung2", "hung3", "hung4", "w"}, hung: "hung"}
		m, e := slotted(t, s)
		defer m.Close()
		for range s.workers {
			if _, err := m.Begin(t.Context(), e, Begin{Task: e.tasks.byID["a"]}); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.leased(); n != len(s.workers) {
			t.Fatalf("%d processes are leased", n)
		}
		time.Sleep(e.Limits.Idle + 2*leaseTime)
		if n := s.leased(); n != 0 {
			t.Errorf("%d processes are still leased", n)
		}
	})
}

func TestAbandonedResetReleasesItsProcess(t *testing.T) {
	for name, opened := range map[string]func(cancel context.CancelFunc) error{
		"the client left": func(cancel context.CancelFunc) error {
			cancel()
			return schema.Errorf(schema.KindCanceled, "left")
		},
		"no answer came": func(context.CancelFunc) error { return schema.Errorf(schema.KindOutcomeUnknown, "no answer") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &slots{workers: []schema.WorkerID{"v", "w"}}
			m, e := slotted(t, s)
			defer m.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.opened = func(int) error { return opened(cancel) }
			if _, err := m.Begin(ctx, e, Begin{Task: e.tasks.byID["a"]}); err == nil {
				t.Errorf("%s: the episode began", name)
			}
			if n := s.leased(); n != 0 || s.asked != 1 {
				t.Errorf("%s: %d processes are leased after %d requests, want none after one", name, n, s.asked)
			}
		})
	}
}

// A state that an agent made unusable lowers its reward. A state that the labelled calls made
// unusable does not.
func TestUnusableStateDiffersFromLabelledState(t *testing.T) {
	const spoiled = bus.UnusableState + "too many files"
	for name, c := range map[string]struct {
		states []string
		masked string
	}{
		"the agent's":           {states: []string{spoiled}},
		"of the labelled calls": {states: []string{"sum", spoiled}, masked: FailureOracle},
		"of both":               {states: []string{spoiled, spoiled}, masked: FailureOracle},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &slots{workers: []schema.WorkerID{"w"}, states: c.states}
			m, e := slotted(t, s)
			defer m.Close()
			ep, err := m.Begin(t.Context(), e, Begin{Task: e.tasks.byID["a"]})
			if err != nil {
				t.Fatal(err)
			}
			o, err := ep.Step(t.Context(), "finish", nil)
			if err != nil || o.Masked != (c.masked != "") || o.FailureKind != c.masked || !o.Masked && (o.Reward == nil || *o.Reward != 0) {
				t.Errorf("%s: the episode ended with %+v, %v", name, o, err)
			}
		})
	}
}
