package records

import (
	"fmt"
	"log/slog"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// synced is a recorder over a server that syncs each write to the disk.
func synced(b *testing.B, queue int) *Recorder {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := embedded.Start(embedded.Options{Dir: b.TempDir(), Log: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	conn, err := bus.Connect(b.Context(), bus.Options{InProcess: s, Name: "bench", Log: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	return open(b, conn, Options{Queue: queue, Log: log})
}

// BenchmarkPath is what one call pays: begin with 200 bytes of arguments, and
// end. The records are thrown away as soon as they are told.
func BenchmarkPath(b *testing.B) {
	for _, digest := range []bool{true, false} {
		b.Run(fmt.Sprintf("digest=%t", digest), func(b *testing.B) {
			r := &Recorder{most: 1 << 30, wake: make(chan struct{}, 1)}
			arguments := make([]byte, 200)
			res := &schema.Result{Body: []byte("{}"), Worker: "w", Took: time.Millisecond}
			at := time.Now()
			rec := Record{ID: schema.NewCallID(), Principal: "agent", Server: "demo", Tool: "echo", Admitted: at.UnixNano(), Changed: at.UnixNano()}
			if !digest {
				arguments = nil
			}
			queue := make([]byte, 64<<20) // of a front door: in an empty process the collector runs all the time
			b.ReportAllocs()
			spent := cpu()
			for i := 0; b.Loop(); i++ {
				r.BeginWith(&rec, arguments, true).End(Outcome{Result: res, At: at})
				if i%1000 == 0 { // as the writer does
					for s := range r.shards {
						r.shards[s].waiting = r.shards[s].waiting[:0]
					}
				}
			}
			runtime.KeepAlive(queue)
			// Next to others on the same cores the clock says more than it cost.
			b.ReportMetric(float64(cpu()-spent)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkPathParallel is the same from every core at once, with a writer.
func BenchmarkPathParallel(b *testing.B) {
	r := synced(b, 1<<16)
	arguments := make([]byte, 200)
	res := &schema.Result{Body: []byte("{}"), Worker: "w", Took: time.Millisecond}
	ids := make([]schema.CallID, 1024)
	for i := range ids {
		ids[i] = schema.NewCallID()
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			at := time.Now()
			rec := Record{ID: ids[i%len(ids)], Principal: "agent", Server: "demo", Tool: "echo", Admitted: at.UnixNano(), Changed: at.UnixNano()}
			r.BeginWith(&rec, arguments, true).End(Outcome{Result: res, At: at})
		}
	})
}

// BenchmarkStore20k tells 20,000 calls in each second and reports what all of it
// costs this process, the NATS server and its disk included.
func BenchmarkStore20k(b *testing.B) {
	r := synced(b, 1<<20)
	arguments := make([]byte, 200)
	const perTick, tick = 200, 10 * time.Millisecond
	for b.Loop() {
		before := cpu()
		began := time.Now()
		t := time.NewTicker(tick)
		for range 200 {
			<-t.C
			for range perTick {
				rec := Record{ID: schema.NewCallID(), Principal: "agent", Server: "demo", Tool: "echo"}
				r.BeginWith(&rec, arguments, true).End(Outcome{Result: &schema.Result{Worker: "w", Took: time.Millisecond}})
			}
		}
		t.Stop()
		if err := r.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		spent := cpu() - before
		b.ReportMetric(float64(spent.Microseconds())/(200*perTick), "cpu-us/call")
		b.ReportMetric(100*spent.Seconds()/time.Since(began).Seconds(), "%core")
	}
	if r.Stats().Lost > 0 {
		b.Errorf("%+v", r.Stats())
	}
}

// BenchmarkRead reads from a slot of 200,000 calls: the newest page, and one call.
func BenchmarkRead(b *testing.B) {
	r := synced(b, 1<<20)
	ids := make([]schema.CallID, 200_000)
	for i := range ids {
		ids[i] = schema.NewCallID()
		r.Add(&Record{ID: ids[i], Principal: "agent", Server: "demo", Tool: "echo", State: schema.StateSucceeded, Arguments: DigestOf([]byte(ids[i]))})
	}
	if err := r.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	forget := func() { r.indexes.slots = nil }
	b.Run("first list", func(b *testing.B) {
		for b.Loop() {
			forget()
			if _, _, err := r.List(b.Context(), schema.AllTenants(), Filter{}, "", 100); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := r.List(b.Context(), schema.AllTenants(), Filter{}, "", 100); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := r.Get(b.Context(), schema.AllTenants(), ids[i*7919%len(ids)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSlots says how much memory the NATS server takes for each slot.
func BenchmarkSlots(b *testing.B) {
	r := synced(b, 1<<20)
	queue := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const slots = 3000
	for b.Loop() {
		before := queue()
		for i := range int64(slots) {
			if err := r.store.append(b.Context(), 170_000_000+i, []byte("x")); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(queue()-before)/slots, "B/slot")
	}
}

// cpu is what this process has used of the processors so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
