package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// hourly is a fabric in which the tenant red keeps payloads for an hour.
var hourly = retention.Periods{"red": time.Hour}

// overdue are the ids of the journals that are to be forgotten at a time.
func overdue(s *journal.Store, now time.Time) (ids []schema.BatchID) {
	for _, o := range s.Payloads.Overdue(now) {
		ids = append(ids, o.ID)
	}
	return ids
}

// storeSecrets stores a journal of the tenant that has ended, with arguments and results that
// contain its id: one of each in the log, and one of each outside.
func storeSecrets(t *testing.T, s *journal.Store, m *journal.Manifest) {
	t.Helper()
	ctx := t.Context()
	w, err := s.Begin(ctx, m)
	ok(t, err)
	large := []byte(strings.Repeat(" ", 300<<10) + "secret of " + string(m.ID))
	cs, rs := calls(0, 2), []journal.ResultRecord{done(0), done(1)}
	for i := range cs {
		cs[i].Principal = schema.Principal{Name: "ann", Tenant: m.Principal.Tenant}
		cs[i].Arguments, rs[i].Body = []byte("secret of "+m.ID), []byte("secret of "+m.ID)
	}
	cs[1].Arguments, rs[1].Body = large, slices.Clone(large)
	_, err = w.Append(ctx, cs)
	ok(t, err)
	_, err = w.Seal(ctx)
	ok(t, err)
	o, err := s.Claim(ctx, m.Principal.Tenant, m.ID, "fd-1")
	ok(t, err)
	ok(t, o.Intend(ctx, journal.Intents([]uint64{0, 1}, 1, "w_1")))
	ok(t, o.Results(ctx, rs...))
	for _, f := range []func(*journal.Manifest) error{
		func(m *journal.Manifest) error { m.State = journal.Running; return nil },
		func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil },
	} {
		_, err = o.SetState(ctx, f)
		ok(t, err)
	}
	ok(t, o.Release(ctx))
}

func of(tenant schema.TenantID) *journal.Manifest {
	m := batch()
	m.Principal.Tenant = tenant
	return m
}

func connectTo(t *testing.T, server *bustest.Server, o journal.Options) (*bus.Conn, *journal.Store) {
	t.Helper()
	conn := server.Connect(t, "test")
	return conn, open(t, conn, o)
}

func TestJournalPayloadsAreDeletedAfterTenantRetention(t *testing.T) {
	ctx := t.Context()
	server := bustest.Start(t)
	conn, s := connectTo(t, server, journal.Options{Retention: hourly})
	_, far := connectTo(t, server, journal.Options{Retention: hourly})
	red, blue, runs := of("red"), of("blue"), of("red")
	storeSecrets(t, s, red)
	storeSecrets(t, s, blue)
	w, err := s.Begin(ctx, runs)
	ok(t, err)
	c := calls(0, 1)
	c[0].Arguments = []byte("secret of " + runs.ID)
	_, err = w.Append(ctx, c)
	ok(t, err)
	w.Close()

	late := time.Now().Add(time.Hour + time.Minute)
	if got := overdue(s, time.Now()); len(got) != 0 {
		t.Errorf("at once: %v", got)
	}
	if got := overdue(s, late); !slices.Equal(got, []schema.BatchID{red.ID}) {
		t.Errorf("after the retention: %v, want %s", got, red.ID)
	}
	kind(t, s.Payloads.Forget(ctx, "red", runs.ID), schema.KindConflict) // it has not ended
	for range 2 {
		ok(t, s.Payloads.Forget(ctx, "red", red.ID))
		ok(t, far.Payloads.Forget(ctx, "red", red.ID))
	}
	if got := overdue(s, late); len(got) != 0 {
		t.Errorf("after it was forgotten: %v", got)
	}
	if got := bustest.StreamsWith(t, server.URL, "secret of "+string(red.ID)); len(got) != 0 {
		t.Errorf("payloads are in %v", got)
	}
	for _, m := range []*journal.Manifest{blue, runs} {
		want := []string{bus.StreamCalls, bus.StreamObjects, bus.StreamResults}
		if m == runs {
			want = []string{bus.StreamCalls}
		}
		if got := bustest.StreamsWith(t, server.URL, "secret of "+string(m.ID)); !slices.Equal(got, want) {
			t.Errorf("payloads of %s are in %v, want %v", m.ID, got, want)
		}
	}
	m, err := far.Get(ctx, "red", red.ID)
	ok(t, err)
	if !m.Forgotten || !m.Emptied || m.State != journal.Ended || m.Calls != 2 || m.Counts.Succeeded != 2 {
		t.Errorf("the manifest says %+v", m)
	}
	rs, _, err := far.Results(ctx, "red", red.ID, journal.Cursor{}, 10)
	if err != nil || len(rs) != 0 {
		t.Errorf("results: %v, %v", rs, err)
	}
	ok(t, far.Follow(ctx, "red", red.ID, journal.Cursor{}, func(rs []journal.ResultRecord, _ journal.Cursor) error {
		return fmt.Errorf("results came: %v", rs)
	}))
	_, err = far.FindResult(ctx, "red", red.ID, 0, journal.Cursor{})
	kind(t, err, schema.KindNotFound)
	_, err = far.Claim(ctx, "red", red.ID, "fd-2")
	kind(t, err, schema.KindConflict)
	_, err = far.ClaimEnded(ctx, "red", red.ID, "fd-2")
	kind(t, err, schema.KindConflict)
	quiet := slog.New(slog.DiscardHandler)
	if found, err := journal.Check(ctx, conn, time.Time{}, quiet); err != nil || len(found.Faults) > 0 {
		t.Errorf("the check finds %v, %v", found, err)
	}
}

