package batch

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// openStore opens journals in a temporary directory.
func openStore(t *testing.T) *journal.Store {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := bus.Connect(t.Context(), bus.Options{InProcess: srv, Name: "test", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := journal.Open(t.Context(), c, journal.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// newLimitedBacklog returns a backlog with the given limit of open batches.
func newLimitedBacklog(t *testing.T, fleet int, rules ...settings.PrincipalRule) *backlog {
	t.Helper()
	q := quota.Open(quota.Options{Rules: settings.Limits{Principals: rules}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(q.Close)
	o := &Options{Store: openStore(t), Quota: q, OpenBatches: fleet}
	return newBacklog(t.Context(), o, newJobs(t.Context(), o, testIDs, new(sync.WaitGroup)), newIntakes())
}

// place reserves a batch of the principal.
func (b *backlog) place(name string, id schema.BatchID) (func(), error) {
	return b.placeOf("", name, id)
}

func (b *backlog) placeOf(tenant schema.TenantID, name string, id schema.BatchID) (func(), error) {
	return b.reserve(&Order{Principal: schema.Principal{Name: name, Tenant: tenant}}, id)
}

func TestBatchBeingCreatedCountsOnce(t *testing.T) {
	b := newLimitedBacklog(t, 100, settings.PrincipalRule{Batches: 2})
	done, err := b.place("ann", "batch-1")
	if err != nil {
		t.Fatal(err)
	}
	m := &journal.Manifest{ID: "batch-1", Kind: journal.Batch, Principal: schema.Principal{Name: "ann"}, Expires: time.Now().Add(time.Hour)}
	if err := b.o.Store.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	// The batch is stored, and its reservation is not released yet.
	second, err := b.place("ann", "batch-2")
	if err != nil {
		t.Fatalf("a second batch, where two fit: %v", err)
	}
	if _, err := b.place("ann", "batch-3"); schema.KindOf(err) != schema.KindQuota {
		t.Errorf("a third: %v", err)
	}
	done()
	if _, err := b.place("ann", "batch-3"); schema.KindOf(err) != schema.KindQuota {
		t.Errorf("a third, after the first was stored: %v", err)
	}
	second()
	if _, err := b.place("ann", "batch-3"); err != nil {
		t.Errorf("a third, after the second was not made: %v", err)
	}
}

func TestPrincipalCannotTakeAllBatchSlots(t *testing.T) {
	b := newLimitedBacklog(t, 100, settings.PrincipalRule{Names: []string{"mass"}, Batches: 60})
	fill := func(name string, want int, kind schema.Kind) {
		t.Helper()
		for n := 0; ; n++ {
			if _, err := b.place(name, schema.BatchID(name+"-"+time.Duration(n).String())); err != nil {
				if n != want || schema.KindOf(err) != kind {
					t.Errorf("%s has %d places, and then %v", name, n, err)
				}
				return
			}
		}
	}
	fill("ann", 25, schema.KindQuota)
	fill("mass", 60, schema.KindQuota)
	fill("ben", 15, schema.KindUnavailable)
}

func TestTenantCannotTakeAllBatchSlotsWithSeveralPrincipals(t *testing.T) {
	b := newLimitedBacklog(t, 100)
	n := 0
	fill := func(tenant schema.TenantID, name string, want int, kind schema.Kind) {
		t.Helper()
		for got := 0; ; got++ {
			n++
			if _, err := b.placeOf(tenant, name, schema.BatchID(fmt.Sprint("batch-", n))); err != nil {
				if got != want || schema.KindOf(err) != kind {
					t.Errorf("%s of %q has %d places, and then %v", name, tenant, got, err)
				}
				return
			}
		}
	}
	fill("red", "red/1", 25, schema.KindQuota)
	fill("red", "red/2", 25, schema.KindQuota)
	fill("red", "red/3", 12, schema.KindQuota)
	fill("red", "red/4", 0, schema.KindQuota)
	fill("blue", "blue/1", 25, schema.KindQuota)
	fill("", "ann", 13, schema.KindUnavailable)
}
