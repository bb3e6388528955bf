package tenants

import (
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// Tenant is a tenant, with what it sees and uses.
type Tenant struct {
	ID        schema.TenantID `json:"id" doc:"The id of the tenant." example:"billing"`
	Servers   TenantServers   `json:"servers" doc:"The servers that the tenant sees."`
	Sets      []string        `json:"sets" nullable:"false" doc:"The sets of tools that it sees now: its own sets, and the sets of the installation whose servers it sees." example:"[\"research\"]"`
	OwnSets   []string        `json:"own_sets,omitempty" nullable:"false" doc:"The sets that the tenant owns; absent if it has none, and for the default tenant, whose sets belong to the installation." example:"[\"month-end\"]"`
	Policy    TenantPolicy    `json:"policy" doc:"The policy that the tenant adds to that of the platform."`
	Limits    TenantLimits    `json:"limits" doc:"The limits of its calls, and its share if calls wait."`
	InFlight  *TenantInFlight `json:"in_flight,omitempty" doc:"Its calls in flight, as the front doors counted them about a second ago or less; absent if they are not limited."`
	Retention int64           `json:"retention_seconds,omitempty" doc:"The number of seconds for which arguments, results, errors and reasons of its calls are kept after the calls have ended, if that is shorter than the retention of the platform. Absent: the retention of the platform applies." example:"86400"`
	Receivers TenantReceivers `json:"receivers" doc:"The webhooks and Slack channels that are notified of the tenant's approvals, in the configuration of this front door."`
	Keys      int             `json:"keys" doc:"The number of API keys of the tenant that were created with POST /keys." example:"3"`
	Usage     *TenantUsage    `json:"usage,omitempty" doc:"The calls of the last 24 hours; absent if usage cannot be read now."`
	Held      int             `json:"held" doc:"The number of calls that wait for an approval now." example:"0"`
	Waiting   *int            `json:"waiting,omitempty" doc:"The number of calls that wait for a slot of a server at this front door now. Absent if the configuration has no section tenants: all callers then share slots as one tenant." example:"0"`
}

// TenantServers are the servers that a tenant sees.
type TenantServers struct {
	Patterns []string `json:"patterns,omitempty" nullable:"false" doc:"Patterns of the servers that the tenant sees, with * and ?. Absent: it sees every server." example:"[\"ledger\",\"invoices-*\"]"`
	Seen     int      `json:"seen" doc:"The number of servers of the fleet that it sees now." example:"4"`
}

// TenantPolicy is the policy that a tenant adds to that of the platform.
type TenantPolicy struct {
	Own   bool `json:"own" doc:"Whether the tenant has a policy that tightens that of the platform."`
	Rules int  `json:"rules" doc:"The number of rules of this policy; 0 without one." example:"2"`
}

// TenantLimits are the limits of a tenant, and its share if calls wait.
type TenantLimits struct {
	Weight  int  `json:"weight" doc:"The weight of the tenant while calls of several tenants wait for slots, or several tenants borrow calls in flight." example:"1"`
	Nominal *int `json:"nominal,omitempty" doc:"The guaranteed number of calls in flight. Absent: its calls in flight are not limited." example:"40"`
	Borrow  *int `json:"borrow,omitempty" doc:"The number of calls in flight that it may have in addition to nominal, while other tenants do not use theirs. Absent: its calls in flight are not limited." example:"20"`
}

// TenantInFlight are the calls in flight of a tenant with limits at all front doors.
type TenantInFlight struct {
	Calls    int `json:"calls" doc:"The number of its calls in flight." example:"52"`
	Borrowed int `json:"borrowed" doc:"The number of its calls in flight that exceed nominal." example:"12"`
	Lent     int `json:"lent" doc:"The number of calls in flight that other tenants borrow from its nominal number. If several tenants lend, borrowed calls are divided in proportion to their unused numbers." example:"0"`
}

// TenantReceivers are the channels that notify the tenant's approvers.
type TenantReceivers struct {
	Hosts         []string `json:"hosts" nullable:"false" doc:"The hosts of the webhooks, without the rest of their addresses." example:"[\"hooks.example.com\"]"`
	SlackChannels int      `json:"slack_channels" doc:"The number of channels in Slack." example:"0"`
}

// TenantUsage counts the calls of a tenant, as GET /usage does.
type TenantUsage struct {
	From       time.Time `json:"from" doc:"The start of the first hour."`
	To         time.Time `json:"to" doc:"The end of the last hour."`
	Complete   bool      `json:"complete" doc:"Whether all records that were stored at the time of the request are counted."`
	Calls      int64     `json:"calls" doc:"All calls of the period." example:"120"`
	Failed     int64     `json:"failed" doc:"Calls that were refused or failed." example:"2"`
	ToolErrors int64     `json:"tool_errors" doc:"Calls whose result is an error of the tool." example:"1"`
	Denied     int64     `json:"denied" doc:"Calls that the policy, a scope or a person denied." example:"4"`
	Expired    int64     `json:"expired" doc:"Calls that were not approved or not sent to a worker in time." example:"0"`
	Unknown    int64     `json:"unknown" doc:"Calls whose outcome is not known." example:"0"`
	Held       int64     `json:"held" doc:"Calls that waited for an approval, or ran with one." example:"5"`
	Unfinished int64     `json:"unfinished" doc:"Calls that are held, waiting or running." example:"0"`
}

// TenantList is the answer to GET /tenants.
type TenantList struct {
	Tenants []Tenant `json:"tenants" nullable:"false" doc:"The default tenant, then the others by name."`
}

// usageOf returns the usage of one tenant in a report. counts is nil if there were no calls.
func usageOf(r *calls.UsageReport, counts *calls.UsageCounts) *TenantUsage {
	u := &TenantUsage{From: r.From, To: r.To, Complete: r.Complete}
	if c := counts; c != nil {
		u.Calls, u.Failed, u.ToolErrors, u.Denied, u.Expired, u.Unknown, u.Held, u.Unfinished = c.Calls, c.Failed, c.ToolErrors, c.Denied, c.Expired, c.Unknown, c.Held, c.Unfinished
	}
	return u
}
