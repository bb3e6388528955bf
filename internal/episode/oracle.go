package episode

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	oraclePause = 50 * time.Millisecond // pause before an oracle tries again to get a free process
	maxOracles  = 10_000                // cached states; with seeds, one for each seed
)

// expectedStatesCache caches the states after the labelled calls of tasks.
type expectedStatesCache struct {
	mu    sync.Mutex
	known map[string]*expectedStates
}

type expectedStates struct {
	mu    sync.Mutex
	state string
	found bool
}

// oracleError means that the labelled calls of a task could not be replayed.
type oracleError struct{ cause error }

// Error implements error.
func (e *oracleError) Error() string { return "replaying the labelled calls: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *oracleError) Unwrap() error { return e.cause }

// expectedState returns the state after the labelled calls of a task. It replays them once, in a
// separate episode, and caches the state until the tools change.
func (m *Manager) expectedState(ctx context.Context, ep *Episode) (string, error) {
	key := ep.env.name + "\x00" + ep.task.ID + "\x00" + ep.table.version
	if ep.env.State.Seed {
		key += "\x00" + strconv.FormatInt(ep.seed, 10)
	}
	m.oracles.mu.Lock()
	if m.oracles.known == nil {
		m.oracles.known = make(map[string]*expectedStates)
	}
	o := m.oracles.known[key]
	if o == nil {
		if len(m.oracles.known) >= maxOracles {
			clear(m.oracles.known)
		}
		o = &expectedStates{}
		m.oracles.known[key] = o
	}
	m.oracles.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found {
		return o.state, nil
	}
	state, err := m.replay(ctx, ep)
	if err != nil {
		return "", &oracleError{err} // the next episode tries again
	}
	o.state, o.found = state, true
	return state, nil
}

// replay makes the labelled calls in a separate episode and returns the state.
func (m *Manager) replay(ctx context.Context, of *Episode) (string, error) {
	ep, err := m.beginOracle(ctx, of)
	if err != nil {
		return "", err
	}
	defer ep.Close()
	for i := range of.task.Labels {
		label := &of.task.Labels[i]
		arguments := label.Arguments
		if len(arguments) == 0 || string(arguments) == "null" {
			arguments = json.RawMessage("{}")
		}
		o := ep.run(ctx, label.Name, arguments)
		if o.Masked || o.Error != nil {
			return "", fmt.Errorf("the call %d of %s: %s", i+1, label.Name, o.Error.Message)
		}
	}
	return ep.digest(ctx)
}

// beginOracle starts the episode of a replay. While all processes are taken, it waits for at most
// [leaseTime] or until of is closed.
func (m *Manager) beginOracle(ctx context.Context, of *Episode) (*Episode, error) {
	waiting, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	defer context.AfterFunc(of.ctx, cancel)()
	for {
		ep, err := m.begin(of.spans.below(ctx), of.env, Begin{Task: of.task, Seed: of.seed, Principal: of.who}, true)
		if err == nil {
			return ep, nil
		}
		if e := schema.AsError(err); e.Kind != schema.KindUnavailable || !e.Retryable || !sleep.For(oraclePause, waiting.Done()) {
			return nil, err
		}
	}
}
