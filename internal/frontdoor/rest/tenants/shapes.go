package tenants

import (
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// Tenant is a tenant, with what it sees and uses.
type Tenant struct {
	ID        schema.TenantID `json:"id" example:"billing"`
	Servers   TenantServers   `json:"servers"`
	Sets      []string        `json:"sets" nullable:"false" doc:"The sets of tools that it sees now: its own, and those of the installation of which it sees every server." example:"[\"research\"]"`
	OwnSets   []string        `json:"own_sets,omitempty" nullable:"false" doc:"Those of the sets that it owns; absent without one, and for the default tenant, whose sets are the installation's." example:"[\"month-end\"]"`
	Policy    TenantPolicy    `json:"policy"`
	Limits    TenantLimits    `json:"limits"`
	InFlight  *TenantInFlight `json:"in_flight,omitempty" doc:"Its calls in flight, as the front doors counted them within the last second or so; absent if they are not limited."`
	Retention int64           `json:"retention_seconds,omitempty" doc:"How long payloads of its calls are kept after their end, where the platform would keep them longer: arguments, results, errors and reasons. Absent: only the platform's retention counts." example:"86400"`
	Receivers TenantReceivers `json:"receivers" doc:"Where people are told of approvals of the tenant, as the configuration of this front door has it."`
	Keys      int             `json:"keys" doc:"The API keys of the tenant that were made with POST /keys." example:"3"`
	Usage     *TenantUsage    `json:"usage,omitempty" doc:"The calls of the last 24 hours; absent if usage cannot be read now."`
	Held      int             `json:"held" doc:"The calls that wait for an approval now." example:"0"`
	Waiting   *int            `json:"waiting,omitempty" doc:"The calls that wait for a slot of a server at this front door now; absent without the section tenants: then all share slots as if they were one tenant." example:"0"`
}

// TenantServers are the servers that a tenant sees.
type TenantServers struct {
	Patterns []string `json:"patterns,omitempty" nullable:"false" doc:"Patterns of the servers that it sees, with * and ?. Absent: it sees every server." example:"[\"ledger\",\"invoices-*\"]"`
	Seen     int      `json:"seen" doc:"The servers of the fleet that it sees now." example:"4"`
}

// TenantPolicy is the policy that a tenant adds to that of the platform.
type TenantPolicy struct {
	Own   bool `json:"own" doc:"Whether the tenant has a policy that tightens that of the platform."`
	Rules int  `json:"rules" doc:"The rules of this policy; 0 without one." example:"2"`
}

// TenantLimits are the limits of a tenant, and its share if calls wait.
type TenantLimits struct {
	Weight  int  `json:"weight" doc:"Its share of the slots while calls of several tenants wait, and of what tenants borrow while several want to." example:"1"`
	Nominal *int `json:"nominal,omitempty" doc:"The calls in flight that are its own. Absent: its calls in flight are not limited." example:"40"`
	Borrow  *int `json:"borrow,omitempty" doc:"How many more calls it may have while other tenants leave theirs unused. Absent: its calls in flight are not limited." example:"20"`
}

// TenantInFlight are the calls in flight of a tenant with limits at all front doors.
type TenantInFlight struct {
	Calls    int `json:"calls" doc:"Its calls in flight." example:"52"`
	Borrowed int `json:"borrowed" doc:"Those of its calls that are beyond its nominal." example:"12"`
	Lent     int `json:"lent" doc:"Calls that other tenants have borrowed of its nominal. If several tenants leave calls unused, what is borrowed is divided in proportion to that." example:"0"`
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
	Complete   bool      `json:"complete" doc:"Whether every record is counted that was stored when the request came."`
	Calls      int64     `json:"calls" example:"120"`
	Failed     int64     `json:"failed" example:"2"`
	ToolErrors int64     `json:"tool_errors" doc:"Calls whose result is an error of the tool." example:"1"`
	Denied     int64     `json:"denied" doc:"Calls that the policy, a scope or a person denied." example:"4"`
	Expired    int64     `json:"expired" example:"0"`
	Unknown    int64     `json:"unknown" doc:"Calls whose outcome is not known." example:"0"`
	Held       int64     `json:"held" doc:"Calls that waited for an approval, or ran with one." example:"5"`
	Unfinished int64     `json:"unfinished" doc:"Calls that are held, wait or run." example:"0"`
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
