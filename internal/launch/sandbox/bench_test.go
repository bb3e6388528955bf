package sandbox

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
)

// quantiles reports times as milliseconds.
func quantiles(b *testing.B, name string, times []time.Duration) {
	b.Helper()
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		return float64(times[int(q*float64(len(times)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), name+"-p50-ms")
	b.ReportMetric(at(0.95), name+"-p95-ms")
}

// From the wish for a container to its open MCP session, one after the other.
func BenchmarkColdStart(b *testing.B) {
	e := engine(b)
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: spec(b, e), Handshake: handshake, Log: quiet()})
	defer p.Close()
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		u, err := p.Take(b.Context(), "somebody", time.Now().Add(time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
		u.Release()
		<-u.Container.Done()
	}
	quantiles(b, "cold", times)
}

// The hand-over of a container that waits.
func BenchmarkWarmHandOver(b *testing.B) {
	e := engine(b)
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: spec(b, e, func(c *Config) { c.Pool = 2 }), Handshake: handshake, Log: quiet()})
	defer p.Close()
	var times []time.Duration
	for b.Loop() {
		polltest.Within(b, 30*time.Second, "a container is ready", func() bool { return p.Ready() > 0 })
		began := time.Now()
		u, err := p.Take(b.Context(), "somebody", time.Now().Add(time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
		u.Release()
	}
	quantiles(b, "warm", times)
}

// Calls at ten at once, each in a container of its own. In the end no container is left.
func BenchmarkCallsAtTenAtOnce(b *testing.B) {
	e := engine(b)
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: spec(b, e, func(c *Config) { c.Pool = 2 }), Handshake: handshake, Log: quiet(), StartTimeout: time.Minute})
	var mu sync.Mutex
	var times []time.Duration
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range 10 {
		all.Go(func() {
			for next.Add(1) <= int64(b.N) {
				began := time.Now()
				u, err := p.Take(b.Context(), "somebody", time.Now().Add(2*time.Minute))
				if err != nil {
					b.Error(err)
					return
				}
				if got, err := u.Session.tool("echo", map[string]string{"text": "x"}); err != nil || got != "x" {
					b.Errorf("it answers %q, %v", got, err)
				}
				u.Release()
				mu.Lock()
				times = append(times, time.Since(began))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	b.StopTimer()
	quantiles(b, "call", times)
	p.Close()
	if left := owned(b, e.o.Owner); len(left) > 0 {
		b.Errorf("left behind: %v", left)
	}
}
