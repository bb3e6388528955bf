package rolling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// BenchmarkWorkers is run by "make scale": it measures the calls per second of one, two and four
// workers, each with a limited number of concurrent calls of a tool that waits 50 ms, so
// that the workers are the limit and not the machine.
func BenchmarkWorkers(b *testing.B) {
	const (
		slots   = 8
		callers = 2 * 4 * slots
		warm    = time.Second
		span    = 5 * time.Second
	)
	h := newProcessFiles(b, startSingle(b), "")
	h.replicas = 1
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{plainServer: map[string]any{
		"command": filepath.Join(programs.test, "scripted-server"), "args": []string{mcptest.Echo}, "env": mcptest.Env(mcptest.Echo), "riskLevel": 1, "sessions": 1, "inFlight": slots,
	}}})
	if err != nil {
		b.Fatal(err)
	}
	write(b, h.servers, string(text))
	ports := porttest.Ports(b, 5)
	door := h.role(b, program{name: "frontdoor", port: ports[0]})
	door.up(b)
	workers := 0
	rate := func(n int) float64 {
		for ; workers < n; workers++ {
			h.role(b, program{name: "worker", port: ports[1+workers]}).up(b)
		}
		sees(b, door, n, plainServer)
		var done atomic.Int64
		var wait sync.WaitGroup
		stop := make(chan struct{})
		for range callers {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					a, err := send(door.http, http.MethodPost, door.url+"/servers/"+plainServer+"/tools/sleep", `{"ms":50}`)
					if err != nil || a.status != http.StatusOK {
						b.Errorf("a call: %v %v", a, err)
						return
					}
					done.Add(1)
				}
			})
		}
		rest(warm)
		from, began := done.Load(), time.Now()
		rest(span)
		got := float64(done.Load()-from) / time.Since(began).Seconds()
		close(stop)
		wait.Wait()
		return got
	}
	one := rate(1)
	b.ReportMetric(one, "calls/s@1")
	for _, n := range []int{2, 4} {
		got := rate(n)
		b.ReportMetric(got, fmt.Sprintf("calls/s@%d", n))
		b.ReportMetric(got/one, fmt.Sprintf("times@%d", n))
	}
}
