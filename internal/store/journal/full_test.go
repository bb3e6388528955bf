package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// TestNoJournalIsCreatedWhileItsCallsCannotBeStored moves the stream of calls to another subject,
// so that each write to it fails, as on a full disk. The stream of manifests still accepts writes.
func TestNoJournalIsCreatedWhileItsCallsCannotBeStored(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	s := p.connect(t, journal.Options{})
	nc, err := nats.Connect("", nats.InProcessServer(p.s))
	ok(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ok(t, err)
	stream, err := js.Stream(t.Context(), bus.StreamCalls)
	ok(t, err)
	moved := stream.CachedInfo().Config
	moved.Subjects = []string{"elsewhere"}
	_, err = js.UpdateStream(t.Context(), moved)
	ok(t, err)
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		w, err := s.Begin(t.Context(), batch())
		if errors.Is(err, bus.ErrNotStoring) {
			break
		}
		ok(t, err)
		soon, cancel := context.WithTimeout(t.Context(), time.Second) // a write that fails is repeated
		if _, err := w.Append(soon, calls(0, 1)); err == nil {
			t.Fatal("a call was stored while writes fail")
		}
		cancel()
		w.Close()
		select {
		case <-again.C:
		case <-late.C:
			t.Fatal("journals are still created")
		}
	}
	open := func() (n int) {
		s.EachOpen(schema.AllTenants(), func(*journal.Manifest) { n++ })
		return n
	}
	before := open()
	if err := s.Create(t.Context(), batch()); schema.KindOf(err) != schema.KindUnavailable || !errors.Is(err, bus.ErrNotStoring) {
		t.Errorf("a journal was created: %v", err)
	}
	if n := open(); n != before {
		t.Errorf("%d journals are open, want %d", n, before)
	}
}

// A call whose result is large could not end while the stream of large results is full.
func TestNoCallIsStoredWhileLargeResultsCannotBeStored(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	s := p.connect(t, journal.Options{})
	nc, err := nats.Connect("", nats.InProcessServer(p.s))
	ok(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ok(t, err)
	limit := func(most int64) {
		t.Helper()
		stream, err := js.Stream(t.Context(), bus.StreamObjects)
		ok(t, err)
		limited := stream.CachedInfo().Config
		limited.MaxBytes = most
		_, err = js.UpdateStream(t.Context(), limited)
		ok(t, err)
	}
	limit(1) // the operator gave it less space than it uses
	_, w := begin(t, s)
	_, err = w.Append(t.Context(), calls(0, 1))
	kind(t, err, schema.KindUnavailable)
	limit(-1)
	_, err = w.Append(t.Context(), calls(0, 1))
	ok(t, err)
}
