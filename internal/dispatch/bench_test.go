package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// fleet returns a router with workers that answer at once. They announce themselves each second,
// as real ones do.
func fleet(b *testing.B, local *bus.Local, workers, servers int) *Router {
	b.Helper()
	srv := bustest.Start(b)
	r, err := New(srv.ConnectLocal(b, "router", local), schema.NewID("router"), Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	announced := make([]schema.Worker, workers)
	for i := range announced {
		w := &announced[i]
		w.ID = schema.WorkerID(fmt.Sprintf("worker_%d", i))
		s := &scripted{id: w.ID, listening: make(chan struct{}), answer: echo}
		if s.l, err = srv.ConnectLocal(b, string(w.ID), local).Listen(w.ID, s); err != nil {
			b.Fatal(err)
		}
		close(s.listening)
		b.Cleanup(s.l.Close)
	}
	for n := range servers {
		for k := range 2 { // two workers offer each server
			w := &announced[(n+k)%workers]
			w.Servers = append(w.Servers, schema.Server{ID: schema.ServerID(fmt.Sprintf("server_%d", n)), State: schema.StateInitialized, Slots: 64})
		}
	}
	for i := range announced {
		r.SetWorker(&announced[i])
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				for i := range announced {
					r.SetWorker(&announced[i])
				}
			}
		}
	}()
	b.Cleanup(func() { stop(); <-done })
	return r
}

// BenchmarkDo measures the cost of a call in the router and the bus, with few and many servers.
func BenchmarkDo(b *testing.B) {
	for _, way := range []string{"local", "nats"} {
		for _, servers := range []int{5, 500} {
			b.Run(fmt.Sprintf("%s/servers=%d", way, servers), func(b *testing.B) {
				var local *bus.Local
				if way == "local" {
					local = &bus.Local{}
				}
				r := fleet(b, local, 5, servers)
				names := make([]schema.ServerID, servers)
				for i := range names {
					names[i] = schema.ServerID(fmt.Sprintf("server_%d", i))
				}
				var n atomic.Uint64
				b.ReportAllocs()
				b.SetParallelism(16)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						c := call(false)
						c.Server, c.Principal.Name = names[n.Add(1)%uint64(servers)], "p"
						if _, err := r.Do(context.Background(), c); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkSetWorker measures an announcement without changes.
func BenchmarkSetWorker(b *testing.B) {
	for _, servers := range []int{5, 500} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			r := &Router{routes: make(map[schema.ServerID]*route), workers: make(map[schema.WorkerID]*worker), routers: 1}
			w := &schema.Worker{ID: "w"}
			for n := range servers {
				w.Servers = append(w.Servers, schema.Server{ID: schema.ServerID(fmt.Sprintf("server_%d", n)), State: schema.StateInitialized, Slots: 64})
			}
			for b.Loop() {
				r.SetWorker(w)
			}
		})
	}
}
