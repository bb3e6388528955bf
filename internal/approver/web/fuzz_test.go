package web_test

import (
	"testing"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

func FuzzAListOfDecisionsIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"decisions":[{"id":"appr_1","kind":"approve","digest":"sha256:x"},{"id":"appr_2","kind":"edit","arguments":{"a":1}}]}`))
	f.Add([]byte(`{"decisions":[{"id":"appr_1","kind":"approve","allow":{"until":"2026-01-01T00:00:00Z","pattern":{"kind":"values","values":[{"pointer":"/a"}]}}}]}`))
	f.Add([]byte(`{"decisions":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ids, err := web.Decisions(body)
		if err != nil {
			if kind := schema.KindOf(err); kind != schema.KindInvalidRequest && kind != schema.KindTooLarge {
				t.Fatalf("%q is refused with %s: %v", body, kind, err)
			}
			return
		}
		seen := make(map[schema.ApprovalID]bool)
		for _, id := range ids {
			if id == "" || seen[id] {
				t.Fatalf("%q gives %q", body, ids)
			}
			seen[id] = true
		}
		if len(ids) == 0 || len(ids) > 50 {
			t.Fatalf("%q gives %d decisions", body, len(ids))
		}
	})
}

func FuzzEveryOfferedPointerFitsAPattern(f *testing.F) {
	f.Add([]byte(`{"target":"x","deep":{"a/b~":[1,{"":null}],"e":{}}}`))
	f.Add([]byte(`{ "a" : [ ] , "b" : 1.0e2 }`))
	f.Fuzz(func(t *testing.T, args []byte) {
		if validate.Arguments(args, 1<<20, 0) != nil {
			return // the front door rejects such arguments
		}
		for _, pointer := range web.Places(args) {
			p, err := ledger.Pattern{Kind: ledger.SameValues, Values: []ledger.Value{{Pointer: pointer}}}.Of(args)
			if err != nil || !p.Fits(args) {
				t.Fatalf("%q offers %q: %v", args, pointer, err)
			}
		}
	})
}
