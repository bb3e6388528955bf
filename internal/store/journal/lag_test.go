package journal_test

import (
	"testing"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// A replica that was frozen or has just started lacks the last messages. Results that it does not have
// must not be missing in the answer, which looks complete.
func TestResultsAreReadPastAReplicaThatLags(t *testing.T) {
	ctx := t.Context()
	server := bustest.Start(t)
	s := open(t, server.Connect(t, "test"), journal.Options{})
	id, w := begin(t, s)
	_, err := w.Append(ctx, calls(0, 2))
	ok(t, err)
	_, err = w.Seal(ctx)
	ok(t, err)
	o := claim(t, s, id)
	ok(t, o.Results(ctx, done(0)))
	ok(t, o.Results(ctx, done(1)))
	_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
	ok(t, err)

	server.Lag(t, "callyard_results")
	var found []uint64
	for after := (journal.Cursor{}); ; {
		page, next, err := s.Results(ctx, schema.DefaultTenant, id, after, 10)
		ok(t, err)
		if len(page) == 0 {
			break
		}
		for i := range page {
			found = append(found, page[i].Index)
		}
		after = next
	}
	if len(found) != 2 || found[0] != 0 || found[1] != 1 {
		t.Errorf("the results are those of the calls %v, want 0 and 1", found)
	}
	if r, err := s.FindResult(ctx, schema.DefaultTenant, id, 1, journal.Cursor{}); err != nil || r.Index != 1 {
		t.Errorf("the result of call 1 is %+v: %v", r, err)
	}
}

func TestCallsAreFoundPastAReplicaThatLags(t *testing.T) {
	server := bustest.Start(t)
	s := open(t, server.Connect(t, "test"), journal.Options{})
	id, w := begin(t, s)
	for i := range 2 {
		_, err := w.Append(t.Context(), calls(i, 1))
		ok(t, err)
	}
	server.Lag(t, "callyard_calls")
	for i := range uint64(2) {
		if c, err := s.FindCall(t.Context(), schema.AllTenants(), id, i); err != nil || c.Index != i {
			t.Errorf("call %d: %+v, %v", i, c, err)
		}
	}
	if _, err := s.FindCall(t.Context(), schema.AllTenants(), id, 2); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("a call that does not exist: %v", err)
	}
}
