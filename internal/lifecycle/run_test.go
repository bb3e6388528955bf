package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventLog records the events of parts, in order.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (d *eventLog) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *eventLog) want(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.lines); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func (d *eventLog) part(name string) Part {
	return Part{
		Name:  name,
		Start: func(context.Context) error { d.note("start %s", name); return nil },
		Stop:  func(context.Context) error { d.note("stop %s", name); return nil },
	}
}

// begin runs the parts in the background. The channel delivers the run's error.
func begin(ctx context.Context, parts ...Part) (chan<- os.Signal, <-chan error) {
	signals := make(chan os.Signal, 2)
	ended := make(chan error, 1)
	go func() { ended <- RunSignals(ctx, slog.New(slog.DiscardHandler), signals, parts...) }()
	synctest.Wait()
	return signals, ended
}

func TestPartsStartInOrderAndStopInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		signals, ended := begin(t.Context(), d.part("a"), d.part("b"), Part{Name: "nothing to do"}, d.part("c"))
		d.want(t, "start a", "start b", "start c")
		signals <- syscall.SIGTERM
		if err := <-ended; err != nil || ExitCode(err) != 0 {
			t.Errorf("ended with %v", err)
		}
		d.want(t, "start a", "start b", "start c", "stop c", "stop b", "stop a")
	})
}

func TestCanceledContextIsACleanStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		ctx, cancel := context.WithCancel(t.Context())
		var stopCtx error
		p := d.part("a")
		p.Stop = func(ctx context.Context) error { stopCtx = ctx.Err(); d.note("stop a"); return nil }
		_, ended := begin(ctx, p)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if stopCtx != nil {
			t.Errorf("Stop began with a context that had ended: %v", stopCtx)
		}
		d.want(t, "start a", "stop a")
	})
}

func TestCanceledContextStartsNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, ended := begin(ctx, d.part("a"))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		d.want(t)
	})
}

func TestFailedStartStopsThePartsAlreadyStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		broken := errors.New("no port")
		b := d.part("b")
		b.Start = func(context.Context) error { d.note("start b"); return broken }
		_, ended := begin(t.Context(), d.part("a"), b, d.part("c"))
		err := <-ended
		if !errors.Is(err, broken) || err.Error() != "b did not start: no port" || ExitCode(err) != 1 {
			t.Errorf("ended with %v", err)
		}
		d.want(t, "start a", "start b", "stop a")
	})
}

func TestAPartThatFailsStopsEverythingWithItsError(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(chan error)
		want string
	}{
		{"an error", func(c chan error) { c <- errors.New("lost") }, "b failed: lost"},
		{"closed", func(c chan error) { close(c) }, "b failed: it ended unexpectedly"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d eventLog
				failed := make(chan error)
				b := d.part("b")
				b.Failed = failed
				_, ended := begin(t.Context(), d.part("a"), b, d.part("c"))
				c.fail(failed)
				err := <-ended
				if err == nil || err.Error() != c.want || ExitCode(err) != 1 {
					t.Errorf("ended with %v", err)
				}
				d.want(t, "start a", "start b", "start c", "stop c", "stop b", "stop a")
			})
		})
	}
}

func TestFailureOfAPartCancelsTheStartInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		failed := make(chan error)
		a := d.part("a")
		a.Failed = failed
		b := d.part("b")
		b.Start = func(ctx context.Context) error { <-ctx.Done(); d.note("b gave up"); return ctx.Err() }
		_, ended := begin(t.Context(), a, b, d.part("c"))
		failed <- errors.New("lost")
		if err := <-ended; err == nil || err.Error() != "a failed: lost" {
			t.Errorf("ended with %v", err)
		}
		d.want(t, "start a", "b gave up", "stop a")
	})
}

func TestASignalWhileStartingCancelsThatStartOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		a := d.part("a")
		var held context.Context
		a.Start = func(ctx context.Context) error { held = ctx; return nil }
		a.Stop = func(context.Context) error { d.note("stop a, its context: %v", held.Err()); return nil }
		b := d.part("b")
		b.Start = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		signals, ended := begin(t.Context(), a, b)
		signals <- os.Interrupt
		if err := <-ended; err != nil {
			t.Error(err)
		}
		d.want(t, "stop a, its context: <nil>")
		if held.Err() == nil {
			t.Error("the part's context outlives the run")
		}
	})
}

func TestPartThatStartsDespiteCancelIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		a := d.part("a")
		a.Start = func(ctx context.Context) error { <-ctx.Done(); return nil }
		signals, ended := begin(t.Context(), a, d.part("b"))
		signals <- os.Interrupt
		if err := <-ended; err != nil {
			t.Error(err)
		}
		d.want(t, "stop a")
	})
}

func TestStartErrorDuringShutdownIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		a := d.part("a")
		a.Start = func(ctx context.Context) error { <-ctx.Done(); return errors.New("half done") }
		signals, ended := begin(t.Context(), a)
		signals <- os.Interrupt
		if err := <-ended; err == nil || err.Error() != "a did not start: half done" {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestPartOverItsGracePeriodIsNamedAndAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		hang := make(chan struct{})
		b := d.part("b")
		b.Grace = 3 * time.Second
		b.Stop = func(context.Context) error { <-hang; return nil }
		signals, ended := begin(t.Context(), d.part("a"), b, d.part("c"))
		begun := time.Now()
		signals <- syscall.SIGTERM
		err := <-ended
		if err == nil || !strings.HasPrefix(err.Error(), "b did not stop within its grace period of 3s") || ExitCode(err) != 1 {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(begun); took != 3*time.Second+settle {
			t.Errorf("took %v", took)
		}
		d.want(t, "start a", "start b", "start c", "stop c", "stop a")
		close(hang)
	})
}

func TestStopErrorAfterItsGracePeriodIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		a := d.part("a")
		a.Stop = func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("2 calls left: %w", ctx.Err())
		}
		signals, ended := begin(t.Context(), a)
		begun := time.Now()
		signals <- syscall.SIGTERM
		err := <-ended
		if err == nil || err.Error() != "a did not stop within its grace period of 10s: 2 calls left: context deadline exceeded" {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(begun); took != DefaultGrace {
			t.Errorf("took %v", took)
		}
	})
}

func TestEveryFaultOfStoppingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		bad := func(name string) Part {
			p := d.part(name)
			p.Stop = func(context.Context) error { return errors.New("disk full") }
			return p
		}
		signals, ended := begin(t.Context(), bad("a"), bad("b"))
		signals <- syscall.SIGTERM
		if err := <-ended; err == nil || err.Error() != "b did not stop cleanly: disk full\na did not stop cleanly: disk full" {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestASecondSignalEndsTheRunAtOnce(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		synctest.Test(t, func(t *testing.T) {
			var d eventLog
			hang := make(chan struct{})
			b := d.part("b")
			b.Stop = func(context.Context) error { <-hang; return nil }
			signals, ended := begin(t.Context(), d.part("a"), b)
			begun := time.Now()
			signals <- syscall.SIGTERM
			synctest.Wait()
			signals <- c.signal
			err := <-ended
			var forced *Forced
			if !errors.As(err, &forced) || forced.Part != "b" || ExitCode(err) != c.code {
				t.Errorf("ended with %v, code %d", err, ExitCode(err))
			}
			if took := time.Since(begun); took != 0 {
				t.Errorf("took %v", took)
			}
			d.want(t, "start a", "start b")
			close(hang)
		})
	}
}

func TestASecondSignalEndsARunThatHangsWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d eventLog
		hang := make(chan struct{})
		b := d.part("b")
		b.Start = func(context.Context) error { <-hang; return nil }
		signals, ended := begin(t.Context(), d.part("a"), b, d.part("c"))
		signals <- os.Interrupt
		synctest.Wait()
		signals <- os.Interrupt
		if err := <-ended; ExitCode(err) != 130 {
			t.Errorf("ended with %v", err)
		}
		d.want(t, "start a")
		close(hang)
	})
}

// TestRunHandlesRealSignals is the one test without an injected channel.
func TestRunHandlesRealSignals(t *testing.T) {
	var d eventLog
	up := Part{Name: "up", Start: func(context.Context) error { return syscall.Kill(os.Getpid(), syscall.SIGTERM) }}
	if err := Run(t.Context(), slog.New(slog.DiscardHandler), d.part("a"), up); err != nil {
		t.Error(err)
	}
	d.want(t, "start a", "stop a")
}
