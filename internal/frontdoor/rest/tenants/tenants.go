package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Options are the dependencies of the operations. Catalog, Calls and Router are required.
type Options struct {
	Catalog *catalog.Catalog
	Calls   *calls.Calls
	Router  *dispatch.Router
	// Book is the section tenants. If nil, there is none.
	Book *tenants.Book
	// Told lists the channels that notify approvers, from the section approver.
	Told tenants.Destinations
	// Policy holds the effective policies. If nil, no tenant has one.
	Policy *risk.Holder
	// Issued are the API keys created at run time. If nil, there are none.
	Issued *issued.Keys
	// Erase erases a tenant. If nil, tenants cannot be erased.
	Erase EraseFunc
}

type tenantInput struct {
	ID string `path:"tenant" doc:"The id of a tenant." example:"default"`
}

// handlers are the operations on tenants.
type handlers struct{ o Options }

// Register registers the operations on tenants.
func Register(d *httpapi.Document, o Options) {
	h := &handlers{o}
	httpapi.Get(d, opList(), h.list)
	httpapi.Get(d, opGet(), h.get)
	httpapi.Get(d, opErase(), h.erase)
}

// list serves GET /tenants.
func (h *handlers) list(ctx context.Context, _ *httpapi.NoInput) (list TenantList, err error) {
	list.Tenants, err = h.views(ctx, h.visible(&httpapi.Of(ctx).Principal))
	return list, err
}

// get serves GET /tenants/{tenant}.
func (h *handlers) get(ctx context.Context, in *tenantInput) (Tenant, error) {
	id := schema.TenantID(in.ID)
	if !slices.Contains(h.visible(&httpapi.Of(ctx).Principal), id) {
		return Tenant{}, schema.Errorf(schema.KindNotFound, "There is no tenant with this id. GET /tenants lists the tenants.")
	}
	found, err := h.views(ctx, []schema.TenantID{id})
	if err != nil {
		return Tenant{}, err
	}
	return found[0], nil
}

// visible returns the tenants that who may see. Operators and auditors of the installation see all.
// The caller's own tenant is always included, even without the section.
func (h *handlers) visible(who *schema.Principal) []schema.TenantID {
	own := who.Tenant.OrDefault()
	if own == schema.DefaultTenant && who.Has(scope.Admin, scope.ReadAllCalls) {
		return h.o.Book.IDs()
	}
	return []schema.TenantID{own}
}

// views returns the public view of tenants.
func (h *handlers) views(ctx context.Context, ids []schema.TenantID) ([]Tenant, error) {
	usage, err := h.usage(ctx, ids)
	if err != nil {
		return nil, err
	}
	seen, keys := catalog.TenantsOf(h.o.Catalog), h.keys()
	limits, retentions := h.o.Book.Limits(), h.o.Book.Retentions()
	loans := quota.Loans(limits, catalog.InFlight(h.o.Catalog.Processes()))
	servers, held, waiting := h.o.Catalog.Servers(), h.o.Calls.Backlog().ByTenant, h.o.Router.Waiting()
	all := make([]Tenant, 0, len(ids))
	for _, id := range ids {
		t := Tenant{ID: id, Servers: TenantServers{Patterns: h.o.Book.Servers(id)}, Sets: make([]string, 0), Limits: TenantLimits{Weight: h.o.Book.Weight(id)}, Retention: int64(retentions.Of(id) / time.Second), Keys: keys[id.Stored()], Usage: usage[id.Stored()], Held: held[id.Stored()]}
		if l, limited := limits[id.OrDefault()]; limited {
			loan := loans[id.OrDefault()]
			t.Limits.Nominal, t.Limits.Borrow, t.InFlight = &l.Nominal, &l.Borrow, &TenantInFlight{loan.InFlight, loan.Borrowed, loan.Lent}
		}
		for i := range servers {
			if seen.Sees(id, servers[i].ID) {
				t.Servers.Seen++
			}
		}
		for _, set := range seen.Seen(id).Sets() {
			t.Sets = append(t.Sets, set.Name)
			if !set.Tenant.Is(schema.DefaultTenant) {
				t.OwnSets = append(t.OwnSets, set.Name)
			}
		}
		if h.o.Policy != nil {
			if own := h.o.Policy.Of(id)[1]; own != nil {
				t.Policy = TenantPolicy{Own: true, Rules: len(own.Rules())}
			}
		}
		at := h.o.Book.Told(id, h.o.Told)
		t.Receivers = TenantReceivers{Hosts: append([]string{}, at.Hosts...), SlackChannels: at.SlackChannels}
		if h.o.Book != nil {
			t.Waiting = new(waiting[id.Stored()])
		}
		all = append(all, t)
	}
	return all, nil
}

// keys returns the number of keys of each tenant that were created at run time.
func (h *handlers) keys() map[schema.TenantID]int {
	n := make(map[schema.TenantID]int)
	everybody := schema.Principal{} // of the default tenant, with all scopes; the caller's access was checked before
	for _, key := range h.o.Issued.List(&everybody) {
		if !key.Configured {
			n[key.Tenant.Stored()]++
		}
	}
	return n
}

// usage returns the usage of these tenants in the last 24 hours. If usage cannot be read, it returns
// nothing and no error, because the configuration is useful without it.
func (h *handlers) usage(ctx context.Context, ids []schema.TenantID) (map[schema.TenantID]*TenantUsage, error) {
	q := calls.UsageQuery{By: []calls.UsageDimension{"tenant"}}
	if len(ids) == 1 {
		q.Tenant = &ids[0]
	}
	report, err := h.o.Calls.Usage(ctx, q)
	switch {
	case schema.KindOf(err) == schema.KindUnavailable:
		return nil, nil
	case err != nil:
		return nil, err
	}
	all := make(map[schema.TenantID]*TenantUsage, len(ids))
	for i := range report.Lines {
		all[report.Lines[i].Tenant.Stored()] = usageOf(report, &report.Lines[i].Counts)
	}
	for _, id := range ids {
		if all[id.Stored()] == nil {
			all[id.Stored()] = usageOf(report, nil)
		}
	}
	return all, nil
}
