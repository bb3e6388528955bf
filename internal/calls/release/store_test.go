package release

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// The front door alone knows the outcome of a call that it has run. If it gave up, the call would
// count as unknown although its tool had answered.
func TestAnOutcomeIsStoredAfterALongOutageOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		back := time.Now().Add(10 * time.Minute)
		tries := 0
		err := untilStored(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), func(ctx context.Context) error {
			tries++
			if time.Now().Before(back) {
				<-ctx.Done() // a write to a failed NATS node gets no answer
				return schema.Errorf(schema.KindUnavailable, "no answer: %w", ctx.Err())
			}
			return nil
		})
		if err != nil || time.Now().Before(back) {
			t.Errorf("given up after %d attempts: %v", tries, err)
		}
		if n := strings.Count(log.String(), "could not be recorded yet"); n != 1 {
			t.Errorf("the log has %d warnings, want 1:\n%s", n, log.String())
		}
	})
}

func TestStoringAnOutcomeEndsWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := untilStored(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
			return schema.Errorf(schema.KindUnavailable, "the disk is full")
		})
		if err == nil || ctx.Err() == nil {
			t.Errorf("ended with %v before the process did", err)
		}
	})
}

func TestAnOutcomeIsStoredOnceIfAReplyIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers = []error{schema.Errorf(schema.KindUnavailable, "no answer"), schema.Errorf(schema.KindConflict, "it has ended")}
		err := untilStored(t.Context(), slog.New(slog.DiscardHandler), func(context.Context) error {
			next := answers[0]
			answers = answers[1:]
			return next
		})
		if err != nil || len(answers) != 0 {
			t.Errorf("%v, %d answers left", err, len(answers))
		}
		// A cluster that still stores the first attempt refuses the next one.
		answers = []error{schema.Errorf(schema.KindUnavailable, "no answer"), schema.Errorf(schema.KindConflict, "too many concurrent changes").RetryableAfter(0), nil}
		if err := untilStored(t.Context(), slog.New(slog.DiscardHandler), func(context.Context) error {
			next := answers[0]
			answers = answers[1:]
			return next
		}); err != nil || len(answers) != 0 {
			t.Errorf("%v, %d answers left", err, len(answers))
		}
		first := schema.Errorf(schema.KindConflict, "it has ended")
		if err := untilStored(t.Context(), slog.New(slog.DiscardHandler), func(context.Context) error { return first }); !errors.Is(err, first) {
			t.Errorf("a conflict at the first attempt: %v", err)
		}
	})
}
