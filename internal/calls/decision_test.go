package calls

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// anyCall returns a random call. Some are refused before a policy is evaluated.
func anyCall(rnd *rand.Rand) *schema.Call {
	call := randomCall(rnd)
	switch rnd.IntN(8) {
	case 0:
		call.Arguments = []byte([]string{`{"whole":"no"}`, `[]`, `{"n":`, `null`}[rnd.IntN(4)])
	case 1:
		call.Tool = []string{"off", "none"}[rnd.IntN(2)]
	}
	return call
}

// recordedOf returns the record of a call that was submitted.
func recordedOf(t *testing.T, c *Calls, id schema.CallID) *records.Record {
	t.Helper()
	if err := c.o.Records.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := c.o.Records.Get(t.Context(), schema.AllTenants(), id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func countRecords(t *testing.T, c *Calls) (n int) {
	t.Helper()
	if err := c.o.Records.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := records.Filter{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	if err := c.o.Records.Each(t.Context(), schema.AllTenants(), f, func(*records.Record) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestATestedCallIsDecidedAsTheGateDecides tests calls against drafts, activates each draft, makes the
// same calls, and compares the test results with the recorded decisions.
func TestATestedCallIsDecidedAsTheGateDecides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	policy := risk.NewHolder(randomPolicy(t, rnd, 12))
	_, chain, c := openTestCallsWith(t, policy)
	seen := map[string]int{}
	for range 15 {
		draft := randomPolicy(t, rnd, 1+rnd.IntN(20))
		calls, got, errs := make([]*schema.Call, 40), make([]*PolicyDecision, 40), make([]error, 40)
		before := countRecords(t, c)
		for i := range calls {
			calls[i] = anyCall(rnd)
			tested := *calls[i]
			got[i], errs[i] = TestPolicy(c, &tested, draft)
		}
		if n := countRecords(t, c); n != before {
			t.Fatalf("testing made %d records", n-before)
		}
		policy.Replace(draft)
		for i, call := range calls {
			_, err := chain.Submit(t.Context(), call)
			kind := schema.KindOf(err)
			if kind == schema.KindNotFound || errs[i] != nil {
				if schema.KindOf(errs[i]) != kind || got[i] != nil {
					t.Errorf("%s/%s: tested %+v, %v; made %v", call.Server, call.Tool, got[i], errs[i], err)
				}
				seen["missing"]++
				continue
			}
			seen[compare(t, call, got[i], recordedOf(t, c, call.ID), err)]++
			if again, _ := TestPolicy(c, call, nil); again.Decision != got[i].Decision || again.Rule != got[i].Rule || again.Version != got[i].Version {
				t.Errorf("in force: %+v, as a draft: %+v", again, got[i])
			}
		}
	}
	for _, way := range []string{"missing", "allowed", "held", "refused", "refused before", "not ready"} {
		if seen[way] < 3 {
			t.Errorf("%q came %d times only: %v", way, seen[way], seen)
		}
	}
}

// compare compares the result of a policy test with the outcome of the call, and returns the outcome as
// a word.
func compare(t *testing.T, call *schema.Call, got *PolicyDecision, rec *records.Record, made error) string {
	t.Helper()
	want, way := rec.Decision, string(rec.Decision)
	if want == "" {
		want, way = risk.Refused, "refused before"
	}
	if got.Decision != want || got.Rule != rec.Rule {
		t.Errorf("%s/%s %s: tested %+v; recorded %q by %q", call.Server, call.Tool, call.Arguments, got, rec.Decision, rec.Rule)
	}
	if (rec.Decision == "") != (got.Version == "") || (rec.Decision == "") != (got.Arguments != ArgumentsValid) || (got.Approval != nil) != (got.Decision == risk.Held) && got.Decision != risk.Refused {
		t.Errorf("tested %+v; recorded %+v", got, rec.PolicyDecision)
	}
	if got.Decision == risk.Held {
		if got.Approval == nil || got.Approval.Needed < 1 || got.Approval.ExpiresMS == 0 || got.Approval.Groups == nil {
			t.Errorf("who approves is %+v", got.Approval)
		}
		return way // this fixture has no desk that holds calls
	}
	if (made == nil) != (got.Error == nil) || made != nil && (schema.KindOf(made) != got.Error.Kind || schema.AsError(made).Detail != got.Error.Detail) {
		t.Errorf("%s/%s %s: tested %+v; made %v", call.Server, call.Tool, call.Arguments, got.Error, made)
	}
	if made != nil && !slices.Equal(schema.AsError(made).Faults, got.Errors) {
		t.Errorf("tested %+v; made %+v", got.Errors, schema.AsError(made).Faults)
	}
	if got.Decision == risk.Allowed && made != nil {
		return "not ready"
	}
	return way
}
