package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

const (
	// longestPermission is how long a standing permission may be good for.
	longestPermission = 7 * 24 * time.Hour
	// keepPermission is how long one that is over is still shown.
	keepPermission = 7 * 24 * time.Hour
)

// mayAllow says why the wish for a standing permission does not count. Who may
// decide at all was asked before.
func mayAllow(a *ledger.Approval, rule *risk.Approval, answer *Answer) error {
	switch {
	case answer.Kind != ledger.Approve:
		return schema.Errorf(schema.KindInvalidRequest, "Only who approves a call can allow calls like it.").WithCall(a.CallID)
	default:
		if kind, why := NoPermission(a, rule); why != "" {
			return schema.Errorf(kind, "Calls like this one cannot be allowed from now on: %s Approve this one only.", why).WithCall(a.CallID)
		}
	}
	return nil
}

// NoPermission says in a sentence why no decision on the approval can allow calls like it
// from now on, and as what such a wish is refused; "" where one can. rule is the one in
// force for the approval.
func NoPermission(a *ledger.Approval, rule *risk.Approval) (kind schema.Kind, why string) {
	switch {
	case rule.Needed > 1:
		return schema.KindForbidden, fmt.Sprintf("Such a call needs %d people each time, so one of them cannot allow the same again.", rule.Needed)
	case a.NoPermission != "":
		return schema.KindForbidden, a.NoPermission
	case a.Edited != nil:
		return schema.KindConflict, "The arguments were edited, so what runs is not what will be asked for again."
	case a.Binding.ToolDefinitionDigest == "":
		return schema.KindConflict, "It is not known how the tool was defined, so nobody would see it change."
	}
	return "", ""
}

// wish returns what the answer allows, with the digests of the arguments that
// were shown.
func (d *Desk) wish(ctx context.Context, id string, answer *Answer) (*ledger.Allow, error) {
	want := answer.Allow
	if want == nil {
		return nil, nil
	}
	now := d.wall()
	if until := want.Until; !now.Before(until) || until.After(now.Add(longestPermission)) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A standing permission is good until a time to come, at most %d days from now.", int(longestPermission/(24*time.Hour)))
	}
	if want.MaxUses < 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The number of uses is negative; 0 sets no limit.")
	}
	args, err := d.ledger.Arguments(ctx, id)
	if err != nil {
		return nil, err
	}
	if digest.Of(args) != answer.Digest {
		return nil, schema.Errorf(schema.KindConflict, "The arguments were changed since they were shown to you; look at them again.")
	}
	pattern, err := want.Pattern.Of(args)
	if err != nil {
		return nil, err
	}
	return &ledger.Allow{Until: want.Until.UTC().Round(0), Pattern: pattern, MaxUses: want.MaxUses}, nil
}

// given returns the permission that the record gives, nil for none, and whether
// it was vetoed since.
func given(a *ledger.Approval) (p *ledger.Permission, vetoed *ledger.Decision) {
	counting := a.Counting() // what was allowed under another rule is void
	for i := range counting {
		dec := &counting[i]
		switch {
		case dec.Kind == ledger.Deny, dec.Kind == ledger.Revoke:
			vetoed = dec
		case dec.Kind == ledger.Approve && dec.Allow != nil:
			b := &a.Binding
			p = &ledger.Permission{
				ID: ledger.PermissionID(a.ID), ApprovalID: a.ID, Tenant: b.Tenant, Requester: b.Requester, Server: b.Server, Tool: b.Tool,
				ToolDefinitionDigest: b.ToolDefinitionDigest, Pattern: dec.Allow.Pattern, Level: b.Level, Rule: a.Rule,
				By: dec.By, Owner: dec.Owner, Groups: dec.Groups, Reason: dec.Reason, Channel: dec.Channel,
				Given: dec.At, Until: dec.Allow.Until, MaxUses: dec.Allow.MaxUses,
			}
		}
	}
	return p, vetoed
}

// permit stores the permission that the record gives, and takes it back where
// the approval was vetoed since. Doing it again changes nothing.
func (d *Desk) permit(ctx context.Context, a *ledger.Approval) error {
	p, vetoed := given(a)
	if p == nil || p.Until.Before(d.wall()) {
		return nil
	}
	if vetoed == nil {
		made, err := d.ledger.Permit(ctx, *p)
		if err != nil || !made {
			return err
		}
		d.tellPermission(ctx, p)
		// A veto that came in between did not find the permission yet.
		now, err := d.ledger.Current(ctx, a.ID)
		if err != nil {
			return err
		}
		if _, vetoed = given(now); vetoed == nil {
			return nil
		}
	}
	back := ledger.Revocation{By: vetoed.By, Owner: vetoed.Owner, At: vetoed.At, Reason: vetoed.Reason}
	now, err := d.ledger.RevokePermission(ctx, p.ID, back, func(*ledger.Permission) error { return nil })
	switch schema.KindOf(err) {
	case "":
		d.tellPermission(ctx, &now)
	case schema.KindNotFound, schema.KindConflict: // it was never made, or is taken back
		return nil
	}
	return err
}

