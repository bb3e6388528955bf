package calls

import (
	"log/slog"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// The end of a held call is announced once. Whoever is told reads the call, maybe from a replica that lags.
func TestEndOfAHeldCallIsKnownWhileAReplicaLags(t *testing.T) {
	srv := bustest.Start(t)
	book, err := ledger.Open(t.Context(), srv.Connect(t, "front"), ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	who := schema.Principal{Name: "ci"}
	a := &ledger.Approval{CallID: schema.NewCallID(), Binding: ledger.Binding{Requester: ledger.Requester{Name: who.Name}}, Expires: time.Now().Add(time.Hour), CallbackURL: "https://example.com/"}
	if _, err := book.Create(t.Context(), a, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Change(t.Context(), "", a.ID, func(a *ledger.Approval) error {
		a.State, a.Ended = ledger.Denied, time.Now()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	srv.Lag(t, bus.StreamLedger+"."+bus.SubjectApproval+bus.Token(a.ID)+bus.SuffixState)
	if old, _, err := book.ByCall(t.Context(), schema.AllTenants(), a.CallID); err != nil || old.State != ledger.Pending {
		t.Fatalf("no replica lags: %+v, %v", old, err)
	}
	c := New(Options{Ledger: book})
	if s, err := c.Get(t.Context(), a.CallID, who); err != nil || s.State != schema.StateDenied {
		t.Errorf("%+v, %v", s, err)
	}
	var told []schema.State
	if err := c.TellCallback(t.Context(), a.ID, func(s *Status, _ string) error {
		told = append(told, s.State)
		return nil
	}); err != nil || len(told) != 1 || told[0] != schema.StateDenied {
		t.Errorf("%v, %v", told, err)
	}
}
