package chaos

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGuaranteesHoldUnderFaultsAndViolationsAreDetected(t *testing.T) {
	root, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	programs, err := Build(t.Context(), root, dir)
	if err != nil {
		t.Fatal(err)
	}
	campaigns, err := Campaigns(t.Context(), Short, 1, programs, filepath.Join(dir, "runs"), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range campaigns {
		t.Run(c.Name, func(t *testing.T) {
			report, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			report.Table(t.Output())
			if !report.Passed() {
				t.Errorf("%d findings, wanted: %t", len(report.Findings), report.Wanted)
			}
			switch {
			case c.Unguarded && report.Duplicates == 0:
				t.Error("no call ran twice without intents")
			case c.Lax && report.Lost == 0:
				t.Error("no call was lost without sync")
			case c.CancelShare > 0 && report.CancelAsked < 20:
				t.Errorf("only %d calls were canceled", report.CancelAsked)
			case !report.Wanted && (report.Ended != c.Calls || report.Accepted != c.Calls):
				t.Errorf("of %d calls %d were accepted and %d ended", c.Calls, report.Accepted, report.Ended)
			}
			if err := report.Write(dir); err != nil {
				t.Error(err)
			}
			if report.Kept != "" {
				showLogs(t, report.Kept)
			}
		})
	}
}

// showLogs shows the end of each log, because the folder is removed with the test.
func showLogs(t *testing.T, dir string) {
	const shown = 4 << 10
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		t.Logf("--- %s\n%s", filepath.Base(path), text[max(0, len(text)-shown):])
	}
}

func TestTheSameSeedDrawsTheSameFaults(t *testing.T) {
	mix := []Share{{KillWorker, 5}, {KillDoor, 3}, {StopDoor, 2}, {CutPower, 2}}
	plan := Plan(7, mix, 2, 3)
	if diff := cmp.Diff(plan, Plan(7, mix, 2, 3)); diff != "" {
		t.Errorf("the same seed draws others:\n%s", diff)
	}
	if cmp.Equal(plan, Plan(8, mix, 2, 3)) {
		t.Error("another seed draws the same")
	}
	counts := map[Kind]int{}
	last := 0.0
	for _, f := range plan {
		counts[f.Kind]++
		if f.At < last || f.At >= 1 {
			t.Errorf("%v strikes at %f after %f", f, f.At, last)
		}
		last = f.At
		most := map[Kind]int{KillWorker: 3, KillDoor: 2, StopDoor: 2, CutPower: 2}[f.Kind]
		if f.Victim < 0 || f.Victim >= most {
			t.Errorf("%v: there is no such victim", f)
		}
	}
	for _, s := range mix {
		if counts[s.Kind] != s.Count {
			t.Errorf("there are %d faults %q, not %d", counts[s.Kind], s.Kind, s.Count)
		}
	}
	var text strings.Builder
	for _, f := range plan[:4] {
		fmt.Fprintf(&text, "%s at %.3f for %s\n", f, f.At, f.Down)
	}
	golden, err := os.ReadFile(filepath.Join("testdata", "plan.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text.String()); diff != "" {
		t.Errorf("seed 7 draws other faults than it did (-was +is); reports of before cannot be compared any more:\n%s", diff)
	}
}

func TestStartedCallsAreLimitedByInjectedFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(100, 9)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 20 {
			if !g.pass(ctx, 1) {
				t.Fatal("a call that may begin did not")
			}
		}
		passed := make(chan bool, 1)
		go func() { passed <- g.pass(ctx, 1) }()
		synctest.Wait()
		if len(passed) > 0 {
			t.Fatal("a call began that belongs to a later fault")
		}
		g.fire()
		if !<-passed {
			t.Error("the call did not begin after the fault")
		}
		for range 8 {
			g.fire()
		}
		if g.most() != 100 || g.struck() != 9 {
			t.Errorf("after %d faults %d calls may have begun", g.struck(), g.most())
		}
		cancel()
		if g.pass(ctx, 1) {
			t.Error("a call began after the end of the load")
		}
	})
}

// judged returns the findings for a book with one call.
func judged(t clientCall, once, safe map[string]int, rows ...stored) []string {
	r := &run{c: &Campaign{}, book: newBook(), report: &Report{States: map[string]int{}}}
	r.judgeCall(&t, once, safe, map[string][]stored{t.Effect: rows})
	return r.book.findings
}

