package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

func TestPagesOfAnySizeContainAllApprovalsOnce(t *testing.T) {
	l := start(t)
	began := time.Now().UTC()
	var want []schema.ApprovalID
	for i := range 40 {
		a := question()
		a.Created = began.Add(time.Duration(i) * time.Millisecond)
		if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		want = append(want, a.ID)
	}
	for _, oldestFirst := range []bool{true, false} {
		for _, limit := range []int{1, 2, 7, 19, 20, 39, 40, 41} {
			var got []schema.ApprovalID
			for next := (ledger.Cursor{}); ; {
				page, more := l.List(schema.AllTenants(), ledger.Filter{OldestFirst: oldestFirst, Limit: limit}, next)
				if len(page) == 0 || len(page) > limit {
					t.Fatalf("a page of %d, the limit is %d", len(page), limit)
				}
				for _, a := range page {
					got = append(got, a.ID)
				}
				if next = more; next.IsZero() {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: %v, want %v", limit, got, want)
			}
		}
		slices.Reverse(want)
	}
}
