package stories

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/e2e/fabric"
)

// confirmed confirms with the token until a response is final, like a caller whose
// front door cannot reach Redis. It returns the number of times that it got the call's result.
func confirmed(t *testing.T, c *callyard.ClientWithResponses, token string) (results int, err error) {
	err = fabric.Until(t.Context(), func() error {
		a, err := c.ConfirmCallWithResponse(t.Context(), token, nil, callyard.ConfirmRequest{Confirm: true})
		switch {
		case err != nil:
			return err
		case a.StatusCode() == http.StatusOK:
			results++
			return nil
		case a.StatusCode() == http.StatusNotFound || a.StatusCode() == http.StatusConflict || a.StatusCode() == http.StatusGone:
			return nil // it is spent
		default:
			return fmt.Errorf("%s %s", a.Status(), a.Body)
		}
	})
	return results, err
}

func TestConfirmedCallsRunOnceDuringRedisFailover(t *testing.T) {
	worker, err := scripted(fabric.Servers{"desk": {"command": "/scripted-server", "args": []string{"echo"}}})
	must(t, err)
	f := fabric.Start(t, fabric.Options{Cluster: true, FrontDoors: 2, Worker: worker, Policy: policy, Images: all.images, Source: all.source})
	l := newLedger(t)
	// Data that a replica did not have yet is lost with the main Redis, and approvals are requested
	// again.
	must(t, fabric.Until(t.Context(), func() error {
		said, err := f.Part("redis-2").Logs(t.Context(), time.Time{})
		if err == nil && !strings.Contains(said, "sync: Finished with success") {
			err = errors.New("the replica of Redis is not in step")
		}
		return err
	}))
	// Sentinels ask the main Redis for its replicas every ten seconds.
	for _, name := range []string{"sentinel-1", "sentinel-2", "sentinel-3"} {
		must(t, fabric.Until(t.Context(), func() error {
			said, err := f.Part(name).Logs(t.Context(), time.Time{})
			if err == nil && !strings.Contains(said, "+slave slave") {
				err = fmt.Errorf("%s does not know the replica", name)
			}
			return err
		}))
	}
	doors := []*callyard.ClientWithResponses{caller(t, f, f.FrontDoors[0].URL()), caller(t, f, f.FrontDoors[1].URL())}

	const size = 12
	var asked []callyard.ConfirmationRequest
	for i := range size {
		h := held(t, doors[i%2], "desk", "effect", l.arguments(fmt.Sprint("yes-", i)))
		if h.ConfirmationID == nil {
			t.Fatal("the caller has no token")
		}
		asked = append(asked, h)
	}
	// Each call is confirmed at both front doors concurrently. The first half is at the tool's gate
	// when the main Redis dies, and the other half cannot reach Redis.
	var wg sync.WaitGroup
	var mu sync.Mutex
	results := map[int]int{}
	var errs []error
	ask := func(i int) {
		for _, c := range doors {
			wg.Go(func() {
				n, err := confirmed(t, c, *asked[i].ConfirmationID)
				mu.Lock()
				defer mu.Unlock()
				results[i] += n
				errs = append(errs, err)
			})
		}
	}
	for i := range size / 2 {
		ask(i)
	}
	for i := range size / 2 {
		l.happened(t, fmt.Sprint("yes-", i), 1)
	}
	must(t, f.Part("redis-1").Kill(t.Context()))
	for i := size / 2; i < size; i++ {
		ask(i)
	}
	l.open(t)
	wg.Wait()
	must(t, errors.Join(errs...))
	for i, h := range asked {
		id := fmt.Sprint("yes-", i)
		end := ended(t, doors[0], string(h.CallID))
		if end.State != callyard.CallStateSucceeded || l.count(t, id) != 1 || results[i] > 1 {
			t.Errorf("%s ended as %s, ran %d times, %d confirmations were answered with a result", id, end.State, l.count(t, id), results[i])
		}
	}
}
