package episode

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/reward"
	"github.com/callyard/callyard/pkg/schema"
)

// Episode is one attempt at a task. It is safe for concurrent use; its steps run sequentially.
// Close ends it.
type Episode struct {
	m      *Manager
	env    *Environment
	task   *Task
	table  *table
	key    string // the session name of its calls
	id     string
	who    schema.Principal
	prompt string
	seed   int64
	from   *snapshot // nil for the initial state of the environment
	oracle bool      // replays labelled calls for the manager
	ctx    context.Context
	cancel context.CancelFunc
	leases map[schema.ServerID]schema.Lease // by server; nil with isolation shared

	stepping sync.Mutex // held during a step
	spans    spans      // used sequentially, like the steps
	closing  sync.Once

	mu      sync.Mutex
	began   time.Time
	used    time.Time
	busy    int
	steps   int
	done    bool
	final   *Observation // of the step that ended the episode, or nil
	answer  any
	calls   []reward.Call
	results []map[string]any // for conditions
	texts   []string         // texts of the model, and its structured calls as blocks
	inText  bool             // the model sent a text
	written record           // the transcript
}

// ID returns the id of the episode. Callers can choose it, so it need not be unique.
func (ep *Episode) ID() string { return ep.id }

// Environment returns the environment of the episode.
func (ep *Episode) Environment() *Environment { return ep.env }

// Task returns the task of the episode.
func (ep *Episode) Task() *Task { return ep.task }

// Prompt returns the first observation.
func (ep *Episode) Prompt() string { return ep.prompt }

// Tools returns the tools of the episode. The finish tool is last.
func (ep *Episode) Tools() []Tool { return ep.table.tools }

// Status is the progress of an episode.
type Status struct {
	Steps  int
	Done   bool
	Masked bool
}

// Status returns the progress of the episode.
func (ep *Episode) Status() Status {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return Status{Steps: ep.steps, Done: ep.done, Masked: ep.final != nil && ep.final.Masked}
}

// Last returns the observation that ended the episode, or nil while it continues.
func (ep *Episode) Last() *Observation {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.final
}

func (ep *Episode) begun(now time.Time) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.began, ep.used = now, now
	ep.written.begin(ep, now)
}

// Touch resets the idle time of the episode.
func (ep *Episode) Touch() {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.used = ep.m.o.Now()
}

// IdleTime returns the time since the episode was last used. It is 0 during a step.
func (ep *Episode) IdleTime(now time.Time) time.Duration {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.busy > 0 {
		return 0
	}
	return now.Sub(ep.used)
}

// enter marks the episode as in use until the returned function is called.
func (ep *Episode) enter() (leave func()) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.busy++
	return func() {
		ep.mu.Lock()
		defer ep.mu.Unlock()
		ep.busy--
		ep.used = ep.m.o.Now()
	}
}

// Close ends the episode: it cancels a running call and releases the episode's resources at its
// workers. It returns when that is done. It may be called more than once.
func (ep *Episode) Close() {
	ep.closing.Do(func() {
		ep.cancel()
		ep.stepping.Lock() // wait for the running step
		defer ep.stepping.Unlock()
		ep.release()
		if ep.oracle {
			ep.spans.whole.End()
			return
		}
		ep.mu.Lock()
		outcome, reason := "closed", ""
		if ep.final != nil {
			switch outcome = "done"; {
			case ep.final.Masked:
				outcome, reason = "masked", ep.final.FailureKind
			case ep.final.Truncated:
				outcome = "truncated"
			}
		}
		ep.done = true
		ep.spans.end(ep, outcome, reason)
		ep.written.end(ep, outcome)
		ep.mu.Unlock()
		if err := ep.written.save(ep); err != nil {
			ep.m.o.Log.Warn("the transcript of an episode was not written", "episode", ep.id, "error", err)
		}
		ep.m.count(ep, outcome, reason)
		ep.m.leave(ep)
		if ep.m.o.Metrics != nil {
			ep.m.o.Metrics.EpisodeEnded(ep.env.name, outcome, reason)
		}
	})
}

// reset makes the reset call.
func (ep *Episode) reset(ctx context.Context) error {
	if ep.env.Reset.Tool == "" {
		return nil
	}
	res, err := ep.own(ctx, ep.env.Reset.Tool, ep.env.Reset.Arguments)
	if err != nil {
		return err
	}
	if res.ToolError {
		return schema.Errorf(schema.KindUnavailable, "The reset tool %s answered with an error, so the episode did not begin.", ep.env.Reset.Tool)
	}
	return nil
}

// own makes a call for the environment, which does not count as a step. It returns an error if the
// policy holds the call.
func (ep *Episode) own(ctx context.Context, tool string, arguments map[string]any) (*schema.Result, error) {
	server, name, _ := strings.Cut(tool, "/")
	raw := []byte("{}")
	if arguments != nil {
		var err error
		if raw, err = json.Marshal(arguments); err != nil {
			return nil, schema.Errorf(schema.KindInternal, "The arguments of %s cannot be written as JSON: %w", tool, err)
		}
	}
	call := ep.call(schema.ServerID(server), name, raw)
	out, err := ep.m.o.Calls.Submit(ctx, calls.Request{Call: call})
	switch {
	case err != nil:
		return nil, err
	case out.Result == nil:
		if out.Held != nil {
			_, _ = ep.m.o.Calls.Cancel(ctx, out.Held.CallID, ep.who) // on failure, the held call expires
		}
		return nil, schema.Errorf(schema.KindUnavailable, "The policy holds %s, which the environment calls by itself; allow it there.", tool)
	}
	return out.Result, nil
}

// call returns a call of the episode.
func (ep *Episode) call(server schema.ServerID, tool string, arguments []byte) *schema.Call {
	return &schema.Call{
		ID: schema.NewCallID(), Server: server, Tool: tool, Arguments: arguments, Principal: ep.who, Timeout: ep.env.Limits.CallTime,
		Trace: ep.spans.at, Session: ep.key, Clock: ep.env.Clock, Seed: seedOf(ep), Lease: ep.leases[server], Fresh: ep.leases != nil, NoStore: ep.leases != nil,
	}
}

// seedOf returns the seed to send with each call, or "" for none: processes that belong to one
// episode get the seed when they start.
func seedOf(ep *Episode) string {
	if !ep.env.State.Seed || ep.env.OwnFiles() {
		return ""
	}
	return strconv.FormatInt(ep.seed, 10)
}
