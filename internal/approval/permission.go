package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// longestPermission is the maximum period of a standing permission.
	longestPermission = 7 * 24 * time.Hour
	// keepPermission is the time that an ended permission is still listed.
	keepPermission = 7 * 24 * time.Hour
)

// mayAllow returns the reason why a standing permission cannot be granted with this answer.
// The right to decide at all was checked before.
func mayAllow(a *ledger.Approval, rule *risk.Approval, answer *Answer) error {
	switch {
	case answer.Kind != ledger.Approve:
		return schema.Errorf(schema.KindInvalidRequest, "You can allow calls like this one only when you approve it.").WithCall(a.CallID)
	default:
		if kind, why := NoPermission(a, rule); why != "" {
			return schema.Errorf(kind, "Calls like this one cannot be allowed in advance: %s Approve this call only.", why).WithCall(a.CallID)
		}
	}
	return nil
}

// NoPermission returns a sentence that says why no decision on the approval can grant a
// standing permission, and the kind of the refusal. why is "" if one can. rule is the
// approval's current rule.
func NoPermission(a *ledger.Approval, rule *risk.Approval) (kind schema.Kind, why string) {
	switch {
	case rule.Needed > 1:
		return schema.KindForbidden, fmt.Sprintf("Such calls require %d approvers each time, so one approver cannot allow them in advance.", rule.Needed)
	case a.NoPermission != "":
		return schema.KindForbidden, a.NoPermission
	case a.Edited != nil:
		return schema.KindConflict, "The arguments were edited, so later calls with the requested arguments would differ."
	case a.Binding.ToolDefinitionDigest == "":
		return schema.KindConflict, "The tool's definition is unknown, so a change of it would not be noticed."
	}
	return "", ""
}

// Permissions manages the standing permissions. Calls like the one that a permission was
// granted with run without a question. It is safe for concurrent use.
type Permissions struct {
	records  *records
	runner   string // runs calls by a permission; if empty, none run here
	noPermit func(server schema.ServerID) string
}

// requestedPermission returns the permission that the answer grants, with the digests of the arguments that
// were shown.
func (s *Permissions) requestedPermission(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, answer *Answer) (*ledger.Allow, error) {
	want := answer.Allow
	if want == nil {
		return nil, nil
	}
	now := s.records.wall()
	if until := want.Until; !now.Before(until) || until.After(now.Add(longestPermission)) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A standing permission must end in the future, at most %d days from now.", int(longestPermission/(24*time.Hour)))
	}
	if want.MaxUses < 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The number of uses must not be negative; 0 sets no limit.")
	}
	args, err := s.records.ledger.Arguments(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if schema.Digest(args) != answer.Digest {
		return nil, schema.Errorf(schema.KindConflict, "The arguments have changed since they were shown to you; review them again.")
	}
	pattern, err := want.Pattern.Of(args)
	if err != nil {
		return nil, err
	}
	return &ledger.Allow{Until: want.Until.UTC().Round(0), Pattern: pattern, MaxUses: want.MaxUses}, nil
}

