package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestPatienceEndsWithoutProgressAndContinuesWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := bus.WithPatience(t.Context(), time.Minute)
		defer cancel()
		derived, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		for range 5 {
			time.Sleep(50 * time.Second)
			bus.Progressed(derived)
		}
		if err := ctx.Err(); err != nil {
			t.Fatalf("it ended despite progress: %v", err)
		}
		<-derived.Done()
		if after := time.Since(begun); after != 5*50*time.Second+time.Minute || !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(derived.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended after %v with %v and %v", after, ctx.Err(), derived.Err())
		}
		bus.Progressed(ctx) // too late
		if ctx.Err() == nil {
			t.Error("it began again")
		}
	})
}

func TestPatienceEndsWithItsParentAndWithCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		ctx, cancel := bus.WithPatience(parent, time.Minute)
		defer cancel()
		end()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("with its parent: %v", ctx.Err())
		}
		ctx, cancel = bus.WithPatience(t.Context(), time.Minute)
		cancel()
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("with cancel: %v", ctx.Err())
		}
	})
}

func TestEachStoredMessageThatAWatchReadsIsProgress(t *testing.T) {
	c := bustest.Start(t).Connect(t, "test")
	s, err := bus.OpenStream(t.Context(), c, bus.StreamSpec{Name: bus.StreamExecutions, What: "call records", Subjects: []string{bus.SubjectRecord + "*.*"}, Logs: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := s.Put(t.Context(), bus.Message{Subject: bus.SubjectRecord + "0.1", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	var progress atomic.Int64
	w, err := s.Watch(bus.WithProgress(t.Context(), func() { progress.Add(1) }), bus.SubjectRecord+"*.*", func(bus.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if n := progress.Load(); n != 20 {
		t.Errorf("20 messages were %d times progress", n)
	}
}
