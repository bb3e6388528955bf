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

// Tenants is the section tenants of the configuration, by the id of the tenant. Without it
// all tenants see all servers, and share slots as if they were one.
type Tenants map[schema.TenantID]Tenant

// Tenant is one entry of the section tenants.
type Tenant struct {
	// Servers are patterns of the servers that the tenant sees ("*" any characters, "?"
	// one). It sees no others, so a server that nobody names is one of the default tenant
	// alone. The default tenant sees every server where its own entry names none.
	Servers []string `yaml:"servers"`
	// Policy is a policy file that counts for calls of the tenant in addition to the file
	// of the key policy: the stricter of the two decides. Empty: there is none.
	Policy string `yaml:"policy"`
	// Limits say what the tenant gets where calls wait.
	Limits TenantLimits `yaml:"limits"`
	// Retention is how long the payloads of its calls are kept after a call has ended, where
	// the platform would keep them longer: from 1h to 30d. Empty: only the platform's
	// retention counts.
	Retention time.Duration `yaml:"retention"`
	// Notify says where people of the tenant are told of its approvals.
	Notify TenantNotify `yaml:"notify"`
}

// TenantLimits are the limits of one tenant.
type TenantLimits struct {
	// Nominal is the number of calls in flight that are the tenant's own: it gets them
	// when it asks. Borrow is how many more it may use while other tenants leave theirs
	// unused. The tenant has no limit where both are 0.
	Nominal int `yaml:"nominal"`
	Borrow  int `yaml:"borrow"`
	// Weight is the share of the slots while calls of several tenants wait, and of what
	// tenants borrow while several want to; 0: 1.
	Weight int `yaml:"weight"`
}

// Limited reports whether the calls in flight of the tenant are limited.
func (l TenantLimits) Limited() bool { return l.Nominal > 0 || l.Borrow > 0 }

// TenantNotify says where people of one tenant are told of its approvals.
type TenantNotify struct {
	// URLs are receivers as those of approver.notify.urls, for approvals of this tenant.
	URLs []string `yaml:"urls"`
	// SlackChannels say where each group is asked, SlackDefaultChannel where groups are that
	// have no channel; without either nobody is asked in Slack about calls of the tenant.
	SlackChannels       map[string]string `yaml:"slack_channels"`
	SlackDefaultChannel string            `yaml:"slack_default_channel"`
}

// mostTenantWeight is the largest share; package dispatch has the same bound.
const mostTenantWeight = 1000

// The bounds of a retention. What is deleted is looked for every few minutes, and nothing with
// payloads of calls is kept for longer than the upper one.
const (
	minRetention = time.Hour
	maxRetention = 30 * 24 * time.Hour
)

// Validate returns the settings that cannot be honoured; see package config.
func (t Tenant) Validate() []config.Fault {
	faults := config.Collector(patterns("servers", t.Servers))
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

// Validate returns what does not fit together in the file; see package config.
func (f File) Validate() []config.Fault {
	var faults config.Collector
	for _, id := range slices.Sorted(maps.Keys(f.Tenants)) {
		t := f.Tenants[id]
		path := "tenants." + string(id)
		if !id.Valid() {
			faults.Addf("tenants", "contains %q, which is no name of a tenant: use 1 to 64 letters, digits, - and _.", id)
		}
		if len(t.Servers) == 0 && !id.Is(schema.DefaultTenant) {
			faults.Addf(path, "names no servers, so the tenant would see none: add servers: [\"*\"] for all of them, or patterns of those that it may see.")
		}
		if t.Limits.Borrow > 0 && !f.Tenants.lendTo(id) {
			faults.Addf(path+".limits.borrow", "is calls of the nominal of other tenants, and no other tenant has one: set limits.nominal of the tenants that lend, or omit borrow.")
		}
		if t.Policy != "" && f.Policy == "" {
			faults.Addf(path+".policy", "tightens the policy of the platform, and there is none: set policy as well.")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.Tenants)) {
		n, path := f.Tenants[id].Notify, "tenants."+string(id)+".notify"
		if len(n.URLs) > 0 && !f.Approver.Notify.Configured() {
			faults.Addf(path+".urls", "needs the section approver.notify: set its urls and secrets_file as well.")
		}
		if (len(n.SlackChannels) > 0 || n.SlackDefaultChannel != "") && !f.Approver.Slack.Configured() {
			faults.Addf(path+".slack_channels", "needs the section approver.slack: set it as well.")
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

// lendTo reports whether another tenant has calls of its own.
func (t Tenants) lendTo(id schema.TenantID) bool {
	for other, of := range t {
		if other != id && of.Limits.Nominal > 0 {
			return true
		}
	}
	return false
}

// Knows reports whether credentials of the tenant count: all do without the section, else
// those of the default tenant and of the tenants that it lists.
func (t Tenants) Knows(id schema.TenantID) bool {
	if len(t) == 0 || id.Is(schema.DefaultTenant) {
		return true
	}
	_, ok := t[id]
	return ok
}
