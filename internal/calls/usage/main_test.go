package usage

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files of this package")

// recorder opens the log until the test ends.
func recorder(t testing.TB, c *bus.Conn, o records.Options) *records.Recorder {
	t.Helper()
	if o.FrontDoor == "" {
		o.FrontDoor = schema.NewID("frontdoor")
	}
	o.Log = slog.New(slog.DiscardHandler)
	r, err := records.Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// never is an Options.Lead that is false, so that only Count counts.
func never() bool { return false }

// counter opens a Usage that counts only on request.
func counter(t testing.TB, c *bus.Conn, o Options) *Usage {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	if o.Lead == nil {
		o.Lead = never
	}
	u, err := Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// inLog sums up the listed calls of the log, by hour and row.
func inLog(t testing.TB, r *records.Recorder) map[string]Counts {
	t.Helper()
	sums := map[string]Counts{}
	cursor := ""
	for {
		page, next, err := r.List(t.Context(), schema.AllTenants(), records.Filter{}, cursor, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			name := fmt.Sprint(startOf(hourOf(time.Unix(0, page[i].Admitted))), rowOf(&page[i]))
			c := sums[name]
			c.Add(countsOf(&page[i]))
			sums[name] = c
		}
		if next == "" {
			return sums
		}
		cursor = next
	}
}

// counted waits until everything is counted, because a report waits only for a few seconds.
func counted(t testing.TB, u *Usage) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		complete, err := u.Count(t.Context())
		switch {
		case complete:
			return
		case time.Now().After(end):
			t.Fatalf("never counted: %v", err)
		}
	}
}

// reported returns a report of everything, in the format of inLog.
func reported(t testing.TB, u *Usage) map[string]Counts {
	t.Helper()
	counted(t, u)
	now := time.Now()
	r, err := u.Report(t.Context(), Query{From: now.Add(-80 * 24 * time.Hour), To: now.Add(time.Hour), By: []Dimension{ByTenant, ByKey, ByServer, ByTool}, Interval: Hour})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete {
		t.Fatal("the report is not complete")
	}
	sums, total := map[string]Counts{}, Counts{}
	for _, l := range r.Lines {
		sums[fmt.Sprint(l.Start, l.Row)] = l.Counts
		total.Add(l.Counts)
	}
	if total != r.Total {
		t.Errorf("the rows have %+v, the total %+v", total, r.Total)
	}
	return sums
}

// life returns the consecutive records of one call.
func life(rnd *rand.Rand, at time.Time) []records.Record {
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	rec := records.Record{
		ID: idAt(at, rnd), Principal: pick("ann", "bob", "eve"), Server: schema.ServerID(pick("files", "bank")), Tool: pick("read", "write"),
		Durable: rnd.IntN(3) == 0, Admitted: at.UnixNano(), Changed: at.UnixNano(), State: schema.StateRunning, ArgumentBytes: rnd.Int64N(1000),
	}
	if rec.Principal == "eve" {
		rec.Tenant = "billing"
	}
	end := func(state schema.State, attempt int) records.Record {
		last := rec
		last.State, last.Attempt, last.Took, last.ResultBytes = state, attempt, time.Duration(rnd.Int64N(int64(time.Second))), rnd.Int64N(5000)
		last.Ended, last.Changed = at.UnixNano()+5, at.UnixNano()+5
		return last
	}
	switch rnd.IntN(10) {
	case 0: // refused
		return []records.Record{end(schema.StateDenied, 0)}
	case 1: // held, then run; the later records omit the requester
		held := rec
		held.State, held.Approval = schema.StateHeld, "appr_1"
		last := end(schema.StateSucceeded, 1)
		last.Principal, last.Server, last.Tool, last.Tenant = "", "", "", ""
		return []records.Record{held, rec, last}
	case 2: // retried, and settled
		rec.Durable = true
		return []records.Record{rec, end(schema.StateFailed, 1), end(schema.StateUnknown, 2), end(schema.StateSucceeded, 2)}
	case 3: // its front door died
		return []records.Record{rec}
	case 4:
		last := end(schema.StateSucceeded, 1)
		last.ToolError = true
		return []records.Record{rec, last}
	}
	return []records.Record{end(schema.StateSucceeded, 1)}
}

// idAt returns a call id with the given creation time.
func idAt(at time.Time, rnd *rand.Rand) schema.CallID {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	var text [26]byte
	milli := uint64(at.UnixMilli()) << 2 // 48 bits are nine digits and three bits of the tenth
	for i := 9; i >= 0; i-- {
		text[i] = digits[milli&31]
		milli >>= 5
	}
	for i := 10; i < 25; i++ {
		text[i] = digits[rnd.IntN(32)]
	}
	text[25] = '0'
	return schema.CallID("call_" + strings.ToLower(string(text[:])))
}
