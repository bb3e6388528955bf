// Package tenants knows what the operator says of tenants: which servers each of them sees,
// and its share where calls wait.
//
// It promises that whether a tenant sees a server is judged in one place, [Book.Sees], which
// calls and every list ask, and that a server which nobody names is not seen by a tenant.
//
// It refuses to know servers, principals and calls.
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

// Book is the section tenants of the configuration. A nil *Book is one without the section:
// every tenant is known and sees every server. It is never changed.
type Book struct {
	of settings.Tenants // the default tenant has the id [schema.DefaultTenant]
}

// New returns the book of the section, nil for an empty one.
func New(of settings.Tenants) *Book {
	if len(of) == 0 {
		return nil
	}
	return &Book{of}
}

// IDs are the tenants that there are: the default one, then those of the section by name.
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

// Servers are the patterns of the servers that the tenant sees, nil for every one. They are not to
// be changed.
func (b *Book) Servers(tenant schema.TenantID) []string {
	if b == nil {
		return nil
	}
	return b.of[tenant.OrDefault()].Servers
}

// Sees reports whether principals of the tenant see the server: its calls, its lists and its
// events. The default tenant, which operates the servers, sees all of them unless its own
// entry names some. Another one sees those that its entry names.
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

// Apart reports whether the tenant sees less than everything, so that what tells of the
// fleet as a whole is not for it.
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

// Check returns why a credential of the tenant does not count, nil where it does. The error
// is of KindUnauthenticated.
func (b *Book) Check(tenant schema.TenantID) error {
	if b == nil || b.of.Knows(tenant) {
		return nil
	}
	return schema.Errorf(schema.KindUnauthenticated, "The tenant of this credential is not configured. Ask the operator to add it to the section tenants.")
}

// Receivers are the addresses that are told of approvals of the tenant; platform are those of
// approver.notify. They are of the default tenant where tenants are kept apart: those of
// another one are its own alone.
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

// AllReceivers are the receivers of all tenants, each once.
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

// SlackChannel is where a group is asked about calls of the tenant, "" for nowhere; platform is
// the section approver.slack, whose channels are of the default tenant.
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

// Limits returns the limits of the tenants whose calls in flight are limited.
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

// Retentions returns how long payloads of calls are kept, for the tenants that say so.
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

// Told is where people are told of approvals, without what a URL has in addition to its host.
type Told struct {
	Hosts         []string // of the receivers, with the port where one is given; each once
	SlackChannels int
}

// ToldBy are the places of the section approver: those of the default tenant, and without the
// section tenants of all.
func ToldBy(a *settings.Approver) Told {
	t := Told{Hosts: hostsOf(a.Notify.URLs)}
	if a.Slack.Configured() {
		t.SlackChannels = channelsOf(a.Slack.Channels, a.Slack.DefaultChannel)
	}
	return t
}

// Told are the places of the tenant; platform is what [ToldBy] returned. It goes by the rules of
// [Book.Receivers] and [Book.SlackChannel].
func (b *Book) Told(tenant schema.TenantID, platform Told) Told {
	if b == nil {
		return platform
	}
	n := b.of[tenant.OrDefault()].Notify
	own := Told{Hosts: hostsOf(n.URLs), SlackChannels: channelsOf(n.SlackChannels, n.SlackDefaultChannel)}
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

// hostsOf are the hosts of addresses, sorted. One that cannot be read has none: the approver does
// not start with it.
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

// channelsOf is how many channels there are in Slack.
func channelsOf(byGroup map[string]string, others string) int {
	all := make(map[string]struct{}, len(byGroup)+1)
	for _, id := range byGroup {
		all[id] = struct{}{}
	}
	all[others] = struct{}{}
	delete(all, "")
	return len(all)
}

// Weights returns Weight, nil where tenants are not kept apart.
func (b *Book) Weights() func(schema.TenantID) int {
	if b == nil {
		return nil
	}
	return b.Weight
}

// Weight is the share of the tenant's calls in the slots while others wait, at least 1.
func (b *Book) Weight(tenant schema.TenantID) int {
	if b == nil {
		return 1
	}
	return max(1, b.of[tenant.OrDefault()].Limits.Weight)
}
