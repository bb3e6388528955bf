package journal_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// BenchmarkAMillionCalls accepts calls of 500 bytes, stores intents and results of all, and
// rebuilds what became of them, every write synced; and next to it, in the same run, what
// bare publishers do. Run it with -benchtime 1x.
func BenchmarkAMillionCalls(b *testing.B) {
	const n, size, chunk = 1_000_000, 500, 1000
	p := newPlace(b, embedded.Options{})
	s := p.connect(b, journal.Options{})
	ctx := context.Background()
	rate := func(name string, n int, took time.Duration) {
		b.ReportMetric(float64(n)/took.Seconds(), name+"/s")
	}
	body := make([]byte, size)
	for b.Loop() {
		rate("bare-atomic-1000", 200_000, bustest.Bare(b, p.s, 200_000, 1000, size))
		rate("bare-single", 3000, bustest.Bare(b, p.s, 3000, 1, size))
		id, w := begin(b, s)
		begun := time.Now()
		cs := make([]journal.CallRecord, chunk)
		for i := 0; i < n; i += chunk {
			for k := range cs {
				cs[k] = journal.CallRecord{CustomID: fmt.Sprint("line-", i+k), Server: "everything", Tool: "echo", Arguments: body}
			}
			_, err := w.Append(ctx, cs)
			ok(b, err)
		}
		rate("ingest", n, time.Since(begun))
		o := claim(b, s, id)
		begun = time.Now()
		for i := uint64(0); i < n; {
			read, err := o.Read(ctx, i, chunk)
			ok(b, err)
			i += uint64(len(read))
		}
		rate("read", n, time.Since(begun))
		begun = time.Now()
		rs := make([]journal.ResultRecord, chunk)
		in := make([]uint64, chunk)
		for i := 0; i < n; i += chunk {
			for k := range rs {
				in[k] = uint64(i + k)
				rs[k] = journal.ResultRecord{Index: in[k], Outcome: journal.Succeeded, Attempt: 1, CustomID: "line", Worker: "w_1", Started: begun, Ended: begun, Body: body}
			}
			ok(b, o.Intend(ctx, journal.Intents(in, 1, "w_1")))
			ok(b, o.Results(ctx, rs...))
		}
		rate("intend+results", n, time.Since(begun))
		o.Close()
		begun = time.Now()
		o, err := s.Seize(ctx, id, "next")
		ok(b, err)
		rate("rebuild", n, time.Since(begun))
		if c := o.Progress().Counts(); c.Succeeded != n {
			b.Fatalf("%+v", c)
		}
		begun = time.Now()
		seen := 0
		for at, more := (journal.Cursor{}), true; more; {
			var page []journal.ResultRecord
			page, at, err = s.Results(ctx, schema.DefaultTenant, id, at, chunk)
			ok(b, err)
			seen, more = seen+len(page), len(page) > 0
		}
		rate("results-read", seen, time.Since(begun))
		begun = time.Now()
		_, err = s.FindResult(ctx, schema.DefaultTenant, id, n-1, journal.Cursor{})
		ok(b, err)
		b.ReportMetric(float64(time.Since(begun).Milliseconds()), "find-result-ms")
		o.Close()
	}
}

// BenchmarkConcurrentSingleCalls is single calls of many callers: accepted, intended, ended.
func BenchmarkConcurrentSingleCalls(b *testing.B) {
	for _, callers := range []int{1, 50, 200} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s := newPlace(b, embedded.Options{}).connect(b, journal.Options{})
			id, w := begin(b, s)
			o := claim(b, s, id)
			ctx := context.Background()
			body := make([]byte, 500)
			b.SetParallelism(max(callers/runtime.GOMAXPROCS(0), 1))
			call := func() {
				at, err := w.Append(ctx, []journal.CallRecord{{Server: "everything", Tool: "echo", Arguments: body}})
				if err == nil {
					err = o.Intend(ctx, journal.Intent(at, 1, "w_1"))
				}
				if err == nil {
					err = o.Results(ctx, journal.ResultRecord{Index: at, Outcome: journal.Succeeded, Attempt: 1, Body: body})
				}
				if err != nil {
					b.Error(err)
				}
			}
			if callers == 1 {
				for b.Loop() {
					call()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call()
				}
			})
		})
	}
}
