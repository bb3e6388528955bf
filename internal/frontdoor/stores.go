package frontdoor

import (
	"context"
	"fmt"
	"slices"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// stores are the stores of calls. They are opened here and passed to internal/calls, the only
// package that reads them.
type stores struct {
	approvals *approval.Instance
	records   *records.Recorder
	usage     *usage.Usage // nil if its stream is not available
	journal   *journal.Store
}

// openStores opens the stores of calls. On an error it closes those that it opened.
func (d *FrontDoor) openStores(ctx context.Context) (*stores, error) {
	s := new(stores)
	if err := d.fillStores(ctx, s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (d *FrontDoor) fillStores(ctx context.Context, s *stores) (err error) {
	o := d.o
	// Nothing is reassessed before the gate exists.
	assess := func(ctx context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
		return d.gate.Reassess(ctx, a, args)
	}
	if s.approvals, err = approval.OpenInstance(ctx, approval.InstanceOptions{
		LostBefore: o.Lost.Approvals, DataKeys: o.DataKeys, Assess: assess, ByID: calls.Durable, NoPermission: d.noPermission, Conn: o.Stored, Redis: o.Redis, Name: "frontdoor", Runner: d.id,
		Sign: approval.Signing(o.Signer), Retention: o.Tenants.Retentions(), Traces: o.Traces, Log: o.Log,
	}); err != nil {
		return err
	}
	if s.journal, err = journal.Open(ctx, o.Stored, journal.Options{LostKey: o.Lost.Key, DataKeys: o.DataKeys, Retention: o.Tenants.Retentions(), Log: o.Log}); err != nil {
		return err
	}
	alive := func(id string) bool { return catalog.RouterMayLive(d.catalog, id, 0) }
	owner := func(id schema.CallID) (string, bool) { return calls.OwnerOf(s.journal, id) }
	owners := func() map[string]bool { return journal.Owners(s.journal) }
	if s.records, err = records.Open(ctx, o.Stored, records.Options{
		FrontDoor: d.id, Alive: alive, Owner: owner, Owners: owners, DataKeys: o.DataKeys, Retention: o.Tenants.Retentions(), Log: o.Log,
	}); err != nil {
		return err
	}
	s.usage = d.openUsage(ctx, s)
	return nil
}

func (s *stores) close() {
	if s.usage != nil {
		s.usage.Close()
	}
	if s.records != nil {
		s.records.Close()
	}
	if s.journal != nil {
		s.journal.Close()
	}
	if s.approvals != nil {
		s.approvals.Close()
	}
}

// openBatches opens the runner of durable calls.
func (d *FrontDoor) openBatches(ctx context.Context) (err error) {
	if err = d.openNotifier(ctx); err != nil {
		return err
	}
	o := batch.Options{
		Store: d.stores.journal, Gate: d.gate, Chain: d.chain, Catalog: d.catalog, Router: d.router, Ledger: d.stores.approvals.Ledger, Desk: d.stores.approvals.Desk, Release: d.releaser.Run, Quota: d.sharing.quota, ID: d.id, LeaseLost: d.o.Metrics.LeaseLost, Traces: d.o.Traces, Log: d.o.Log,
		OpenBatches: d.o.Config.OpenBatches, LostBefore: d.o.Lost.Calls,
	}
	if d.notifier != nil {
		o.Ended = d.notifier.ended
	}
	d.durable, err = batch.Open(ctx, o)
	return err
}

// closeBatches lets durable calls that were sent finish until ctx ends. Another front door settles
// the remaining ones.
func (d *FrontDoor) closeBatches(ctx context.Context) {
	if d.notifier != nil {
		close(d.notifier.stop) // first, because calls that end wait while their webhooks cannot be stored
	}
	if d.durable != nil {
		if err := d.durable.Close(ctx); err != nil {
			d.o.Log.Warn("stopping durable calls failed", "error", err)
		}
	}
	if d.notifier != nil {
		d.notifier.close(ctx)
	}
}

// policyText returns the version and the source of the platform's effective policy. Policies of
// tenants have their own files.
func (d *FrontDoor) policyText() (version, text string) {
	if d.o.Policy == nil {
		return "none", ""
	}
	p := d.o.Policy.Current()
	return p.Version(), string(p.Source())
}

// noPermission returns the reason why calls of the server cannot run by a standing permission, or
// "". Every worker that could run them must trust this front door's key for that, or it would
// refuse calls that were permitted.
func (d *FrontDoor) noPermission(server schema.ServerID) string {
	if d.o.Signer == nil {
		return "the front doors have no signing key (warrants.key_file)."
	}
	for _, w := range d.catalog.Holders(server) {
		if !slices.Contains(w.StandingKeys, d.o.Signer.KeyID()) {
			return fmt.Sprintf("worker %s does not trust the front doors' key for this; the worker's warrants.standing_keys lists the keys that it trusts.", w.Name)
		}
	}
	return ""
}
