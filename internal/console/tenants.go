package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/ui"
)

const (
	tenantsPath = Root + "/tenants"
	tenantPath  = Root + "/tenant"
)

// tenantPages serves the pages of tenants.
type tenantPages struct{ *Console }

// tenantRow is a tenant with links to the lists filtered by it.
type tenantRow struct {
	T                         callyard.Tenant
	Wrong                     int64  // calls that failed, were denied, expired or have an unknown outcome
	Retention                 string // "" means the platform's
	Usage, Keys, Audit, Calls string
}

func rowOfTenant(t *callyard.Tenant) tenantRow {
	r := tenantRow{
		T:     *t,
		Usage: at(usagePath, "tenant", t.ID, "by", "key", "period", usagePeriods[0].Name),
		Keys:  at(keysPath, "tenant", t.ID), Audit: at(auditPath, "tenant", t.ID), Calls: at(Root+"/calls", "tenant", t.ID),
	}
	if s := t.RetentionSeconds; s != nil {
		r.Retention = config.Duration(time.Duration(*s) * time.Second).String()
	}
	if u := t.Usage; u != nil {
		r.Wrong = u.Failed + u.Denied + u.Expired + u.Unknown
	}
	return r
}

type tenantsPage struct {
	Rows       []tenantRow
	All, Found int
	Query      string
	Cut        bool // there are more rows than are shown
	Incomplete bool // the newest calls are not counted yet
}

// list serves the page of the tenants that the user's key may see.
func (c tenantPages) list(w http.ResponseWriter, r *http.Request, v Visit) error {
	list, err := current[callyard.TenantList](r.Context(), c.Console, v, api.ListTenants)
	if err != nil {
		return c.orKey(w, r, err)
	}
	page := tenantsPage{All: len(list.Tenants), Query: strings.TrimSpace(r.URL.Query().Get("q"))}
	for i := range list.Tenants {
		t := &list.Tenants[i]
		page.Incomplete = page.Incomplete || t.Usage != nil && !t.Usage.Complete
		if !has(page.Query, t.ID) {
			continue
		}
		if page.Found++; len(page.Rows) < maxRows {
			page.Rows = append(page.Rows, rowOfTenant(t))
		}
	}
	page.Cut = page.Found > len(page.Rows)
	return c.render(w, v, http.StatusOK, "tenants", view{Title: "Tenants", Here: tenantsPath, Page: page})
}

type tenantPage struct {
	tenantRow
	Figures []figure
	Linked  map[string]bool // the sets that the user may see too
}

// one serves the page of one tenant.
func (c tenantPages) one(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		http.Redirect(w, r, tenantsPath, http.StatusSeeOther)
		return nil
	}
	t, err := get[callyard.Tenant](r.Context(), c.Console, v, with(api.GetTenant, id))
	if err != nil {
		return c.orKey(w, r, err)
	}
	page := tenantPage{tenantRow: rowOfTenant(&t), Linked: make(map[string]bool)}
	if sets, err := c.sets(r.Context(), v); err == nil { // only the tenant sees the sets that it owns
		for _, s := range sets {
			owner := deref(s.Tenant)
			page.Linked[s.Name] = owner == t.ID || !slices.Contains(t.OwnSets, s.Name)
		}
	}
	page.fill()
	return c.render(w, v, http.StatusOK, "tenant", view{Title: "Tenant " + t.ID, Here: tenantsPath, Page: page})
}

// fill adds the figures, and marks those that are not known.
func (p *tenantPage) fill() {
	counted := func(label, note string, of func(*callyard.TenantUsage) int64) figure {
		if p.T.Usage == nil {
			return figure{Label: label, Note: note, Unknown: true}
		}
		return figure{Label: label, Note: note, Value: ui.Number(of(p.T.Usage))}
	}
	wrong := counted("Without a result", "failed, denied, expired or unknown", func(*callyard.TenantUsage) int64 { return p.Wrong })
	if p.Wrong > 0 {
		wrong.Tone = "danger"
	}
	waiting := figure{Label: "Waiting for a slot now", Unknown: p.T.Waiting == nil}
	if !waiting.Unknown {
		waiting.Value = ui.Number(*p.T.Waiting)
	}
	p.Figures = []figure{
		counted("Calls", "last 24 hours", func(u *callyard.TenantUsage) int64 { return u.Calls }), wrong,
		counted("Denied", "", func(u *callyard.TenantUsage) int64 { return u.Denied }), counted("Tool errors", "", func(u *callyard.TenantUsage) int64 { return u.ToolErrors }),
		counted("Held for approval", "", func(u *callyard.TenantUsage) int64 { return u.Held }), {Label: "Held now", Value: ui.Number(p.T.Held)}, waiting,
	}
	if f := p.T.InFlight; f != nil {
		p.Figures = append(p.Figures, figure{Label: "In flight now", Value: ui.Number(f.Calls), Note: ui.Number(f.Borrowed) + " of them borrowed, " + ui.Number(f.Lent) + " lent to others"})
	}
}
