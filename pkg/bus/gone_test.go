package bus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// An operator can remove a stream while processes use it, or restore an older one.
func TestWatchReadsAStreamThatWasCreatedAgain(t *testing.T) {
	srv := bustest.Start(t)
	reader, err := openSwitches(t.Context(), srv.Connect(t, "reader"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	put := func(table *bus.Table[toolSwitch], tool, reason string) {
		t.Helper()
		if err := table.Put(t.Context(), toolSwitch{Server: "s", Tool: tool, Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(tool, reason string) {
		t.Helper()
		until(t, "the reader sees "+reason+" of "+tool, func() bool {
			s, _ := reader.Get(switchKey("s", tool))
			return s.Reason == reason
		})
	}
	before, err := openSwitches(t.Context(), srv.Connect(t, "writer"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(before.Close)
	for range 20 {
		put(before, "a", "first")
	}
	put(before, "a", "last")
	sees("a", "last")
	if err := bustest.JetStream(t, srv.URL).DeleteKeyValue(t.Context(), bus.BucketSwitches); err != nil {
		t.Fatal(err)
	}
	after, err := openSwitches(t.Context(), srv.Connect(t, "another writer"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(after.Close)
	put(after, "a", "again")
	put(after, "b", "new")
	sees("a", "again")
	sees("b", "new")
}

func TestMissingStreamIsReportedUntilItIsCreated(t *testing.T) {
	srv := bustest.Start(t)
	const subject = bus.SubjectKey + "one"
	spec := bus.StreamSpec{Name: bus.StreamKeys, What: "idempotency keys", Subjects: []string{bus.SubjectKey + "*"}, Probe: bus.SubjectKey + bus.ProbeToken}
	c := srv.Connect(t, "frontdoor")
	s, err := bus.OpenStream(t.Context(), c, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Last(t.Context(), subject, bus.Leader); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("an empty stream: %v", err)
	}
	if err := bustest.JetStream(t, srv.URL).DeleteStream(t.Context(), bus.StreamKeys); err != nil {
		t.Fatal(err)
	}
	// Writers of durable records read first, so they never get to a write.
	if _, err := s.Last(t.Context(), subject, bus.Leader); err == nil || errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("a stream that was removed: %v", err)
	}
	until(t, "the connection reports that the stream is missing", func() bool {
		err := c.Storing()
		return err != nil && strings.Contains(err.Error(), "callyard init")
	})
	if _, err := bus.OpenStream(t.Context(), c, spec); err != nil {
		t.Fatal(err)
	}
	until(t, "the connection reports that NATS stores again", func() bool { return c.Storing() == nil })
}

// until waits until the condition, which what names, is met.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	late, tick := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer late.Stop()
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
