package approval_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// BenchmarkTwoSteps measures the cost for the caller of holding, confirming and reading back a call
// on the embedded server, with every write synced. Like the front door, it records the end while
// the next call is in progress. writes/op counts the ledger writes that the caller waits for.
func BenchmarkTwoSteps(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	s, err := embedded.Start(embedded.Options{Dir: b.TempDir(), Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c, err := bus.Connect(b.Context(), bus.Options{InProcess: s, Name: "bench", Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	fixture, err := approval.OpenInstance(b.Context(), approval.InstanceOptions{Conn: c, Name: "bench", Runner: "door", Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer fixture.Close()
	b.Run("a round trip to NATS, to compare", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			if err := c.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	})
	for name, finish := range map[string]bool{"to the run": false, "with the end beside it": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			first, last := uint64(0), uint64(0)
			ended := make(chan struct{}, 1)
			ended <- struct{}{}
			for b.Loop() {
				call := &schema.Call{ID: schema.NewCallID(), Server: "bank", Tool: "pay", Arguments: []byte(arguments), ToolDigest: schema.Digest([]byte(`{"name":"pay"}`)), Principal: agent}
				began := time.Now()
				h, err := fixture.Desk.Open(b.Context(), call, json.RawMessage(`{"name":"pay"}`), &risk.Assessment{Level: risk.Medium, Approval: byCaller(), Version: "test"}, "")
				if err != nil {
					b.Fatal(err)
				}
				a, err := fixture.Desk.Confirm(b.Context(), h.Token, true, agent, string(call.ID), "door")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := fixture.Desk.Call(b.Context(), a); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
				if last = sequence(b, fixture.Ledger, a.ID); first == 0 {
					first = last
				}
				if <-ended; !finish {
					ended <- struct{}{}
					continue
				}
				go func() {
					if _, err := fixture.Desk.Finish(b.Context(), schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{}`)}, nil); err != nil {
						b.Error(err)
					}
					ended <- struct{}{}
				}()
			}
			<-ended
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			if n := len(took) - 1; n > 0 {
				b.ReportMetric(float64(last-first)/float64(n), "writes/op")
			}
		})
	}
}

// sequence returns the ledger's sequence of the last write of the record.
func sequence(t testing.TB, l *ledger.Ledger, id schema.ApprovalID) uint64 {
	t.Helper()
	_, revision, err := l.Get(t.Context(), schema.AllTenants(), id)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(revision)
}
