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

// Balancer tracks which processes of a role are ready, like Kubernetes or a load
// balancer: it polls /readyz of each and sends no request to a process
// that is not ready. It is safe for concurrent use.
type Balancer struct {
	http *http.Client
	urls []string
	next atomic.Int64

	mu    sync.Mutex
	ready []string
}

// LookEvery is the interval at which a [Balancer] polls. It is well below the second for which
// a stopping process reports that it is not ready.
const LookEvery = 100 * time.Millisecond

// StartBalancer polls the processes at these base URLs until the test ends.
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

// Pick returns the next process that is ready, or "" if there is none.
func (b *Balancer) Pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return ""
	}
	return b.ready[int(b.next.Add(1))%len(b.ready)]
}

// Uses returns an error unless the balancer considers the process ready.
func (b *Balancer) Uses(url string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.ready, url) {
		return fmt.Errorf("the balancer does not use %s", url)
	}
	return nil
}
