package proc

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Balancer knows which processes of a role are ready, as Kubernetes or a load
// balancer does: it asks each for /readyz every so often and sends nobody to one
// that is not ready. It is safe for concurrent use.
type Balancer struct {
	http *http.Client
	urls []string
	next atomic.Int64

	mu    sync.Mutex
	ready []string
}

// LookEvery is how often a [Balancer] asks: well below the second for which a process that is about to stop says so.
const LookEvery = 100 * time.Millisecond

// StartBalancer begins to ask the processes at these base URLs, until the test ends.
func StartBalancer(t testing.TB, client *http.Client, urls ...string) *Balancer {
	ctx, stop := context.WithCancel(context.Background())
	b := &Balancer{http: client, urls: urls}
	b.look(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(LookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.look(ctx)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		wait.Wait()
	})
	return b
}

func (b *Balancer) look(ctx context.Context) {
	var ready []string
	for _, url := range b.urls {
		if b.isReady(ctx, url) {
			ready = append(ready, url)
		}
	}
	b.mu.Lock()
	b.ready = ready
	b.mu.Unlock()
}

func (b *Balancer) isReady(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := b.http.Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Pick returns the next process that is ready, "" when none is.
func (b *Balancer) Pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return ""
	}
	return b.ready[int(b.next.Add(1))%len(b.ready)]
}

// Uses returns an error unless the balancer takes the process for ready.
func (b *Balancer) Uses(url string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.ready, url) {
		return fmt.Errorf("the balancer does not use %s", url)
	}
	return nil
}
