package frontdoor

import (
	"context"
	"strings"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/pkg/schema"
)

// openTokens opens the verifier of access tokens. It contacts no issuer, so that the front door
// can start while issuers are down, and starts nothing before the first token.
func (d *FrontDoor) openTokens() (err error) {
	d.tokens, err = token.New(d.o.Config.Issuers, d.o.Log)
	return err
}

// openCallers opens the keys that were created over the API and the authentication of requests.
func (d *FrontDoor) openCallers(ctx context.Context) {
	c := d.o.Config
	d.issued = issued.Open(ctx, issued.Options{Conn: d.o.Stored, Member: d.inSet, Configured: d.keys.All, Reserved: d.reserved, Tenants: d.o.Tenants, Log: d.o.Log})
	if d.tokens.Configured() {
		d.ended = ended.Open(ctx, d.o.Stored, d.o.Log)
	}
	d.callers = callers.New(callers.Options{
		Keys: d.keys, Issued: d.issued, Ended: d.ended, Issuers: c.Issuers, Tokens: d.tokens, Public: strings.TrimRight(c.PublicURL, "/"), Member: d.inSet, Tenants: d.o.Tenants,
	})
}

// reserved returns the reason why no key may have the name of a principal, or "".
func (d *FrontDoor) reserved(name string) string {
	switch {
	case d.keys.Has(name):
		return "is the name of a key of the configuration"
	case d.tokens.Names(name):
		return "begins with the name of an issuer, as the principals of its tokens do"
	case name == usage.Other:
		return "is reserved: usage reports add up the remaining callers under it"
	}
	return ""
}

// ownLimits returns the limits of a principal's key.
func (d *FrontDoor) ownLimits(p *schema.Principal) scope.Limits {
	if d.keys.Has(p.Name) {
		return d.keys.Limits(p.Name)
	}
	return d.issued.Limits(p)
}

// inSet reports whether a set of tools contains a tool.
func (d *FrontDoor) inSet(tenant schema.TenantID, set string, server schema.ServerID, tool string) bool {
	return d.catalog.Sets().Has(tenant, set, server, tool)
}
