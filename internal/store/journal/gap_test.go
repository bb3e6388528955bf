package journal_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// Damage to the files of NATS takes records away. What is known of the calls without
// them, from the manifest and from results, is not forgotten, and reading says so instead
// of waiting for them.
func TestLostCallRecordsAreReportedNotWaitedFor(t *testing.T) {
	ctx := context.Background()
	server := bustest.Start(t)
	conn, err := bus.Connect(ctx, bus.Options{URL: server.URL, Name: "test", Log: slog.New(slog.DiscardHandler)})
	ok(t, err)
	t.Cleanup(conn.Close)
	s := open(t, conn, journal.Options{})
	id, w := begin(t, s)
	for i := range 3 {
		_, err := w.Append(ctx, calls(2*i, 2))
		ok(t, err)
	}
	_, err = w.Seal(ctx)
	ok(t, err)
	o := claim(t, s, id)
	ok(t, o.Results(ctx, done(0)))
	ok(t, o.Release(ctx))
	stream, err := bustest.JetStream(t, server.URL).Stream(ctx, "callyard_calls")
	ok(t, err)

	ok(t, stream.Purge(ctx, jetstream.WithPurgeSequence(3))) // the messages with the calls 0 to 3
	_, err = s.Calls(ctx, schema.DefaultTenant, id, 1, 10)
	var gap *journal.GapError
	if !errors.As(err, &gap) || gap.First != 1 || gap.Next != 4 {
		t.Fatalf("reading call 1 says: %v", err)
	}
	kind(t, err, schema.KindOutcomeUnknown)
	if found, err := s.Calls(ctx, schema.DefaultTenant, id, 4, 10); err != nil || len(found) != 2 {
		t.Errorf("%d calls are left: %v", len(found), err)
	}
	o = claim(t, s, id)
	if _, err := o.Read(ctx, 0, 10); !errors.As(err, &gap) || gap.First != 0 || gap.Next != 4 {
		t.Errorf("reading from the beginning says: %v", err)
	}
	ok(t, o.Release(ctx))

	ok(t, stream.Purge(ctx))
	o = claim(t, s, id)
	if n := o.Progress().Accepted(); n != 6 {
		t.Errorf("of 6 calls %d are known", n)
	}
	if !o.Progress().Ended(0) || o.Progress().Next(0) != 1 {
		t.Error("the result of a call is forgotten with its record")
	}
	m, err := s.Get(ctx, schema.DefaultTenant, id)
	ok(t, err)
	if whole, err := s.Complete(ctx, m); err != nil || whole {
		t.Errorf("results of 6 calls are there: %v, %v", whole, err)
	}
}
