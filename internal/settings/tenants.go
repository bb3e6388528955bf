package settings

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/pkg/schema"
)

// Tenants is the section tenants of the configuration, by tenant id. Without it, all tenants see
// all servers and share slots as one tenant.
type Tenants map[schema.TenantID]Tenant

// Tenant is one entry of the section tenants.
type Tenant struct {
	// Servers are patterns of the servers that the tenant sees ("*" any characters, "?" one). It sees
	// no others, so a server that matches no tenant is visible only to the default tenant. The default
	// tenant sees every server if its own entry names none.
	Servers []string `yaml:"servers"`
	// Policy is a policy file for the calls of the tenant, in addition to the file of the key policy.
	// The stricter of the two decides. If empty, there is none.
	Policy string `yaml:"policy"`
	// Limits are the tenant's limits while calls wait.
	Limits TenantLimits `yaml:"limits"`
	// Retention is the time for which the payloads of its calls are kept after a call ends, from 1h
	// to 30d, if the platform would keep them longer. If empty, only the platform's retention applies.
	Retention time.Duration `yaml:"retention"`
	// Notify selects the receivers of the tenant's approval notifications.
	Notify TenantNotify `yaml:"notify"`
}

// TenantLimits are the limits of one tenant.
type TenantLimits struct {
	// Nominal is the number of calls in flight that are reserved for the tenant. Borrow is the number
	// of additional calls while other tenants do not use theirs. The tenant has no limit if both are
	// 0.
	Nominal int `yaml:"nominal"`
	Borrow  int `yaml:"borrow"`
	// Weight is the tenant's share of the slots while calls of several tenants wait, and of borrowed
	// calls while several tenants borrow. 0 means 1.
	Weight int `yaml:"weight"`
}

// Limited reports whether the calls in flight of the tenant are limited.
func (l TenantLimits) Limited() bool { return l.Nominal > 0 || l.Borrow > 0 }

// TenantNotify selects the receivers of one tenant's approval notifications.
type TenantNotify struct {
	// URLs are receivers like those of approver.notify.urls, for approvals of this tenant.
	URLs []string `yaml:"urls"`
	// SlackChannels maps groups to channels. SlackDefaultChannel is for other groups. Without either,
	// no approval request of the tenant goes to Slack.
	SlackChannels       map[string]string `yaml:"slack_channels"`
	SlackDefaultChannel string            `yaml:"slack_default_channel"`
}

// mostTenantWeight is the largest weight. Package dispatch has the same limit.
const mostTenantWeight = 1000

// Limits of a retention. The sweep for expired payloads runs every few minutes, and nothing that
// holds payloads is kept longer than the maximum.
const (
	minRetention = time.Hour
	maxRetention = 30 * 24 * time.Hour
)

// Validate returns the settings that are invalid; see package config.
func (t Tenant) Validate() []config.Fault {
	faults := patterns("servers", t.Servers)
	if w := t.Limits.Weight; w < 0 || w > mostTenantWeight {
		faults.Addf("limits.weight", "must be from 1 to %d; omit it for 1.", mostTenantWeight)
	}
	for _, limit := range []struct {
		key string
		n   int
	}{{"nominal", t.Limits.Nominal}, {"borrow", t.Limits.Borrow}} {
		if limit.n < 0 || limit.n > mostCount {
			faults.Addf("limits."+limit.key, "must be a number of calls in flight from 1 to %d; omit it for 0.", mostCount)
		}
	}
	if r := t.Retention; r != 0 && (r < minRetention || r > maxRetention) {
		faults.Addf("retention", "must be from 1h to 30d; omit it to keep payloads as long as the platform does.")
	}
	for _, group := range slices.Sorted(maps.Keys(t.Notify.SlackChannels)) {
		if !slackChannel.MatchString(t.Notify.SlackChannels[group]) {
			faults.Addf("notify.slack_channels."+group, "%s", notSlackChannel)
		}
	}
	if c := t.Notify.SlackDefaultChannel; c != "" && !slackChannel.MatchString(c) {
		faults.Addf("notify.slack_default_channel", "%s", notSlackChannel)
	}
	return faults
}

// Validate returns the settings that contradict each other; see package config.
func (f File) Validate() []config.Fault {
	var faults config.Collector
	for _, id := range slices.Sorted(maps.Keys(f.Tenants)) {
		t := f.Tenants[id]
		path := "tenants." + string(id)
		if !id.Valid() {
			faults.Addf("tenants", "contains %q, which is not a valid tenant name: use 1 to 64 letters, digits, - and _.", id)
		}
		if len(t.Servers) == 0 && !id.Is(schema.DefaultTenant) {
			faults.Addf(path, "names no servers, so the tenant would see none: add servers: [\"*\"] for all of them, or patterns of those that it may see.")
		}
		if t.Limits.Borrow > 0 && !f.Tenants.lendTo(id) {
			faults.Addf(path+".limits.borrow", "borrows from limits.nominal of other tenants, and no other tenant has one: set limits.nominal of the tenants that lend, or omit borrow.")
		}
		if t.Policy != "" && f.Policy == "" {
			faults.Addf(path+".policy", "tightens the policy of the platform, and there is none: set policy as well.")
		}
		if len(t.Notify.URLs) > 0 && !f.Approver.Notify.Configured() {
			faults.Addf(path+".notify.urls", "needs the section approver.notify: set its urls and secrets_file as well.")
		}
		if (len(t.Notify.SlackChannels) > 0 || t.Notify.SlackDefaultChannel != "") && !f.Approver.Slack.Configured() {
			faults.Addf(path+".notify.slack_channels", "needs the section approver.slack: set it as well.")
		}
	}
	for path, keys := range map[string][]authn.Key{"front_door": f.FrontDoor.Keys, "approver": f.Approver.Keys} {
		for i := range keys {
			if id := keys[i].Tenant; !f.Tenants.Knows(id) {
				faults.Addf(fmt.Sprintf("%s.keys[%d].tenant", path, i), "is %q, and the section tenants does not have it: add it there, or correct the name.", id)
			}
		}
	}
	return faults
}

// lendTo reports whether another tenant has reserved calls that id could borrow.
func (t Tenants) lendTo(id schema.TenantID) bool {
	for other, of := range t {
		if other != id && of.Limits.Nominal > 0 {
			return true
		}
	}
	return false
}

// Knows reports whether credentials of the tenant are valid. Without the section, those of every
// tenant are; with it, those of the default tenant and of listed tenants.
func (t Tenants) Knows(id schema.TenantID) bool {
	if len(t) == 0 || id.Is(schema.DefaultTenant) {
		return true
	}
	_, ok := t[id]
	return ok
}
