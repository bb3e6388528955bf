package stories

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/e2e/fabric"
)

// callDuringFault makes calls of a tool that is not safe to repeat at both front
// doors, single ones and a batch, and calls fault while they are in flight. Each must end: as
// succeeded, having run once, or as unknown, having run at most once.
func callDuringFault(t *testing.T, f *fabric.Fabric, fault func()) {
	t.Helper()
	doors := []*callyard.ClientWithResponses{caller(t, f, f.FrontDoors[0].URL()), caller(t, f, f.FrontDoors[1].URL())}
	const singles, lines = 6, 200
	waiting, free := newLedger(t), newLedger(t)
	free.open(t)
	var ids []string
	for i := range singles {
		ids = append(ids, stored(t, doors[i%2], "lab", "effect", waiting.arguments(fmt.Sprint("single-", i))))
	}
	for i := range singles {
		waiting.happened(t, fmt.Sprint("single-", i), 1)
	}
	list := free.lines(t, lines)
	var batch string
	key := rand.Text()
	eventually(t, "the batch being taken", func() error {
		b, err := doors[0].CreateBatchWithResponse(t.Context(), &callyard.CreateBatchParams{IdempotencyKey: &key}, callyard.BatchRequest{Calls: list})
		if err == nil {
			err = callyard.Check(b.HTTPResponse, b.Body)
		}
		if err != nil {
			return err
		}
		if b.JSON201 == nil {
			return errors.New(b.Status() + " " + string(b.Body))
		}
		batch = b.JSON201.ID
		return nil
	})
	free.happened(t, "line-0", 1)
	fault()
	waiting.open(t)

	unknown := 0
	judge := func(l ledger, id string, state callyard.CallState) {
		ran := l.count(t, id)
		switch {
		case state == callyard.CallStateSucceeded && ran == 1:
		case state == callyard.CallStateUnknown && ran <= 1:
			unknown++
		default:
			t.Errorf("%s ended as %q and ran %d times", id, state, ran)
		}
	}
	for i, id := range ids {
		judge(waiting, fmt.Sprint("single-", i), ended(t, doors[(i+1)%2], id).State) // the other door has the outcome too
	}
	results := map[string]callyard.CallState{}
	eventually(t, "the results of the batch", func() error {
		clear(results)
		follow := true
		for r, err := range callyard.Lines[callyard.BatchResult](doors[1].GetBatchResults(t.Context(), batch, &callyard.GetBatchResultsParams{Follow: &follow})) {
			if err != nil {
				is, getErr := doors[1].GetBatchWithResponse(t.Context(), batch)
				if getErr == nil {
					err = fmt.Errorf("%w; there are %d, and the batch is %s", err, len(results), is.Body)
				}
				return err
			}
			results[*r.CustomID] = r.State
		}
		if len(results) != lines {
			return fmt.Errorf("there are %d of %d", len(results), lines)
		}
		return nil
	})
	for i := range lines {
		id := fmt.Sprint("line-", i)
		judge(free, id, results[id])
	}
	t.Logf("%d of %d calls ended as unknown", unknown, singles+lines) // all of them may be in flight at once
	checkCalls(t, doors)
}

// checkCalls checks that a call succeeds at each front door.
func checkCalls(t *testing.T, doors []*callyard.ClientWithResponses) {
	t.Helper()
	for i, c := range doors {
		eventually(t, fmt.Sprintf("front door %d answering", i+1), func() error {
			a, err := c.CallToolWithResponse(t.Context(), "lab", "echo", nil, map[string]any{"text": "on"})
			if err == nil && a.StatusCode() != http.StatusOK {
				err = errors.New(a.Status() + " " + string(a.Body))
			}
			return err
		})
	}
}
