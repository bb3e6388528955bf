package ledger_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// unended returns the states of the approvals that have not ended, and checks that all readers agree.
func unended(t *testing.T, l *ledger.Ledger, of schema.Tenants) map[schema.ApprovalID]ledger.State {
	t.Helper()
	got, want := map[schema.ApprovalID]ledger.State{}, map[schema.ApprovalID]ledger.State{}
	l.EachUnended(of, func(a *ledger.Approval) { got[a.ID] = a.State })
	l.Each(of, func(a *ledger.Approval) {
		if !a.State.Ended() {
			want[a.ID] = a.State
		}
	})
	listed, _ := l.List(of, ledger.Filter{States: []ledger.State{ledger.Pending, ledger.Approved, ledger.Running}}, ledger.Cursor{})
	if !maps.Equal(got, want) || len(listed) != len(want) {
		t.Fatalf("%v, and %d are listed, want %v", got, len(listed), want)
	}
	return got
}

func TestUnendedApprovals(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "test")
	l := open(t, conn, ledger.Options{MaxEnded: 2})
	change := func(a *ledger.Approval, state ledger.State) {
		t.Helper()
		if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, to(state)); err != nil {
			t.Fatal(err)
		}
	}
	waits, runs := create(t, l, "{}"), create(t, l, "{}")
	change(runs, ledger.Running)
	for range 4 { // more than the view keeps
		change(create(t, l, "{}"), ledger.Denied)
	}
	want := map[schema.ApprovalID]ledger.State{waits.ID: ledger.Pending, runs.ID: ledger.Running}
	if got := unended(t, l, schema.AllTenants()); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := unended(t, open(t, conn, ledger.Options{MaxEnded: 2}), schema.AllTenants()); !maps.Equal(got, want) {
		t.Errorf("another process: %v, want %v", got, want)
	}
	if got := unended(t, l, schema.OnlyTenant("blue")); len(got) != 0 {
		t.Errorf("another tenant sees %v", got)
	}
	change(runs, ledger.Unknown)
	change(waits, ledger.Canceled)
	change(runs, ledger.Succeeded) // a late outcome
	if got := slices.Collect(maps.Keys(unended(t, l, schema.AllTenants()))); len(got) != 0 {
		t.Errorf("%v have ended", got)
	}
}
