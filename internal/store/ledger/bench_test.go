package ledger_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// BenchmarkAnApproval is an approval asked for, run and ended on the embedded
// server, every write synced.
func BenchmarkAnApproval(b *testing.B) {
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
	l, err := ledger.Open(b.Context(), c, ledger.Options{Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	args := noise(500)
	step := func(name string, f func(ctx context.Context, a *ledger.Approval) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				a := question()
				if name != "create" {
					if _, err := l.Create(b.Context(), a, args); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				if err := f(b.Context(), a); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if _, err := l.Change(b.Context(), schema.DefaultTenant, a.ID, to(ledger.Canceled)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
	step("create", func(ctx context.Context, a *ledger.Approval) error {
		_, err := l.Create(ctx, a, args)
		return err
	})
	step("change", func(ctx context.Context, a *ledger.Approval) error {
		_, err := l.Change(ctx, schema.DefaultTenant, a.ID, to(ledger.Running))
		return err
	})
}
