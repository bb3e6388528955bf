package credential

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestEveryExpiredGrantIsRedeemedOnce lets the tokens of many people expire at the same moment,
// while calls of each of them are in flight in three processes. With CALLYARD_CREDENTIALS=full
// there are 1,000.
func TestEveryExpiredGrantIsRedeemedOnce(t *testing.T) {
	people := 60
	if os.Getenv("CALLYARD_CREDENTIALS") == "full" {
		people = 1000
	}
	w := newTestServers(t)
	books := []*Book{w.book(t, nil), w.book(t, nil), w.book(t, nil)}
	for i := range people {
		w.connect(t, books[0], fmt.Sprint("person", i))
	}
	later := time.Now().Add(w.as.Life - time.Second)
	for _, b := range books {
		b.now = func() time.Time { return later }
	}
	before := w.as.Issued()
	began := time.Now()
	var foreign atomic.Int64
	var calls sync.WaitGroup
	for i := range people {
		for _, b := range books {
			calls.Go(func() {
				person := fmt.Sprint("person", i)
				c, err := b.Get(t.Context(), "crm", person, 0)
				if err != nil {
					t.Errorf("%s: %v", person, err)
				} else if w.as.User(strings.TrimPrefix(c.Value, "Bearer ")) != person {
					foreign.Add(1)
				}
			})
		}
	}
	calls.Wait()
	redeemed := w.as.Issued() - before
	t.Logf("%d grants expired in %d processes: %d redemptions in %v", people, len(books), redeemed, time.Since(began).Round(time.Millisecond))
	if redeemed != people || foreign.Load() != 0 {
		t.Errorf("%d redemptions for %d people; %d calls had the token of another", redeemed, people, foreign.Load())
	}
}