// grantedPermission returns the permission that the record grants, or nil, and the decision that vetoed
// it since, or nil.
func grantedPermission(a *ledger.Approval) (p *ledger.Permission, vetoed *ledger.Decision) {
	counting := a.Counting() // permissions granted under another rule are void
	for i := range counting {
		dec := &counting[i]
		switch {
		case dec.Kind == ledger.Deny, dec.Kind == ledger.Revoke:
			vetoed = dec
		case dec.Kind == ledger.Approve && dec.Allow != nil:
			b := a.Bound()
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

// permit stores the permission that the record grants, and revokes it if the approval was
// vetoed since. It is idempotent.
func (s *Permissions) permit(ctx context.Context, a *ledger.Approval) error {
	p, vetoed := grantedPermission(a)
	if p == nil || p.Until.Before(s.records.wall()) {
		return nil
	}
	if vetoed == nil {
		made, err := s.records.ledger.Permit(ctx, *p)
		if err != nil || !made {
			return err
		}
		s.records.recordPermission(ctx, p)
		// A veto in the meantime did not find the permission yet.
		now, err := s.records.ledger.Current(ctx, schema.OnlyTenant(a.Binding.Tenant), a.ID)
		if err != nil {
			return err
		}
		if _, vetoed = grantedPermission(now); vetoed == nil {
			return nil
		}
	}
	back := ledger.Revocation{By: vetoed.By, Owner: vetoed.Owner, At: vetoed.At, Reason: vetoed.Reason}
	now, err := s.records.ledger.RevokePermission(ctx, p.Tenant, p.ID, back, func(*ledger.Permission) error { return nil })
	switch schema.KindOf(err) {
	case "":
		s.records.recordPermission(ctx, &now)
	case schema.KindNotFound, schema.KindConflict: // never created, or already revoked
		return nil
	}
	return err
}

// standing makes the record of a call run if a standing permission covers it. It first reads
// the permission again and counts the use in one step, so that concurrent calls never exceed
// the number of uses, and no call runs after a revocation was acknowledged.
func (s *Permissions) standing(ctx context.Context, record *ledger.Approval, args []byte) (bool, error) {
	if s.runner == "" {
		return false, nil
	}
	for _, known := range s.records.ledger.Permitting(&record.Binding, record.Rule, args, record.Created) {
		used, err := s.records.ledger.Use(ctx, known.Tenant, known.ID, func(p *ledger.Permission) error {
			giver := schema.Principal{Name: p.By, Owner: p.Owner}
			if s.records.permissionOver(p) || !p.Good(record.Created) || !p.Covers(&record.Binding, record.Rule, args) || Requested(record, giver) {
				return schema.Errorf(schema.KindForbidden, "The permission does not cover this call.")
			}
			return nil
		})
		if err != nil {
			if schema.KindOf(err) != schema.KindForbidden {
				s.records.log.Warn("a standing permission could not be used; people are asked instead", "permission_id", known.ID, "error", err)
			}
			continue
		}
		record.State, record.Permission = ledger.Running, used.ID
		record.Runner = &ledger.Runner{FrontDoor: s.runner, Started: record.Created}
		record.Decisions = []ledger.Decision{{
			By: used.By, Owner: used.Owner, Groups: used.Groups, Kind: ledger.Approve, Reason: used.Reason, At: record.Created, Channel: ledger.ChannelStanding,
		}}
		return true, s.records.sign(record)
	}
	return false, nil
}

// List returns the standing permissions of the tenant, newest first. It includes those that
// have expired or were revoked in the last days.
func (s *Permissions) List(tenant schema.TenantID) []ledger.Permission {
	return s.records.ledger.Permissions(schema.OnlyTenant(tenant))
}

// Revoke revokes a standing permission. When it returns, no further call runs by it. The
// person who granted the permission may revoke it, and so may any member of a group that
// decides. Errors: KindNotFound, KindForbidden, KindConflict if it was already revoked,
// KindInvalidRequest if a reason is missing.
func (s *Permissions) Revoke(ctx context.Context, id string, who schema.Principal, reason string) (*ledger.Permission, error) {
	reason = strings.TrimSpace(reason)
	back := ledger.Revocation{By: who.Name, Owner: who.Owner, At: s.records.wall(), Reason: reason}
	p, err := s.records.ledger.RevokePermission(ctx, who.Tenant, id, back, func(p *ledger.Permission) error { return mayRevoke(p, who, reason) })
	if err != nil {
		return nil, err
	}
	s.records.recordPermission(ctx, &p)
	return &p, nil
}

func mayRevoke(p *ledger.Permission, who schema.Principal, reason string) error {
	if !p.Tenant.Is(who.Tenant) {
		return ledger.NoPermission(p.ID)
	}
	rule := &risk.Approval{}
	if err := json.Unmarshal(p.Rule, rule); err != nil {
		return schema.Errorf(schema.KindInternal, "The rule of permission %s cannot be read: %w", p.ID, err)
	}
	in := func(g string) bool { return slices.Contains(who.Groups, g) }
	if person(who.Name, who.Owner) != person(p.By, p.Owner) && !slices.ContainsFunc(rule.Groups, in) && !slices.ContainsFunc(rule.EscalateTo, in) {
		return schema.Errorf(schema.KindForbidden, "Somebody else granted the permission, and you are not in any of the groups that decide such calls.")
	}
	if rule.Reasons && reason == "" {
		return schema.Errorf(schema.KindInvalidRequest, "This decision requires a reason.")
	}
	return nil
}

// repair stores permissions that an approval granted but a killed process did not store,
// revokes those that were vetoed, and removes those that ended long ago.
func (s *Permissions) repair(ctx context.Context, now time.Time) error {
	known := map[string]*ledger.Permission{}
	for _, p := range s.records.ledger.Permissions(schema.AllTenants()) {
		known[p.ID] = &p
	}
	undone := s.records.ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool {
		p, vetoed := grantedPermission(a)
		if p == nil || a.State == ledger.Pending || !now.Before(p.Until) {
			return false
		}
		there := known[p.ID]
		return there == nil && vetoed == nil || there != nil && vetoed != nil && there.Revoked == nil
	})
	for _, a := range undone {
		if err := s.permit(ctx, a); err != nil {
			return err
		}
	}
	for id, p := range known {
		if p.Until.Add(keepPermission).Before(now) {
			if err := s.records.ledger.ForgetPermission(ctx, p.Tenant, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Permissions) noPermission(server schema.ServerID) string {
	if s.noPermit == nil {
		return ""
	}
	return s.noPermit(server)
}
