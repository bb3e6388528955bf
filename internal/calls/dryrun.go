package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxDryRun limits the number of recorded calls that one dry run reads, newest first.
	maxDryRun = 1_000_000
	// dryRunTime limits the duration of one dry run.
	dryRunTime = time.Minute
)

// DryRunQuery selects the draft policy and the recorded calls of a dry run.
type DryRunQuery struct {
	Policy *risk.Policy
	// From and To bound the admission time of the calls.
	From, To time.Time
	// MaxChanges limits the number of changed decisions that are listed.
	MaxChanges int
}

// DryRun is the result of applying a draft policy to recorded tool calls.
type DryRun struct {
	Version   string         `json:"policy_version" doc:"The version of the draft."`
	Since     time.Time      `json:"since" doc:"The start of the period of the examined calls."`
	Until     time.Time      `json:"until" doc:"The end of the period of the examined calls."`
	Calls     int            `json:"calls" doc:"The number of recorded tool calls with a decision of the policy. The draft was applied to each of them."`
	Changed   int            `json:"changed" doc:"The number of calls that the draft decides differently."`
	Unknown   DryRunUnknown  `json:"unknown" doc:"The number of calls for which the decision of the draft cannot be determined, by reason."`
	NotJudged int            `json:"not_judged" doc:"The number of calls that were refused before the policy was evaluated, such as for invalid arguments. They are not counted in calls."`
	Truncated bool           `json:"truncated,omitempty" doc:"Whether there are more calls than one dry run examines; the oldest are left out."`
	Rules     []DryRunRule   `json:"rules" nullable:"false" doc:"The rules of the draft in their order. The last element, without a name, counts the calls for which no rule decides."`
	Changes   []DryRunChange `json:"changes" nullable:"false" doc:"Calls that the draft decides differently, newest first."`
}

// DryRunUnknown counts the calls whose decision cannot be determined.
type DryRunUnknown struct {
	Total     int `json:"total" doc:"All these calls: the sum of arguments, groups and tools."`
	Arguments int `json:"arguments" doc:"Calls for which a rule reads the arguments, which are not stored."`
	Groups    int `json:"groups" doc:"Calls for which a rule reads the groups of the caller, which were not recorded."`
	Tools     int `json:"tools" doc:"Calls of tools that do not exist any more, so that their risk is not known."`
}

// DryRunRule counts the decisions of one rule.
type DryRunRule struct {
	Rule    string `json:"rule" doc:"The name of the rule; empty for the calls for which no rule decides."`
	Allowed int    `json:"allowed" doc:"The number of calls that this rule allows."`
	Held    int    `json:"held" doc:"The number of calls that this rule holds for approval."`
	Refused int    `json:"refused" doc:"The number of calls that this rule refuses."`
	Unknown int    `json:"unknown" doc:"The number of calls for which it cannot be determined whether this rule decides."`
	Changed int    `json:"changed" doc:"The number of calls that this rule decides differently than recorded."`
}

// DryRunChange is a call on which the draft decides differently.
type DryRunChange struct {
	ID        schema.CallID   `json:"id" doc:"The id of the call."`
	Server    schema.ServerID `json:"server" doc:"The id of the server."`
	Tool      string          `json:"tool" doc:"The name of the tool."`
	Principal string          `json:"principal" doc:"The principal that made the call."`
	Created   time.Time       `json:"created" doc:"The time at which the call was admitted."`
	Was       risk.Decision   `json:"was" enum:"allowed,held,refused" doc:"The recorded decision."`
	WasRule   string          `json:"was_rule,omitempty" doc:"The rule that decided, if one did and its name was recorded."`
	Now       risk.Decision   `json:"now" enum:"allowed,held,refused" doc:"The decision of the draft."`
	NowRule   string          `json:"now_rule,omitempty" doc:"The rule of the draft that decides, if one does."`
}

