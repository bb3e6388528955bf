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

// Run starts the parts in order, waits for SIGINT, SIGTERM, the end of ctx or
// the failure of a part, and stops what was started in reverse order.
//
// It returns nil when the run ended because it was asked to and every part
// stopped in time. Otherwise the error names each part that could not start,
// failed, failed to stop, or did not stop in its grace. See [ExitCode].
func Run(ctx context.Context, log *slog.Logger, parts ...Part) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return RunSignals(ctx, log, signals, parts...)
}

// RunSignals is [Run] with the signals from a channel: the first asks for a
// stop, the second ends the run at once.
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

// errAsked ends a run that is to stop because somebody said so.
var errAsked = errors.New("asked to stop")

type run struct {
	ctx     context.Context // its end asks for a stop
	log     *slog.Logger
	signals <-chan os.Signal
	asked   bool // a first signal came
	forced  *Forced
	started []Part
	ends    []context.CancelFunc // of what parts got as their context
}

func (r *run) endParts() {
	for _, end := range r.ends {
		end()
	}
}

// watch gathers the failures of all parts. The function it returns ends the
// watching and waits for that.
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

// startAll starts parts until one cannot start or the run is to stop.
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

// start starts one part. When the run is to stop meanwhile, the part's context is
// cancelled and its answer awaited: a Start that succeeds all the same is one
// more part to stop.
func (r *run) start(p Part, failed <-chan error) error {
	if p.Start == nil {
		r.started = append(r.started, p)
		return nil
	}
	begin := time.Now()
	r.log.Debug("starting", "part", p.Name)
	// The context outlives the caller's, so that a part that holds on to it can drain.
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

// began takes note of what Start returned. A Start that gave up because it was
// cancelled has no fault of its own.
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

// wait returns when the run is to stop: errAsked, or the error of a failed part.
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

// signal takes note of a signal and says whether the run ends at once.
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

// stopAll stops what was started, last first.
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

// stop stops one part, for as long as its grace lasts. A part that is over its
// grace is left behind with its goroutine: the process is about to exit, and the
// other parts still want their turn.
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
			// A Stop that heeds its context returns now, and may say what it left.
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

// settle is what a Stop gets to return once its context has ended.
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
