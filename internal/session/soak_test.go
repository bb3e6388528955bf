package session

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestHundredReplacementsLeakNoResources(t *testing.T) {
	l := launcher(t)
	fds, routines := descriptors(t), runtime.NumGoroutine()
	p := openWith(t, l, Config{Spec: scripted("legacy"), Sessions: 4, Queue: 1000})
	pids := map[int]bool{}
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		// Each session serves a call, so no loss counts as consecutive.
		pid := p.until("one is there", func(s schema.Server) bool { return s.PID != 0 }).PID
		pids[pid] = true
		before := p.Snapshot().Restarts
		for range 100 {
			must(t, p.call("echo", `{"a":1}`))
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.until("it was noticed", func(s schema.Server) bool { return s.Restarts > before })
	}
	p.close(t)
	polltest.Until(t, "all descriptors and goroutines are back", func() bool {
		return descriptors(t) <= fds && runtime.NumGoroutine() <= routines
	})
	for pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestServersStartConcurrently(t *testing.T) {
	l := launcher(t)
	const each = 6 * slowStart // long, so that a busy machine does not look like four starts in sequence
	began := time.Now()
	var pools []*watched
	for range 4 {
		p := openWith(t, l, Config{Spec: scripted("starter")})
		defer p.close(t)
		pools = append(pools, p)
	}
	for _, p := range pools {
		p.ready()
	}
	if d := time.Since(began); d > 4*each {
		t.Errorf("four servers took %v, one takes %v", d, each)
	}
}

// load keeps c calls in flight until b has ended. Each is started when another ends, as a worker
// does.
func load(b *testing.B, p *watched, c int) {
	req := &Request{Name: "echo", Params: []byte(`{"message":"` + string(make200()) + `"}`)}
	var started atomic.Int64
	done := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(b.N))
	var next func(*Request, Outcome)
	next = func(_ *Request, o Outcome) {
		if o.Err != nil {
			b.Error(o.Err)
		}
		if left.Add(-1) == 0 {
			close(done)
			return
		}
		if started.Add(1) <= int64(b.N) {
			p.Do(req, next)
		}
	}
	started.Store(int64(min(c, b.N)))
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.ResetTimer()
	for range min(c, b.N) {
		p.Do(req, next)
	}
	<-done
	b.StopTimer()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N)/1e3, "cpu-µs/op")
}

func make200() []byte {
	b := make([]byte, 170)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func BenchmarkEcho(b *testing.B) {
	for _, c := range []int{1, 50} {
		b.Run(map[int]string{1: "c=1", 50: "c=50"}[c], func(b *testing.B) {
			p := open(b, Config{Spec: scripted("fast")})
			p.ready()
			b.ReportAllocs()
			load(b, p, c)
		})
	}
}