// DryRun applies a draft policy to the recorded calls of all principals. It uses the gate's
// decision function and the current tool definitions. It does not check permissions: its caller
// must verify that the requester may see all principals. Nothing is run or changed. Errors:
// KindUnavailable, retryable, while another dry run is in progress here; KindTooLarge if it takes
// too long.
func (c *Calls) DryRun(ctx context.Context, q DryRunQuery) (*DryRun, error) {
	if !c.dryRun.TryLock() {
		return nil, schema.Errorf(schema.KindUnavailable, "Another dry run is under way at this front door; try again.").RetryableAfter(2 * time.Second)
	}
	defer c.dryRun.Unlock()
	bounded, cancel := context.WithTimeout(ctx, dryRunTime)
	defer cancel()
	d := dryRun{
		c: c, gate: c.o.Gate.With(q.Policy), most: q.MaxChanges, rules: map[string]*DryRunRule{},
		out: DryRun{Version: q.Policy.Version(), Since: q.From, Until: q.To, Changes: []DryRunChange{}},
	}
	if c.o.Durable != nil {
		d.durable = c.o.Durable.Calls.Arguments()
	}
	for _, name := range append(q.Policy.Rules(), "") {
		d.rule(name)
	}
	var failed error
	err := c.o.Records.Each(bounded, schema.AllTenants(), records.Filter{From: q.From, To: q.To}, func(rec *records.Record) bool {
		if rec.Method != "" && rec.Method != schema.MethodCallTool {
			return true
		}
		if d.out.Calls >= maxDryRun {
			d.out.Truncated = true
			return false
		}
		failed = d.judge(bounded, rec)
		return failed == nil && bounded.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, schema.Errorf(schema.KindCanceled, "The caller disconnected.")
	case bounded.Err() != nil:
		return nil, schema.Errorf(schema.KindTooLarge, "The dry run took longer than %s; choose a shorter time with since and until.", dryRunTime)
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	}
	for _, r := range d.order {
		d.out.Rules = append(d.out.Rules, *r)
	}
	return &d.out, nil
}

// dryRun is a dry run in progress.
type dryRun struct {
	c       *Calls
	gate    *admission.Gate
	durable *batch.ArgumentReader
	most    int
	rules   map[string]*DryRunRule
	order   []*DryRunRule // the draft's rules first
	out     DryRun
}

// rule returns the counts of a rule. Rules of tenant policies follow those of the draft.
func (d *dryRun) rule(name string) *DryRunRule {
	r := d.rules[name]
	if r == nil {
		r = &DryRunRule{Rule: name}
		d.rules[name], d.order = r, append(d.order, r)
	}
	return r
}

// judge applies the draft to one call and counts the decision.
func (d *dryRun) judge(ctx context.Context, rec *records.Record) error {
	was := decided(rec)
	if was == "" {
		d.out.NotJudged++
		return nil
	}
	d.out.Calls++
	call := &schema.Call{Server: rec.Server, Tool: rec.Tool, Principal: schema.Principal{Name: rec.Principal, Owner: rec.Owner, Tenant: rec.Tenant}}
	missing := risk.Missing{Arguments: true, Groups: true}
	if rec.Decision != "" {
		groups, whole := records.SplitGroups(rec.Groups)
		call.Principal.Groups, missing.Groups = groups, !whole
	}
	now, rule, undecided, err := d.gate.Decide(call, missing)
	if err == nil && undecided != "" {
		var known bool
		if call.Arguments, known, err = d.arguments(ctx, rec); err != nil {
			return err
		}
		if known {
			missing.Arguments = false
			now, rule, undecided, err = d.gate.Decide(call, missing)
		}
	}
	switch {
	case err != nil: // the tool or its server no longer exists
		d.out.Unknown.Tools++
		d.out.Unknown.Total++
		return nil
	case undecided != "":
		d.rule(undecided).Unknown++
		d.out.Unknown.Total++
		if missing.Arguments {
			d.out.Unknown.Arguments++
		} else {
			d.out.Unknown.Groups++
		}
		return nil
	}
	d.count(rec, was, now, rule)
	return nil
}

// count adds a decision of the draft to the counts.
func (d *dryRun) count(rec *records.Record, was, now risk.Decision, rule string) {
	r := d.rule(rule)
	switch now {
	case risk.Allowed:
		r.Allowed++
	case risk.Held:
		r.Held++
	default:
		r.Refused++
	}
	if was == now {
		return
	}
	r.Changed++
	d.out.Changed++
	if len(d.out.Changes) < d.most {
		v := rec.View()
		d.out.Changes = append(d.out.Changes, DryRunChange{ID: v.ID, Server: v.Server, Tool: v.Tool, Principal: v.Principal, Created: v.Created, Was: was, WasRule: rec.Rule, Now: now, NowRule: rule})
	}
}

// decided returns the recorded decision on a call, or "" if no policy was evaluated or the
// decision is unknown. For records of older versions it derives the decision of calls that were
// held or ran.
func decided(rec *records.Record) risk.Decision {
	switch {
	case rec.Decision != "":
		return rec.Decision
	case rec.Approval != "" || rec.State == schema.StateHeld:
		return risk.Held
	case rec.Worker != "" || rec.Started != 0:
		return risk.Allowed
	}
	return ""
}

// emptyObject is the digest of {}. Arguments with this digest are known even if they are not
// stored.
var emptyObject = records.DigestOf([]byte("{}"))

// arguments returns the original arguments of a recorded call if they are still stored.
func (d *dryRun) arguments(ctx context.Context, rec *records.Record) (args []byte, known bool, err error) {
	switch {
	case rec.Arguments == emptyObject:
		return []byte("{}"), true, nil
	case rec.Known != "" && d.durable != nil:
		args, err = d.durable.Read(ctx, rec.Tenant, rec.Known)
	case rec.Approval != "" && d.c.o.Ledger != nil:
		args, err = d.c.o.Ledger.Asked(ctx, rec.Tenant, rec.Approval)
		if err != nil && schema.KindOf(err) != schema.KindUnavailable && ctx.Err() == nil {
			err = nil // no longer stored
		}
	}
	return args, err == nil && args != nil, err
}
