package stories

import (
	"fmt"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

func TestBatchOfAKilledFrontDoorIsFinishedByAnother(t *testing.T) {
	f := sharedFabric(t)
	l := newLedger(t)
	door := f.FrontDoors[1]
	theirs, ours := caller(t, f, door.URL()), caller(t, f, f.URL())

	const size = 20
	list := l.lines(t, size)
	b, err := theirs.CreateBatchWithResponse(t.Context(), nil, callyard.BatchRequest{Calls: list})
	must(t, err)
	must(t, callyard.Check(b.HTTPResponse, b.Body))
	l.happened(t, "line-0", 1) // it is in flight, until the gate opens
	must(t, door.Kill(t.Context()))
	l.open(t)

	follow := true
	results := map[string]callyard.CallState{}
	for r, err := range callyard.Lines[callyard.BatchResult](ours.GetBatchResults(t.Context(), b.JSON201.ID, &callyard.GetBatchResultsParams{Follow: &follow})) {
		must(t, err)
		results[*r.CustomID] = r.State
	}
	unknown := 0
	for i := range size {
		id := fmt.Sprint("line-", i)
		ran := l.count(t, id)
		switch results[id] {
		case callyard.CallStateSucceeded:
			if ran != 1 {
				t.Errorf("%s succeeded, and ran %d times", id, ran)
			}
		case callyard.CallStateUnknown:
			if unknown++; ran > 1 {
				t.Errorf("%s ran %d times", id, ran)
			}
		default:
			t.Errorf("%s ended as %q", id, results[id])
		}
	}
	t.Logf("%d of %d calls ended as unknown", unknown, size)
	must(t, door.Start(t.Context()))
	must(t, f.Ready(t.Context(), door))
}
