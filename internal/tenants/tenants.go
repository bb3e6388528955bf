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
	"slices"

	"github.com/callyard/callyard/internal/settings"
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
