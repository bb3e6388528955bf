package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is an embedded server that syncs every write, and how to reach it.
type place struct {
	s   *embedded.Server
	log *slog.Logger
}

func newPlace(t testing.TB, o embedded.Options) *place {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &place{s, o.Log}
}

// connect opens a connection and the journals on it.
func (p *place) connect(t testing.TB, o journal.Options) *journal.Store {
	t.Helper()
	c, err := bus.Connect(context.Background(), bus.Options{InProcess: p.s, Name: "test", Log: p.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return open(t, c, o)
}

func open(t testing.TB, c *bus.Conn, o journal.Options) *journal.Store {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s, err := journal.Open(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func start(t testing.TB) *journal.Store {
	t.Helper()
	return newPlace(t, embedded.Options{}).connect(t, journal.Options{})
}

func batch() *journal.Manifest {
	return &journal.Manifest{Kind: journal.Batch, Principal: schema.Principal{Name: "ann"}, Expires: time.Now().Add(time.Hour)}
}

// begin makes a batch and its writer.
func begin(t testing.TB, s *journal.Store) (schema.BatchID, *journal.Writer) {
	t.Helper()
	m := batch()
	w, err := s.Begin(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return m.ID, w
}

func claim(t testing.TB, s *journal.Store, id schema.BatchID) *journal.Owned {
	t.Helper()
	o, err := s.Claim(context.Background(), schema.DefaultTenant, id, "fd-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// calls returns n calls that carry their index.
func calls(from, n int) []journal.CallRecord {
	rs := make([]journal.CallRecord, n)
	for i := range rs {
		rs[i] = journal.CallRecord{CustomID: fmt.Sprint(from + i), Server: "bank", Tool: "pay", Arguments: fmt.Appendf(nil, `{"n":%d}`, from+i)}
	}
	return rs
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(t testing.TB, err error, want schema.Kind) {
	t.Helper()
	if schema.KindOf(err) != want {
		t.Fatalf("the error is of kind %q, not %q: %v", schema.KindOf(err), want, err)
	}
}

func done(i int) journal.ResultRecord {
	return journal.ResultRecord{Index: uint64(i), Outcome: journal.Succeeded, Attempt: 1, CustomID: fmt.Sprint(i), Body: fmt.Appendf(nil, `{"r":%d}`, i)}
}
