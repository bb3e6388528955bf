package stories

import (
	"encoding/json"
	"fmt"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

func TestBatchOfAThousandCallsStreamsResults(t *testing.T) {
	f := sharedFabric(t)
	c := caller(t, f, f.URL())
	const size = 1000
	body := callyard.LinesOf(func(yield func(callyard.BatchCall) bool) {
		for i := range size {
			id := fmt.Sprint("sum-", i)
			if !yield(callyard.BatchCall{CustomID: &id, Server: "demo", Tool: "add", Arguments: json.RawMessage(fmt.Sprintf(`{"a":%d,"b":1}`, i))}) {
				return
			}
		}
	})
	stream := true
	sums := map[string]string{}
	for r, err := range callyard.Lines[callyard.BatchResult](c.CreateBatchWithBody(t.Context(), &callyard.CreateBatchParams{Stream: &stream}, callyard.LinesType, body)) {
		must(t, err)
		if r.State != callyard.CallStateSucceeded || r.CustomID == nil {
			t.Fatalf("%+v", r)
		}
		if _, twice := sums[*r.CustomID]; twice {
			t.Errorf("%s is answered twice", *r.CustomID)
		}
		sums[*r.CustomID] = resultText(t, r.Result)
	}
	if len(sums) != size {
		t.Fatalf("%d results", len(sums))
	}
	for i := range size {
		if got := sums[fmt.Sprint("sum-", i)]; got != fmt.Sprint(i+1) {
			t.Errorf("%d + 1 is %s", i, got)
		}
	}
}
