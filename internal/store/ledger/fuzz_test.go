package ledger

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzApprovalRoundTrip(f *testing.F) {
	for _, seed := range []string{
		`{"id":"appr_1","call_id":"call_1","state":"pending","created":"2026-01-01T00:00:00Z","decisions":[{"kind":"approve"}]}`, `{"state":"approved","binding":{"server":"a"}}`, `{"state":"x"}`, `{}`, `null`,
		`{"state":"pending","binding":null,"rule":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		a, err := decode(head)
		if err != nil {
			return
		}
		if !a.State.known() {
			t.Fatalf("%q is in the state %q", head, a.State)
		}
		again, err := json.Marshal(a)
		if err != nil {
			return // of raw parts that are no JSON by themselves there are none: decode checked
		}
		b, err := decode(again)
		if err != nil {
			t.Fatalf("%q is written as %q, and then: %v", head, again, err)
		}
		twice, err := json.Marshal(b)
		if err != nil || cmp.Diff(string(again), string(twice)) != "" {
			t.Fatalf("%q is written as %q and then as %q: %v", head, again, twice, err)
		}
	})
}
