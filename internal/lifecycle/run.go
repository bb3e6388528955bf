package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Run starts the parts in order, waits for SIGINT, SIGTERM, the end of ctx or the failure of a
// part, and stops the started parts in reverse order.
//
// It returns nil if the run ended on request and every part stopped in time. Otherwise the error
// names each part that could not start, failed, failed to stop, or did not stop within its grace
// period. See [ExitCode].
func Run(ctx context.Context, log *slog.Logger, parts ...Part) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return RunSignals(ctx, log, signals, parts...)
}

// RunSignals is [Run] with signals from a channel: the first requests a stop, the second ends the
// run at once.
func RunSignals(ctx context.Context, log *slog.Logger, signals <-chan os.Signal, parts ...Part) error {
	r := run{ctx: ctx, log: log, signals: signals}
	defer r.endParts()

	failed, unwatch := watch(parts)
	cause := r.startAll(parts, failed)
	if cause == nil {
		cause = r.wait(failed)
	}
	unwatch()
	if errors.Is(cause, errAsked) {
		cause = nil
	}
	return errors.Join(cause, r.stopAll())
}

// errAsked ends a run that was requested to stop.
var errAsked = errors.New("asked to stop")

type run struct {
	ctx     context.Context // its end requests a stop
	log     *slog.Logger
	signals <-chan os.Signal
	asked   bool // a first signal was received
	forced  *Forced
	started []Part
	ends    []context.CancelFunc // cancel functions of the parts' contexts
}

func (r *run) endParts() {
	for _, end := range r.ends {
		end()
	}
}

// watch merges the failures of all parts into one channel. The returned function stops watching and
// waits until that is done.
func watch(parts []Part) (<-chan error, func()) {
	var (
		wg     sync.WaitGroup
		done   = make(chan struct{})
		failed = make(chan error)
	)
	for _, p := range parts {
		if p.Failed == nil {
			continue
		}
		wg.Go(func() {
			select {
			case err := <-p.Failed:
				if err == nil {
					err = errors.New("it ended unexpectedly")
				}
				select {
				case failed <- fmt.Errorf("%s failed: %w", p.Name, err):
				case <-done:
				}
			case <-done:
			}
		})
	}
	return failed, func() { close(done); wg.Wait() }
}

// startAll starts parts until one cannot start or the run should stop.
func (r *run) startAll(parts []Part, failed <-chan error) error {
	for _, p := range parts {
		if r.ctx.Err() != nil {
			r.log.Info("stopping: the context ended")
			return errAsked
		}
		if err := r.start(p, failed); err != nil {
			return err
		}
	}
	return nil
}

// start starts one part. If the run should stop in the meantime, start cancels the part's context and
// waits for Start to return. A Start that succeeds nevertheless is one more part to stop.
func (r *run) start(p Part, failed <-chan error) error {
	if p.Start == nil {
		r.started = append(r.started, p)
		return nil
	}
	begin := time.Now()
	r.log.Debug("starting", "part", p.Name)
	// The context outlives the caller's, so that a part that keeps it can drain.
	ctx, end := context.WithCancel(context.WithoutCancel(r.ctx))
	r.ends = append(r.ends, end)
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()

	var cause error
	for {
		stop := r.ctx.Done()
		watched := failed
		if cause != nil {
			stop, watched = nil, nil
		}
		select {
		case err := <-done:
			return r.began(p, err, cause, time.Since(begin))
		case <-stop:
			r.log.Info("stopping: the context ended", "starting", p.Name)
			cause = errAsked
			end()
		case err := <-watched:
			r.log.Error("stopping: a part failed", "error", err, "starting", p.Name)
			cause = err
			end()
		case s := <-r.signals:
			if r.signal(s, p.Name) {
				return cause
			}
			if cause == nil {
				cause = errAsked
			}
			end()
		}
	}
}

// began handles the return of Start. A Start that was cancelled is not itself an error.
func (r *run) began(p Part, err, cause error, took time.Duration) error {
	switch {
	case err == nil:
		r.started = append(r.started, p)
		r.log.Info("started", "part", p.Name, "took", took)
		return cause
	case cause != nil && errors.Is(err, context.Canceled):
		return cause
	}
	err = fmt.Errorf("%s did not start: %w", p.Name, err)
	r.log.Error("stopping: a part did not start", "error", err)
	if errors.Is(cause, errAsked) {
		return err
	}
	return errors.Join(cause, err)
}

// wait returns when the run should stop: with errAsked, or with the error of a failed part.
func (r *run) wait(failed <-chan error) error {
	r.log.Info("running", "parts", len(r.started))
	select {
	case <-r.ctx.Done():
		r.log.Info("stopping: the context ended")
		return errAsked
	case err := <-failed:
		r.log.Error("stopping: a part failed", "error", err)
		return err
	case s := <-r.signals:
		r.signal(s, "")
		return errAsked
	}
}

// signal handles a signal and reports whether the run ends at once.
func (r *run) signal(s os.Signal, waitingFor string) (atOnce bool) {
	if !r.asked {
		r.asked = true
		r.log.Info("stopping: received a signal; a second one stops the process immediately", "signal", s.String())
		return false
	}
	r.forced = &Forced{Signal: s, Part: waitingFor}
	r.log.Error("stopping immediately: received a second signal", "signal", s.String(), "part", waitingFor)
	return true
}

// stopAll stops the started parts in reverse order.
func (r *run) stopAll() error {
	var errs []error
	for i := len(r.started) - 1; i >= 0 && r.forced == nil; i-- {
		if err := r.stop(r.started[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if r.forced != nil {
		errs = append(errs, r.forced)
	}
	return errors.Join(errs...)
}

// stop stops one part within its grace period. A part that exceeds it is abandoned with its goroutine:
// the process is about to exit, and the other parts must still be stopped.
func (r *run) stop(p Part) error {
	if p.Stop == nil {
		return nil
	}
	begin := time.Now()
	r.log.Debug("stopping", "part", p.Name, "grace", p.grace())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), p.grace())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Stop(ctx) }()
	for {
		select {
		case err := <-done:
			return r.stopped(p, err, time.Since(begin))
		case <-ctx.Done():
			// A Stop that honours its context returns now, and may report its unfinished work.
			select {
			case err := <-done:
				return r.stopped(p, err, time.Since(begin))
			case <-time.After(settle):
				return r.stopped(p, context.DeadlineExceeded, time.Since(begin))
			}
		case s := <-r.signals:
			if r.signal(s, p.Name) {
				return nil
			}
		}
	}
}

// settle is the time that a Stop has to return once its context has ended.
const settle = 100 * time.Millisecond

func (r *run) stopped(p Part, err error, took time.Duration) error {
	switch {
	case err == nil:
		r.log.Info("stopped", "part", p.Name, "took", took)
		return nil
	case took >= p.grace() && errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s did not stop within its grace period of %v: %w", p.Name, p.grace(), err)
	default:
		err = fmt.Errorf("%s did not stop cleanly: %w", p.Name, err)
	}
	r.log.Error("did not stop cleanly", "part", p.Name, "error", err)
	return err
}
