package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// sessionQueue is large enough for all lanes that wait for a slot of the session.
const sessionQueue = 10_000

// sessionTarget is our own session on the pipes of the server, without a fabric.
// Its CPU time is part of the generator's.
type sessionTarget struct {
	launcher *launch.Launcher
	pool     *session.Pool
	pid      int
}

// startSession starts the server with the command line in a pool of one session.
func startSession(ctx context.Context, command []string, log *slog.Logger) (*sessionTarget, error) {
	launcher, err := launch.New(log)
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	t := &sessionTarget{launcher: launcher}
	t.pool = session.Open(session.Config{
		Spec:     launch.Spec{ID: serverID, Type: "stdio", Command: command[0], Args: command[1:]},
		Sessions: 1,
		Queue:    sessionQueue,
	}, launcher, log, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err := t.ready(ctx, changed); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// ready waits for the session.
func (t *sessionTarget) ready(ctx context.Context, changed <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		now := t.pool.Snapshot()
		switch {
		case now.State == schema.StateInitialized && now.PID != 0:
			t.pid = now.PID
			return nil
		case now.State == schema.StateError || now.State == schema.StateTimeout:
			return fmt.Errorf("opening our session to the server: %s", now.Error)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("opening our session to the server: %w", ctx.Err())
		}
	}
}

func (t *sessionTarget) Name() string         { return DirectSession }
func (t *sessionTarget) PIDs() map[string]int { return map[string]int{toolServer: t.pid} }

func (t *sessionTarget) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return errors.Join(t.pool.Close(ctx), t.launcher.Close())
}

func (t *sessionTarget) Dial(ctx context.Context, n, size int) (Lane, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	l := &sessionLane{ctx: ctx, pool: t.pool, outcomes: make(chan session.Outcome, 1)}
	l.request = session.Request{CallID: schema.CallID(fmt.Sprintf("bench-%d", n)), Method: schema.MethodCallTool, Name: toolName, Timeout: time.Minute}
	l.request.Params, l.message = echoArguments("", "", n, size)
	l.done = func(_ *session.Request, o session.Outcome) { l.outcomes <- o }
	return l, nil
}

type sessionLane struct {
	ctx      context.Context // the lifetime of the lane, see Target.Dial
	pool     *session.Pool
	request  session.Request
	message  *message // inside request.Params
	outcomes chan session.Outcome
	done     func(*session.Request, session.Outcome)
}

func (l *sessionLane) Call() error {
	l.message.next()
	running := l.pool.Do(&l.request, l.done)
	var o session.Outcome
	select {
	case o = <-l.outcomes:
	case <-l.ctx.Done():
		running.Cancel()
		o = <-l.outcomes
	}
	switch {
	case o.Err != nil:
		return o.Err
	case o.ToolError:
		return errTool
	}
	return l.message.in(o.Body)
}

func (l *sessionLane) Close() error { return nil }