// A process that is killed between the steps leaves the rest to the next one, whatever is left.
func TestInterruptedForgettingIsCompleted(t *testing.T) {
	ctx := t.Context()
	server := bustest.Start(t)
	conn, s := connectTo(t, server, journal.Options{Retention: hourly})
	red := of("red")
	storeSecrets(t, s, red)
	_, err := s.Change(ctx, "red", red.ID, func(m *journal.Manifest) error { m.Purged, m.Forgotten = true, true; return nil })
	ok(t, err)
	quiet := slog.New(slog.DiscardHandler)
	purge := func(stream string) {
		st, err := bustest.JetStream(t, server.URL).Stream(ctx, stream)
		ok(t, err)
		ok(t, st.Purge(ctx))
	}
	for _, stream := range []string{"", bus.StreamCalls, bus.StreamIntents, bus.StreamResults} {
		if stream != "" {
			purge(stream)
		}
		_, next := connectTo(t, server, journal.Options{Retention: hourly})
		if got := overdue(next, time.Now().Add(2*time.Hour)); !slices.Equal(got, []schema.BatchID{red.ID}) {
			t.Errorf("without %q the next process forgets %v", stream, got)
		}
		if found, err := journal.Check(ctx, conn, time.Time{}, quiet); err != nil || len(found.Faults) > 0 {
			t.Errorf("without %q the check finds %v, %v", stream, found, err)
		}
		_, err := next.Claim(ctx, "red", red.ID, "fd-2")
		kind(t, err, schema.KindConflict)
	}
	_, next := connectTo(t, server, journal.Options{Retention: hourly})
	ok(t, next.Payloads.Forget(ctx, "red", red.ID))
	if got := bustest.StreamsWith(t, server.URL, "secret of "+string(red.ID)); len(got) != 0 {
		t.Errorf("payloads are in %v", got)
	}
	_, next = connectTo(t, server, journal.Options{Retention: hourly})
	if got := overdue(next, time.Now().Add(2*time.Hour)); len(got) != 0 {
		t.Errorf("a process that starts later forgets %v again", got)
	}
}

// Who settles a call has claimed its journal, and may write to its logs until it gives it back.
func TestOwnedJournalIsForgottenAfterItsRelease(t *testing.T) {
	ctx := t.Context()
	server := bustest.Start(t)
	_, s := connectTo(t, server, journal.Options{Retention: hourly})
	red := of("red")
	storeSecrets(t, s, red)
	o, err := s.Claim(ctx, "red", red.ID, "fd-1")
	ok(t, err)
	kind(t, s.Payloads.Forget(ctx, "red", red.ID), schema.KindConflict)
	_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.State, m.Ending = journal.Running, ""; return nil })
	kind(t, err, schema.KindConflict) // it must not run without its calls
	if got := bustest.StreamsWith(t, server.URL, "secret of "+string(red.ID)); len(got) == 0 {
		t.Error("payloads went while the journal was owned")
	}
	if got := overdue(s, time.Now().Add(2*time.Hour)); !slices.Equal(got, []schema.BatchID{red.ID}) {
		t.Errorf("the next look forgets %v", got)
	}
	ok(t, o.Release(ctx))
	ok(t, s.Payloads.Forget(ctx, "red", red.ID))
	if got := bustest.StreamsWith(t, server.URL, "secret of "+string(red.ID)); len(got) != 0 {
		t.Errorf("payloads are in %v", got)
	}
}

func TestRetentionAppliesOnlyToItsTenantsJournals(t *testing.T) {
	server := bustest.Start(t)
	long := journal.Options{Retention: retention.Periods{"red": 100 * time.Hour, "blue": 73 * time.Hour, "green": 72 * time.Hour}, MaxEnded: 1}
	_, s := connectTo(t, server, long)
	if s.Payloads.Retention("red") != 0 || s.Payloads.Retention("blue") != 0 || s.Payloads.Retention("green") != 72*time.Hour {
		t.Errorf("retentions of %s, %s, %s", s.Payloads.Retention("red"), s.Payloads.Retention("blue"), s.Payloads.Retention("green"))
	}
	var want []schema.BatchID
	for _, m := range []*journal.Manifest{
		of("red"), of("green"), of(""),
		{Kind: journal.Lane, Expires: time.Now().Add(time.Hour)},
		{Kind: journal.Lane, Expires: time.Now().Add(time.Hour), LaneTenant: "red"},
		{Kind: journal.Lane, Expires: time.Now().Add(time.Hour), LaneTenant: "green"},
	} {
		storeSecrets(t, s, m)
		if m.Principal.Tenant == "green" || m.LaneTenant == "green" {
			want = append(want, m.ID)
		}
	}
	// Also those that are not in the view any more: it has one that ended.
	if got := overdue(s, time.Now().Add(101*time.Hour)); !slices.Equal(got, want) {
		t.Errorf("forgotten are %v, want %v", got, want)
	}
	_, next := connectTo(t, server, long)
	if got := overdue(next, time.Now().Add(101*time.Hour)); !slices.Equal(got, want) {
		t.Errorf("after a restart %v, want %v", got, want)
	}
	for _, o := range next.Payloads.Overdue(time.Now().Add(101 * time.Hour)) {
		ok(t, next.Payloads.Forget(context.Background(), o.Tenant, o.ID))
	}
}
