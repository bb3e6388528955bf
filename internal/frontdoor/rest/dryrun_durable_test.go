package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// storedPolicy decides on calls by their argument n: 0 is denied, 1 and 2 are held, 3 is made
// durable, and all others run.
const storedPolicy = `
rules:
  - {name: zero, when: args.n == 0, deny: "no"}
  - {name: small, when: args.n < 3, level: 2}
  - {name: kept, when: args.n == 3, durable: true}
  - {name: rest, level: 1}
`

// storeCalls submits calls with n from 0 to 5, each as a durable call and in a batch. All of them are
// in a journal or in the ledger, except the one that is refused before it is stored.
func storeCalls(t *testing.T, f *fabric) {
	t.Helper()
	var lines []string
	for n := range 6 {
		args := fmt.Sprintf(`{"n":%d}`, n)
		want := http.StatusAccepted
		if n == 0 {
			want = http.StatusForbidden
		}
		if a := f.do("POST", "/servers/demo/tools/echo", args, "Prefer", "respond-async"); a.status != want {
			t.Fatalf("n=%d: %d %s", n, a.status, a.body)
		}
		lines = append(lines, `{"server":"demo","tool":"echo","arguments":`+args+`}`)
	}
	if a := f.do("POST", "/batches", `{"calls":[`+strings.Join(lines, ",")+`]}`); a.status >= 300 {
		t.Fatalf("the batch: %d %s", a.status, a.body)
	}
}

// TestADryRunJudgesStoredCallsAsTheGate compares a dry run with the gate, for durable calls and calls
// of batches that ran, are held, or were refused.
func TestADryRunJudgesStoredCallsAsTheGate(t *testing.T) {
	f := openFabricWith(t, frontdoortest.Options{Policy: policyOf(t, storedPolicy)}, nil)
	storeCalls(t, f)
	all := records.Filter{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	var found []records.Record
	f.WaitFor("a record of each call", func() bool {
		found = nil
		if err := f.Calls.Records.Each(t.Context(), schema.AllTenants(), all, func(r *records.Record) bool { found = append(found, *r); return true }); err != nil {
			t.Fatal(err)
		}
		return len(found) >= 12
	})
	if len(found) != 12 {
		t.Fatalf("there are %d records, and not 12", len(found))
	}
	// The record of a held call does not contain its arguments: they are in the ledger. That of a
	// refused call does not, either: it is the one with n=0.
	arguments := map[schema.CallID]string{}
	for i := range found {
		r := &found[i]
		for n := range 6 {
			if text := fmt.Sprintf(`{"n":%d}`, n); r.Arguments == records.DigestOf([]byte(text)) {
				arguments[r.ID] = text
			}
		}
		if r.State == schema.StateDenied {
			arguments[r.ID] = `{"n":0}`
		}
		if r.Approval != "" {
			text, err := f.Calls.Ledger.Asked(t.Context(), schema.DefaultTenant, r.Approval)
			if err != nil {
				t.Fatal(err)
			}
			arguments[r.ID] = string(text)
		}
	}
	by := func(g *admission.Gate, r *records.Record) (d risk.Decision, rule string) {
		v, err := g.Check(&schema.Call{Server: r.Server, Tool: r.Tool, Arguments: []byte(arguments[r.ID]), Principal: schema.Principal{Name: r.Principal}})
		return v.Decision(err)
	}
	states := map[schema.State]int{}
	for i := range found {
		r := &found[i]
		if r.State == schema.StateRunning {
			states[schema.StateSucceeded]++ // it will have soon
		} else {
			states[r.State]++
		}
		if d, rule := by(f.Calls.Gate, r); d != r.Decision || rule != r.Rule {
			t.Errorf("%s is recorded as %s by %q, and the gate decides %s by %q", arguments[r.ID], r.Decision, r.Rule, d, rule)
		}
	}
	if states[schema.StateDenied] != 2 || states[schema.StateHeld] != 4 || states[schema.StateSucceeded] != 6 {
		t.Errorf("the states are %v", states)
	}
	c := calls.New(f.Calls)
	for _, draft := range []string{
		"{name: all, level: 1}",
		"{name: odd, when: args.n % 2 == 1, level: 2}\n  - {name: five, when: args.n == 4, deny: x}\n  - {name: others, level: 1}",
		"{name: none, deny: x}",
		"{name: many, when: args.n > 1, durable: true}\n  - {name: others, level: 2}",
	} {
		p := policyOf(t, "rules:\n  - "+draft+"\n").Current()
		got, err := c.DryRun(t.Context(), calls.DryRunQuery{Policy: p, From: all.From, To: all.To, MaxChanges: 100})
		if err != nil {
			t.Fatal(err)
		}
		gate := f.Calls.Gate.With(p)
		want, changes := map[string]int{}, map[schema.CallID]calls.DryRunChange{}
		for i := range found {
			r := &found[i]
			now, rule := by(gate, r)
			want[rule+" "+string(now)]++
			if now != r.Decision {
				v := r.View()
				changes[v.ID] = calls.DryRunChange{ID: v.ID, Was: r.Decision, WasRule: r.Rule, Now: now, NowRule: rule}
			}
		}
		known := 0
		for _, r := range got.Rules {
			known += r.Allowed + r.Held + r.Refused
			for decision, n := range map[risk.Decision]int{risk.Allowed: r.Allowed, risk.Held: r.Held, risk.Refused: r.Refused} {
				// The arguments of the durable call that was refused are not stored.
				if of := want[r.Rule+" "+string(decision)]; n > of || n < of-got.Unknown.Arguments {
					t.Errorf("%s: %d are %s by %q, and %d by the gate", draft, n, decision, r.Rule, of)
				}
			}
		}
		if got.Calls != 12 || known+got.Unknown.Total != 12 || got.Unknown.Total > 1 || got.Unknown.Total != got.Unknown.Arguments || len(changes)-len(got.Changes) > got.Unknown.Total {
			t.Errorf("%s: %d of %d calls are known, %d changed and not %d: %+v", draft, known, got.Calls, len(got.Changes), len(changes), got)
		}
		for _, is := range got.Changes {
			of := changes[is.ID]
			if is.Was != of.Was || is.WasRule != of.WasRule || is.Now != of.Now || is.NowRule != of.NowRule {
				t.Errorf("%s: %+v, and the gate says %+v", draft, is, of)
			}
		}
	}
}
