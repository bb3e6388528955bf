package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Permission is a standing approval: calls of one requester to one tool run without a separate approval,
// as long as the tool, the policy's requirements and the arguments match those at the time it was given.
type Permission struct {
	ID string `json:"id"`
	// ApprovalID is the approval from which it was created. The digests of the pattern are of its
	// arguments.
	ApprovalID schema.ApprovalID `json:"approval_id"`
	Tenant     schema.TenantID   `json:"tenant,omitempty"`
	Requester  Requester         `json:"requester"`
	Server     schema.ServerID   `json:"server"`
	Tool       string            `json:"tool"`
	// ToolDefinitionDigest is that of the tool at the time. The permission does not cover another
	// definition.
	ToolDefinitionDigest string  `json:"tool_definition_digest"`
	Pattern              Pattern `json:"pattern"`
	// Level and Rule are the policy's requirements at the time. If the policy now requires more or
	// other approvals, the permission does not apply.
	Level int             `json:"level"`
	Rule  json.RawMessage `json:"rule"`
	// By gave it, with these groups. Owner is the person behind that name.
	By      string    `json:"by"`
	Owner   string    `json:"owner,omitempty"`
	Groups  []string  `json:"groups,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Channel string    `json:"channel,omitempty"`
	Given   time.Time `json:"given"`
	Until   time.Time `json:"until"`
	// MaxUses limits Uses; 0 means no limit, and uses are not counted.
	MaxUses int `json:"max_uses,omitempty"`
	Uses    int `json:"uses,omitempty"`
	// Revoked is set if it was revoked, which is final.
	Revoked *Revocation `json:"revoked,omitempty"`
}

// Revocation records who revoked a permission.
type Revocation struct {
	By     string    `json:"by" doc:"The person who revoked it."`
	Owner  string    `json:"owner,omitempty" doc:"The owner of the credential of that person; absent if it has none."`
	At     time.Time `json:"at" doc:"When it was revoked."`
	Reason string    `json:"reason,omitempty" doc:"The reason that the person gave; absent if there was none."`
}

// PermissionID returns the id of the permission that an approval gives. Each gives at most one.
func PermissionID(approvalID schema.ApprovalID) string {
	return "perm_" + strings.TrimPrefix(string(approvalID), "appr_")
}

// Good reports whether the permission is valid at that time.
func (p *Permission) Good(now time.Time) bool {
	return p.Revoked == nil && now.Before(p.Until) && !now.Before(p.Given.Add(-maxSkew)) && (p.MaxUses == 0 || p.Uses < p.MaxUses)
}

// maxSkew is the maximum clock difference. A permission with a later time was given by a clock that has
// been set back since, so its age is unknown.
const maxSkew = time.Minute

// Covers reports whether the permission covers a call with this binding, the rule that would hold it, and
// its arguments.
func (p *Permission) Covers(b *Binding, rule, args []byte) bool {
	return p.Tenant == b.Tenant && p.Requester == b.Requester && p.Server == b.Server && p.Tool == b.Tool &&
		p.ToolDefinitionDigest != "" && p.ToolDefinitionDigest == b.ToolDefinitionDigest &&
		b.Level <= p.Level && string(p.Rule) == string(rule) && p.Pattern.Fits(args)
}

// Permissions returns all permissions of these tenants in this process's view, newest first.
func (l *Ledger) Permissions(of schema.Tenants) []Permission {
	all := slices.DeleteFunc(l.allowed.All(), func(p Permission) bool { return !of.Include(p.Tenant) })
	slices.SortFunc(all, func(a, b Permission) int { return cmp.Or(b.Given.Compare(a.Given), strings.Compare(b.ID, a.ID)) })
	return all
}

// Permitting returns the permissions that cover such a call, in this process's view. It may be stale:
// [Ledger.Use] decides.
func (l *Ledger) Permitting(b *Binding, rule, args []byte, now time.Time) []Permission {
	var found []Permission
	for _, p := range l.allowed.All() {
		if p.Good(now) && p.Covers(b, rule, args) {
			found = append(found, p)
		}
	}
	return found
}

// Permit stores a permission. If it exists already, it is unchanged and Permit returns false, as it does for
// one that was removed: its approval exists for longer, and must not restore it.
func (l *Ledger) Permit(ctx context.Context, p Permission) (bool, error) {
	_, err := l.allowed.Replace(ctx, p, 0) // Create would follow a removal
	if errors.Is(err, bus.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, unavailable(err, "")
	}
	return true, nil
}

// Use counts one use of a permission of the tenant, if uses are limited, and returns the updated
// permission. fits checks the permission as it is stored; its error is returned. After an error of
// KindUnavailable, a use may have been counted, and the call must not run.
func (l *Ledger) Use(ctx context.Context, tenant schema.TenantID, id string, fits func(*Permission) error) (Permission, error) {
	return l.changePermission(ctx, tenant, id, func(p *Permission) (bool, error) {
		if err := fits(p); err != nil || p.MaxUses == 0 {
			return false, err
		}
		p.Uses++
		return true, nil
	})
}

// RevokePermission revokes a permission of the tenant. The error is of KindConflict if it was revoked
// already.
func (l *Ledger) RevokePermission(ctx context.Context, tenant schema.TenantID, id string, r Revocation, may func(*Permission) error) (Permission, error) {
	return l.changePermission(ctx, tenant, id, func(p *Permission) (bool, error) {
		if err := may(p); err != nil {
			return false, err
		}
		if p.Revoked != nil {
			return false, schema.Errorf(schema.KindConflict, "Permission %s has already been revoked.", id)
		}
		p.Revoked = &r
		return true, nil
	})
}

// ForgetPermission removes a permission of the tenant, which must have ended long ago. A permission that is
// not in this process's view is not removed.
func (l *Ledger) ForgetPermission(ctx context.Context, tenant schema.TenantID, id string) error {
	if p, ok := l.allowed.Get(bus.Token(id)); !ok || !p.Tenant.Is(tenant) {
		return nil
	}
	if err := l.allowed.Delete(ctx, bus.Token(id)); err != nil {
		return unavailable(err, "")
	}
	return nil
}

// changePermission reads a permission of the tenant from the leader, calls f to change it, and stores it by
// compare-and-set if f returns true.
func (l *Ledger) changePermission(ctx context.Context, tenant schema.TenantID, id string, f func(*Permission) (bool, error)) (Permission, error) {
	for range maxTries {
		p, revision, err := l.allowed.Fresh(ctx, bus.Token(id))
		if errors.Is(err, bus.ErrNotFound) {
			return p, NoPermission(id)
		}
		if err != nil {
			return p, unavailable(err, "")
		}
		if !p.Tenant.Is(tenant) {
			return Permission{}, NoPermission(id)
		}
		store, err := f(&p)
		if err != nil || !store {
			return p, err
		}
		if _, err = l.allowed.Replace(ctx, p, revision); err == nil {
			return p, nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return p, unavailable(err, "")
		}
	}
	return Permission{}, schema.Errorf(schema.KindConflict, "Too many concurrent uses of permission %s; try again.", id).RetryableAfter(0)
}

// permitted reports whether an approval may start in state running: it names the permission and who gave
// it, and its runner.
func (a *Approval) permitted() bool {
	return a.State == Running && a.Permission != "" && a.Runner != nil && a.TokenHash == "" && a.Spent == nil && a.Edited == nil &&
		len(a.Decisions) == 1 && a.Decisions[0].Kind == Approve && a.Decisions[0].Channel == ChannelStanding
}

// Channels of decisions that no person made in a channel. ChannelStanding is for decisions by a
// permission. ChannelToken is for decisions by the caller with its token. ChannelCaller is for
// decisions by the caller without a token, because no caller was present to receive one when the call
// was held.
const (
	ChannelStanding = "standing"
	ChannelToken    = "token"
	ChannelCaller   = "caller"
)

// NoPermission returns the error for a permission that does not exist, or belongs to another tenant.
func NoPermission(id string) error {
	return schema.Errorf(schema.KindNotFound, "There is no permission %s, or it ended long ago.", id)
}
