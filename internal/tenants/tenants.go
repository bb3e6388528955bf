// Package tenants holds the operator's settings of tenants: the servers that each sees, and its
// share while calls wait.
//
// Calls and every list use one function, [Book.Sees], to decide whether a tenant sees a server. A
// server that matches no tenant is visible to no tenant except the default one.
//
// The package does not know servers, principals or calls.
package tenants

import (
	"cmp"
	"maps"
	"net/url"
	"slices"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Book is the section tenants of the configuration. A nil *Book means that there is no such
// section: every tenant is known and sees every server. It is never changed.
type Book struct {
	of settings.Tenants // the default tenant has the id [schema.DefaultTenant]
}

// New returns the book of the section, or nil if it is empty.
func New(of settings.Tenants) *Book {
	if len(of) == 0 {
		return nil
	}
	return &Book{of}
}

// IDs returns the tenants: the default tenant, then those of the section by name.
func (b *Book) IDs() []schema.TenantID {
	all := []schema.TenantID{schema.DefaultTenant}
	if b != nil {
		for _, id := range slices.Sorted(maps.Keys(b.of)) {
			if !id.Is(schema.DefaultTenant) {
				all = append(all, id)
			}
		}
	}
	return all
}

// Servers returns the patterns of the servers that the tenant sees, or nil for all. Do not change them.
func (b *Book) Servers(tenant schema.TenantID) []string {
	if b == nil {
		return nil
	}
	return b.of[tenant.OrDefault()].Servers
}

// Sees reports whether principals of the tenant see the server: its calls, lists and events. The
// default tenant, which operates the servers, sees all of them unless its own entry names some. Any
// other tenant sees those that its entry names.
func (b *Book) Sees(tenant schema.TenantID, server schema.ServerID) bool {
	if b == nil {
		return true
	}
	t, ok := b.of[tenant.OrDefault()]
	if tenant.Is(schema.DefaultTenant) && len(t.Servers) == 0 {
		return true
	}
	return ok && slices.ContainsFunc(t.Servers, func(p string) bool { return risk.MatchPattern(p, string(server)) })
}

// Apart reports whether the tenant sees only some servers. Information about the whole fleet is not
// for such a tenant.
func (b *Book) Apart(tenant schema.TenantID) bool {
	return b != nil && (!tenant.Is(schema.DefaultTenant) || len(b.of[schema.DefaultTenant].Servers) > 0)
}

// Configured reports whether the section names the tenant.
func (b *Book) Configured(tenant schema.TenantID) bool {
	if b == nil {
		return false
	}
	_, ok := b.of[tenant.OrDefault()]
	return ok
}

// Check returns nil if credentials of the tenant are valid. The error is of KindUnauthenticated.
func (b *Book) Check(tenant schema.TenantID) error {
	if b == nil || b.of.Knows(tenant) {
		return nil
	}
	return schema.Errorf(schema.KindUnauthenticated, "The tenant of this credential is not configured. Ask the operator to add it to the section tenants.")
}

// Receivers returns the receivers of the tenant's approval notifications. platform are those of
// approver.notify. If there is a section tenants, those belong to the default tenant, and another
// tenant has only its own.
func (b *Book) Receivers(tenant schema.TenantID, platform []string) []string {
	if b == nil {
		return platform
	}
	own := b.of[tenant.OrDefault()].Notify.URLs
	if tenant.Is(schema.DefaultTenant) && len(own) == 0 {
		return platform
	}
	return own
}

// AllReceivers returns the receivers of all tenants without duplicates.
func (b *Book) AllReceivers(platform []string) []string {
	all := slices.Clone(platform)
	if b != nil {
		for _, t := range b.of {
			all = append(all, t.Notify.URLs...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SlackChannel returns the channel for a group and calls of the tenant, or "". platform is the
// section approver.slack, whose channels belong to the default tenant.
func (b *Book) SlackChannel(tenant schema.TenantID, group string, platform *settings.Slack) string {
	if b == nil {
		return platform.Channel(group)
	}
	own := b.of[tenant.OrDefault()].Notify
	if tenant.Is(schema.DefaultTenant) && len(own.SlackChannels) == 0 && own.SlackDefaultChannel == "" {
		return platform.Channel(group)
	}
	return cmp.Or(own.SlackChannels[group], own.SlackDefaultChannel)
}

// Limits returns the limits of tenants that limit calls in flight.
func (b *Book) Limits() map[schema.TenantID]settings.TenantLimits {
	if b == nil {
		return nil
	}
	all := make(map[schema.TenantID]settings.TenantLimits)
	for id, t := range b.of {
		if t.Limits.Limited() {
			all[id.OrDefault()] = t.Limits
		}
	}
	return all
}

// Retentions returns the retention of payloads for the tenants that have one.
func (b *Book) Retentions() retention.Periods {
	if b == nil {
		return nil
	}
	all := make(retention.Periods)
	for id, t := range b.of {
		if t.Retention > 0 {
			all[id.OrDefault()] = t.Retention
		}
	}
	return all
}

// Destinations summarizes the destinations of approval notifications. Of URLs it contains only the host.
type Destinations struct {
	Hosts         []string // of the receivers, with the port if given; without duplicates
	SlackChannels int
}

// DestinationsOf returns the destinations of the section approver. They belong to the default tenant or,
// without a section tenants, to all.
func DestinationsOf(a *settings.Approver) Destinations {
	t := Destinations{Hosts: hostsOf(a.Notify.URLs)}
	if a.Slack.Configured() {
		t.SlackChannels = channelsOf(a.Slack.Channels, a.Slack.DefaultChannel)
	}
	return t
}

// Told returns the destinations of the tenant. platform is the return value of [DestinationsOf]. It follows
// the rules of [Book.Receivers] and [Book.SlackChannel].
func (b *Book) Told(tenant schema.TenantID, platform Destinations) Destinations {
	if b == nil {
		return platform
	}
	n := b.of[tenant.OrDefault()].Notify
	own := Destinations{Hosts: hostsOf(n.URLs), SlackChannels: channelsOf(n.SlackChannels, n.SlackDefaultChannel)}
	if tenant.Is(schema.DefaultTenant) {
		if len(n.URLs) == 0 {
			own.Hosts = platform.Hosts
		}
		if own.SlackChannels == 0 {
			own.SlackChannels = platform.SlackChannels
		}
	}
	return own
}

// hostsOf returns the sorted hosts of addresses. It skips an invalid address, with which the
// approver does not start.
func hostsOf(urls []string) []string {
	var all []string
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			all = append(all, u.Host)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// channelsOf returns the number of different Slack channels.
func channelsOf(byGroup map[string]string, others string) int {
	all := make(map[string]struct{}, len(byGroup)+1)
	for _, id := range byGroup {
		all[id] = struct{}{}
	}
	all[others] = struct{}{}
	delete(all, "")
	return len(all)
}

// Weights returns the method Weight, or nil if there is no section tenants.
func (b *Book) Weights() func(schema.TenantID) int {
	if b == nil {
		return nil
	}
	return b.Weight
}

// Weight returns the weight of the tenant's calls for slots while others wait, at least 1.
func (b *Book) Weight(tenant schema.TenantID) int {
	if b == nil {
		return 1
	}
	return max(1, b.of[tenant.OrDefault()].Limits.Weight)
}
