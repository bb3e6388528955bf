package frontdoor

import (
	"time"

	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

const gaugeEvery = time.Second

// gauge updates the metrics that are states rather than events.
func (d *FrontDoor) gauge() {
	tick := time.NewTicker(gaugeEvery)
	defer tick.Stop()
	lost := uint64(0)
	var pinned map[schema.ServerID]int
	for {
		for server, load := range d.router.Load() {
			d.o.Metrics.SetWaiting(string(server), load.Waiting, load.Oldest)
		}
		pinned = d.gaugePins(pinned)
		d.o.Metrics.SetPace(d.router.BatchPace())
		d.o.Metrics.SetWorkers(len(d.catalog.Workers()))
		d.gaugeTenants()
		d.o.Metrics.SetDisagreements(len(catalog.Disagreements(d.catalog.Processes())))
		lost = d.gaugeBacklog(lost)
		select {
		case <-d.stopped:
			return
		case <-tick.C:
		}
	}
}

// gaugeTenants updates the metrics of the calls in flight that tenants borrow and lend.
func (d *FrontDoor) gaugeTenants() {
	limits := d.o.Tenants.Limits()
	if len(limits) == 0 {
		return
	}
	all := make(map[string]telemetry.TenantCalls)
	for id, l := range quota.Loans(limits, catalog.InFlight(d.catalog.Processes())) {
		all[string(id)] = telemetry.TenantCalls{Own: l.InFlight - l.Borrowed, Borrowed: l.Borrowed, Lent: l.Lent}
	}
	d.o.Metrics.Usage().SetTenants(all)
}

// gaugeBacklog updates the metrics of stored work that has not ended. It takes and returns the
// number of lost records.
func (d *FrontDoor) gaugeBacklog(lost uint64) uint64 {
	age := func(oldest time.Time) time.Duration {
		if oldest.IsZero() {
			return 0
		}
		return max(time.Since(oldest), 0)
	}
	b := d.calls.Backlog()
	d.o.Metrics.SetApprovals(b.Approvals, age(b.OldestApproval))
	d.o.Metrics.SetHeld(b.Held, b.HeldBytes)
	d.o.Metrics.SetBatches(b.Batches, age(b.OldestBatch))
	if b.LostRecords > lost {
		d.o.Metrics.RecordsLost(b.LostRecords - lost)
	}
	return b.LostRecords
}

// announced returns the announcement to the other front doors, which is sent each second.
func (d *FrontDoor) announced() schema.FrontDoor {
	is := schema.FrontDoor{Version: d.o.Version, Region: d.o.Region, Started: d.began.UTC(), Draining: d.draining.Load()}
	if d.o.InForce != nil {
		is.InForce = d.o.InForce()
	}
	if d.o.Metrics != nil {
		l := telemetry.LoadOf(d.o.Metrics)
		for _, of := range d.router.Load() {
			l.Waiting += of.Waiting
		}
		is.Load = &l
	}
	is.Tenants = d.sharing.quota.InFlight()
	if is.Signer = schema.NoSigner; d.o.Signer != nil {
		is.Signer = d.o.Signer.KeyID()
	}
	return is
}
