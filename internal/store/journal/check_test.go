package journal_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// Without a seal, records that are lost are known from those that name them.
func TestReferencesToLostRecordsAreReported(t *testing.T) {
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	fill := func(t *testing.T) (*bus.Conn, *bustest.Server) {
		server := bustest.Start(t)
		conn, err := bus.Connect(ctx, bus.Options{URL: server.URL, Name: "test", Log: quiet})
		ok(t, err)
		t.Cleanup(conn.Close)
		s := open(t, conn, journal.Options{})
		m := &journal.Manifest{Kind: journal.Lane, Expires: time.Now().Add(time.Hour)}
		w, err := s.Begin(ctx, m)
		ok(t, err)
		hash := journal.KeyHash(schema.PrincipalID{Name: "ann"}, "key")
		for i := range 3 {
			c := journal.CallRecord{Server: "bank", Tool: "pay", Accepted: time.Now(), Key: hash}
			if i > 0 {
				c.Key = ""
			}
			_, err := w.Append(ctx, []journal.CallRecord{c})
			ok(t, err)
		}
		_, _, err = s.Remember(ctx, hash, journal.Entry{CallID: "call", Journal: m.ID}, time.Hour)
		ok(t, err)
		_, err = w.Seal(ctx)
		ok(t, err)
		o := claim(t, s, m.ID)
		for i := range 3 {
			ok(t, o.Intend(ctx, journal.Intent(uint64(i), 1, "w")))
			r := done(i)
			r.Worker = "w"
			ok(t, o.Results(ctx, r))
		}
		_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.State = journal.Running; return nil })
		ok(t, err)
		_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
		ok(t, err)
		ok(t, o.Release(ctx))
		return conn, server
	}
	for name, c := range map[string]struct {
		stream string
		keep   uint64 // the first sequence that is left
		says   string
	}{
		"nothing is lost":   {},
		"calls":             {"callyard_calls", 0, "has 3 calls, but 0 are stored"},
		"the first calls":   {"callyard_calls", 3, "before the sequence 3"},
		"intents":           {"callyard_intents", 0, "but the intent"},
		"results":           {"callyard_results", 0, "its call 0 has no result"},
		"the first results": {"callyard_results", 3, "before the sequence 3"},
		"manifests":         {"callyard_journals", 0, "but the journal is missing"},
		"keys":              {"callyard_keys", 0, "with an idempotency key that is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, server := fill(t)
			if c.stream != "" {
				stream, err := bustest.JetStream(t, server.URL).Stream(ctx, c.stream)
				ok(t, err)
				var opts []jetstream.StreamPurgeOpt
				if c.keep > 0 {
					opts = append(opts, jetstream.WithPurgeSequence(c.keep))
				}
				ok(t, stream.Purge(ctx, opts...))
			}
			found, err := journal.Check(ctx, conn, time.Time{}, quiet)
			ok(t, err)
			said := ""
			for _, f := range found.Faults {
				said += f.String() + "\n"
				if f.Stream != c.stream {
					t.Errorf("the fault is said to be of %s: %s", f.Stream, f)
				}
			}
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("%q", said)
			}
			if lost := len(found.Keys); lost != 0 != (name == "keys") {
				t.Errorf("%d keys are said to be lost", lost)
			}
			if found, err = journal.Check(ctx, conn, time.Now(), quiet); err != nil || len(found.Faults) > 0 {
				t.Errorf("from before an accepted loss: %v %v", found.Faults, err)
			}
		})
	}
}

// A probe stays in its stream after a full disk.
func TestProbesOfWritesAreNoDamage(t *testing.T) {
	server := bustest.Start(t)
	conn := server.Connect(t, "test")
	s := open(t, conn, journal.Options{})
	_, w := begin(t, s)
	_, err := w.Append(t.Context(), calls(0, 1))
	ok(t, err)
	js := bustest.JetStream(t, server.URL)
	for _, spec := range (journal.Options{}).Streams() {
		_, err := js.Publish(t.Context(), spec.Probe, nil)
		ok(t, err)
	}
	found, err := journal.Check(t.Context(), conn, time.Time{}, slog.New(slog.DiscardHandler))
	ok(t, err)
	if len(found.Faults) > 0 || len(found.Keys) > 0 {
		t.Errorf("found %+v", found)
	}
}
