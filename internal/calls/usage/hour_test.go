package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

func TestHourHasBoundedRowsAndCountsAllCalls(t *testing.T) {
	h := newHour(1)
	name := strings.Repeat("\x01", 200) // each byte takes six in JSON
	var running []records.Record
	for i := range 5 * maxRows {
		rec := records.Record{Principal: fmt.Sprint(name[:i%200], i), Server: "files", Tool: name, State: schema.StateRunning, FrontDoor: fmt.Sprint("frontdoor_06b2t8m3c0w3v2q5n7k9a1d4fz", i), Took: 1 << 60, ArgumentBytes: 1 << 60}
		rec.Tenant = schema.TenantID(fmt.Sprint("tenant", i%(3*maxTenants)))
		running = append(running, rec)
		h.change(nil, &rec)
	}
	body, err := h.encode()
	if err != nil || len(body) > 1<<20-8<<10 {
		t.Fatalf("%d bytes: %v", len(body), err)
	}
	if h, err = decodeHour(body); err != nil {
		t.Fatal(err)
	}
	for i := range running {
		ended := running[i]
		ended.State, ended.Took, ended.ArgumentBytes = schema.StateSucceeded, 0, 0
		if !h.change(&running[i], &ended) {
			t.Fatalf("the row of call %d is gone", i)
		}
	}
	var total Counts
	for row, c := range h.rows {
		none := func(string) bool { return false }
		if total.Add(c.counts(none, none)); c.Succeeded != c.Calls || c.Unfinished != 0 || len(c.Doors) > 0 {
			t.Fatalf("%+v: %+v", row, c)
		}
	}
	if total != (Counts{Calls: 5 * maxRows, Succeeded: 5 * maxRows}) || h.doors != 0 {
		t.Errorf("%+v", total)
	}
	if c := h.rows[otherOf(Other)]; c == nil || len(h.rows) > maxRows+maxTenants+1 {
		t.Errorf("%d rows, of other tenants %+v", len(h.rows), c)
	}
}

func TestStoredFormatIsStable(t *testing.T) {
	h := newHour(493_000)
	h.epoch, h.through = 2, 77
	for _, rec := range []records.Record{
		{Principal: "agent", Server: "files", Tool: "read", Method: schema.MethodCallTool, State: schema.StateSucceeded, Took: 1500 * time.Microsecond, ArgumentBytes: 12, ResultBytes: 345},
		{Principal: "agent", Server: "files", Tool: "read", State: schema.StateRunning, FrontDoor: "frontdoor_x"},
		{Principal: "nightly", Tenant: "billing", Server: "files", Method: schema.MethodReadResource, State: schema.StateFailed},
		{Principal: "nightly", Tenant: "billing", Server: "files", Tool: "rm", State: schema.StateHeld, Approval: "appr_1"},
		{Principal: "agent", State: schema.StateDenied}, {Principal: "agent", State: schema.StateExpired}, {Principal: "agent", State: schema.StateCanceled}, {Principal: "agent", State: schema.StateUnknown},
		{Principal: "agent", State: schema.StateSucceeded, ToolError: true},
	} {
		h.change(nil, &rec)
	}
	body, err := h.encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "hour.golden")
	if *update {
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := decodeHour(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, again, cmp.AllowUnexported(hour{})); diff != "" {
		t.Errorf("a stored hour reads otherwise (-want +got):\n%s", diff)
	}
	if _, err := decodeHour([]byte(`{"v":2}`)); err == nil {
		t.Error("another version was read")
	}
}

func TestAQueryIsRoundedToHours(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, time.UTC) }
	for _, c := range []struct{ from, to, first, before time.Time }{
		{time.Time{}, time.Time{}, at(3, 5, 0), at(4, 6, 0)},
		{at(1, 2, 30), at(1, 2, 31), at(1, 2, 0), at(1, 3, 0)},
		{at(1, 2, 0), at(1, 4, 0), at(1, 2, 0), at(1, 4, 0)},
		{now.AddDate(-40, 0, 0), now.AddDate(50, 0, 0), at(4, 4, 0).Add(-KeepFor), at(5, 5, 0)},
	} {
		q := Query{From: c.from, To: c.to}
		first, before, err := q.span(now)
		if err != nil || !startOf(first).Equal(c.first) || !startOf(before).Equal(c.before) {
			t.Errorf("%v to %v: %v to %v, %v", c.from, c.to, startOf(first), startOf(before), err)
		}
	}
	q := Query{From: now, To: now.Add(-time.Hour)}
	if _, _, err := q.span(now); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Error(err)
	}
}

// TestPrincipalCannotSeeTheOverflowRow queries as a principal with the name of that row.
func TestPrincipalCannotSeeTheOverflowRow(t *testing.T) {
	q := Query{Principal: Other}
	if q.wants(otherOf("")) || q.wants(otherOf("red")) {
		t.Error("it sees what is beyond the bound of an hour")
	}
	if !q.wants(Row{Principal: Other, Server: "s", Tool: "t"}) || !q.wants(Row{Principal: Other}) {
		t.Error("it does not see its own calls")
	}
	if all := (Query{}); !all.wants(otherOf("")) {
		t.Error("nobody sees the row")
	}
}