func (d *Desk) tellPermission(ctx context.Context, p *ledger.Permission) {
	if d.audit != nil {
		all := permissionHistory(p)
		d.write(ctx, all[len(all)-1])
	}
}

// spentTime says that the permission's time is over.
func (d *Desk) spentTime(p *ledger.Permission) bool {
	return d.patience.over(p.ID, p.Given, p.Until, d.now())
}

// standing makes the record of a call run by a permission, where there is one for
// it. It is read anew, and its use counted, before anything else: of many calls at
// once none is over the number, and none comes after a revocation that was
// answered.
func (d *Desk) standing(ctx context.Context, record *ledger.Approval, args []byte) (bool, error) {
	if d.runner == "" {
		return false, nil
	}
	for _, known := range d.ledger.Permitting(&record.Binding, record.Rule, args, record.Created) {
		used, err := d.ledger.Use(ctx, known.ID, func(p *ledger.Permission) error {
			giver := schema.Principal{Name: p.By, Owner: p.Owner}
			if d.spentTime(p) || !p.Good(record.Created) || !p.Covers(&record.Binding, record.Rule, args) || Requested(record, giver) {
				return schema.Errorf(schema.KindForbidden, "The permission is not for this call.")
			}
			return nil
		})
		if err != nil {
			if schema.KindOf(err) != schema.KindForbidden {
				d.log.Warn("a standing permission could not be used; people are asked instead", "permission_id", known.ID, "error", err)
			}
			continue
		}
		record.State, record.Permission = ledger.Running, used.ID
		record.Runner = &ledger.Runner{FrontDoor: d.runner, Started: record.Created}
		record.Decisions = []ledger.Decision{{
			By: used.By, Owner: used.Owner, Groups: used.Groups, Kind: ledger.Approve, Reason: used.Reason, At: record.Created, Channel: ledger.ChannelStanding,
		}}
		return true, d.sign(record)
	}
	return false, nil
}

// Permissions returns the standing permissions, the newest first: those that are
// good, and for some days those that are over or were taken back.
func (d *Desk) Permissions(context.Context) []ledger.Permission { return d.ledger.Permissions() }

// RevokePermission takes a standing permission back: when it returns, no further
// call runs by it. Whoever gave it may do that, and whoever is in a group that
// decides. Errors: KindNotFound, KindForbidden, KindConflict when it was taken
// back already, KindInvalidRequest for a missing reason.
func (d *Desk) RevokePermission(ctx context.Context, id string, who schema.Principal, reason string) (*ledger.Permission, error) {
	back := ledger.Revocation{By: who.Name, Owner: who.Owner, At: d.wall(), Reason: reason}
	p, err := d.ledger.RevokePermission(ctx, id, back, func(p *ledger.Permission) error { return mayRevoke(p, who, reason) })
	if err != nil {
		return nil, err
	}
	d.tellPermission(ctx, &p)
	return &p, nil
}

func mayRevoke(p *ledger.Permission, who schema.Principal, reason string) error {
	rule := &risk.Approval{}
	if err := json.Unmarshal(p.Rule, rule); err != nil {
		return schema.Errorf(schema.KindInternal, "The rule of permission %s cannot be read: %w", p.ID, err)
	}
	in := func(g string) bool { return slices.Contains(who.Groups, g) }
	if person(who.Name, who.Owner) != person(p.By, p.Owner) && !slices.ContainsFunc(rule.Groups, in) && !slices.ContainsFunc(rule.EscalateTo, in) {
		return schema.Errorf(schema.KindForbidden, "The permission was given by somebody else, and you are in none of the groups that decide such calls.")
	}
	if rule.Reasons && reason == "" {
		return schema.Errorf(schema.KindInvalidRequest, "A reason is required with this decision.")
	}
	return nil
}

// mendPermissions makes those that an approval gave and a lost process did not
// store, takes back those that were vetoed, and forgets those that are over for
// long.
func (d *Desk) mendPermissions(ctx context.Context, now time.Time) error {
	known := map[string]*ledger.Permission{}
	for _, p := range d.ledger.Permissions() {
		known[p.ID] = &p
	}
	undone := d.ledger.Where(func(a *ledger.Approval) bool {
		p, vetoed := given(a)
		if p == nil || a.State == ledger.Pending || !now.Before(p.Until) {
			return false
		}
		there := known[p.ID]
		return there == nil && vetoed == nil || there != nil && vetoed != nil && there.Revoked == nil
	})
	for _, a := range undone {
		if err := d.permit(ctx, a); err != nil {
			return err
		}
	}
	for id, p := range known {
		if p.Until.Add(keepPermission).Before(now) {
			if err := d.ledger.ForgetPermission(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}