func TestEveryViolationIsReported(t *testing.T) {
	ran, none := map[string]int{"e": 1}, map[string]int{}
	good := clientCall{ID: "call_1", Effect: "e", State: "succeeded", Results: 1}
	as := func(change func(*clientCall)) clientCall {
		c := good
		change(&c)
		return c
	}
	stands := func(id string, states ...string) stored { return stored{id, states} }
	for _, c := range []struct {
		name string
		told clientCall
		once map[string]int
		rows []stored
		want string // part of the only finding; "" means no finding
	}{
		{"succeeded and ran", good, ran, []stored{stands("call_1", "succeeded")}, ""},
		{"a request repeated elsewhere is canceled", good, ran, []stored{stands("call_0", "canceled"), stands("call_1", "succeeded")}, ""},
		{"unknown may have run", as(func(c *clientCall) { c.State = "unknown" }), ran, []stored{stands("call_1", "unknown")}, ""},
		{"unknown may not have run", as(func(c *clientCall) { c.State = "unknown" }), none, []stored{stands("call_1", "unknown")}, ""},
		{"unknown may later succeed", as(func(c *clientCall) { c.State = "unknown" }), ran, []stored{stands("call_1", "unknown", "succeeded")}, ""},
		{"succeeded without an effect", good, none, []stored{stands("call_1", "succeeded")}, "has no effect"},
		{"failed and ran", as(func(c *clientCall) { c.State = "failed" }), ran, []stored{stands("call_1", "failed")}, "is said to be failed, and ran"},
		{"canceled and ran", as(func(c *clientCall) { c.State = "canceled" }), ran, []stored{stands("call_1", "canceled")}, "is said to be canceled, and ran"},
		{"no final state", as(func(c *clientCall) { c.State, c.Results = "", 0 }), none, []stored{stands("call_1", "succeeded")}, "has no end"},
		{"two results", as(func(c *clientCall) { c.Results = 2 }), ran, []stored{stands("call_1", "succeeded")}, "has 2 results"},
		{"accepted and not stored", good, ran, nil, "which is not stored"},
		{"forgotten", as(func(c *clientCall) { c.Lost = true }), none, nil, "nobody knew it"},
		{"stored without a result", good, ran, []stored{stands("call_1")}, "has no result"},
		{"stored as something else", good, ran, []stored{stands("call_1", "failed")}, "is stored as [failed]"},
		{"two calls for one key", good, ran, []stored{stands("call_0", "succeeded"), stands("call_1", "succeeded")}, "beside call_1"},
		{"two final states", good, ran, []stored{stands("call_1", "succeeded", "succeeded")}, "has the results"},
	} {
		findings := judged(c.told, c.once, nil, c.rows...)
		if c.want == "" {
			if len(findings) > 0 {
				t.Errorf("%s: found %q", c.name, findings)
			}
			continue
		}
		if !slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s: found %q, not %q", c.name, findings, c.want)
		}
	}
	asked := as(func(c *clientCall) { c.Safe, c.Canceled, c.State = true, true, "unknown" })
	if got := judged(asked, none, ran, stands("call_1", "unknown")); len(got) != 0 {
		t.Errorf("a safe call that was canceled while it ran: found %q", got)
	}
	asked.State = "canceled"
	if got := judged(asked, none, ran, stands("call_1", "canceled")); len(got) != 1 || !strings.Contains(got[0], "is said to be canceled, and ran") {
		t.Errorf("a safe call that is said never to have run: found %q", got)
	}
	safe := as(func(c *clientCall) { c.Safe, c.State = true, "unknown" })
	if got := judged(safe, none, ran, stands("call_1", "unknown")); len(got) != 1 || !strings.Contains(got[0], "safe to repeat") {
		t.Errorf("a safe call that is unknown: found %q", got)
	}
}

func TestRecoveryTimeStartsAtItsFault(t *testing.T) {
	b := newBook()
	before := &clientCall{Effect: "before"}
	began := b.begin(before)
	s := b.strike(Fault{Kind: KillDoor})
	if s.Singles != 1 || s.InFlight != 1 {
		t.Errorf("under way were %d, %d of them single", s.InFlight, s.Singles)
	}
	after := &clientCall{Effect: "after"}
	b.over(after, "succeeded", b.begin(after))
	if s.Serving == 0 || s.Settled != 0 {
		t.Errorf("after a call that was sent later: serving %s, settled %s", s.Serving, s.Settled)
	}
	b.over(before, "unknown", began)
	if s.Settled < s.Serving {
		t.Errorf("settled %s, serving %s", s.Settled, s.Serving)
	}
}

func TestTheTimelineOfAnyCampaignIsAPicture(t *testing.T) {
	for _, r := range []*Report{
		{Name: "empty"},
		{Name: "full", Took: time.Minute, Scars: []*recovery{{Kind: KillNATS, At: time.Second, Back: 2 * time.Second}, {Kind: KillDoor, At: time.Minute}},
			Points: []point{{At: time.Second, Ended: 5}, {At: 3 * time.Second, Ended: 50, InFlight: 9}}},
	} {
		var out bytes.Buffer
		if err := r.WritePNG(&out); err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		picture, err := png.Decode(&out)
		if err != nil || picture.Bounds().Dx() < 500 {
			t.Errorf("%s: %v, %v", r.Name, picture, err)
		}
	}
}

func TestAnUnknownSizeIsRefused(t *testing.T) {
	if _, err := Campaigns(t.Context(), "huge", 1, Programs{}, "", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("there are campaigns of the size huge")
	}
}
