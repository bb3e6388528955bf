package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Permission is a standing yes: calls of one requester to one tool run without a
// question, as long as everything is as it was when somebody said so.
type Permission struct {
	ID string `json:"id"`
	// ApprovalID is the approval that it was made from; its arguments are what
	// the pattern's digests are of.
	ApprovalID schema.ApprovalID `json:"approval_id"`
	Tenant     schema.TenantID   `json:"tenant,omitempty"`
	Requester  Requester         `json:"requester"`
	Server     schema.ServerID   `json:"server"`
	Tool       string            `json:"tool"`
	// ToolDefinitionDigest is of the tool that was looked at; another definition
	// is another tool.
	ToolDefinitionDigest string  `json:"tool_definition_digest"`
	Pattern              Pattern `json:"pattern"`
	// Level and Rule are what the policy asked for; where it asks for more or for
	// others, the permission is worth nothing.
	Level int             `json:"level"`
	Rule  json.RawMessage `json:"rule"`
	// By gave it, Owner stands behind that name, in these groups.
	By      string    `json:"by"`
	Owner   string    `json:"owner,omitempty"`
	Groups  []string  `json:"groups,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Channel string    `json:"channel,omitempty"`
	Given   time.Time `json:"given"`
	Until   time.Time `json:"until"`
	// MaxUses bounds Uses; 0 sets no limit, and then uses are not counted.
	MaxUses int `json:"max_uses,omitempty"`
	Uses    int `json:"uses,omitempty"`
	// Revoked says that it was taken back; nothing brings it back again.
	Revoked *Revocation `json:"revoked,omitempty"`
}

// Revocation says who took a permission back.
type Revocation struct {
	By     string    `json:"by"`
	Owner  string    `json:"owner,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// PermissionID returns the id of the permission that an approval gives: each
// gives one at most.
func PermissionID(approvalID schema.ApprovalID) string {
	return "perm_" + strings.TrimPrefix(string(approvalID), "appr_")
}

// Good says that the permission is worth something at that time.
func (p *Permission) Good(now time.Time) bool {
	return p.Revoked == nil && now.Before(p.Until) && !now.Before(p.Given.Add(-maxSkew)) && (p.MaxUses == 0 || p.Uses < p.MaxUses)
}

// maxSkew is what clocks may differ by. A permission from the future was given
// by a clock that has jumped back since, and nobody knows how old it is.
const maxSkew = time.Minute

// Covers says that the permission is for such a call: the binding and the rule
// that would hold it, and its arguments.
func (p *Permission) Covers(b *Binding, rule, args []byte) bool {
	return p.Tenant == b.Tenant && p.Requester == b.Requester && p.Server == b.Server && p.Tool == b.Tool &&
		p.ToolDefinitionDigest != "" && p.ToolDefinitionDigest == b.ToolDefinitionDigest &&
		b.Level <= p.Level && string(p.Rule) == string(rule) && p.Pattern.Fits(args)
}

// Permissions returns every permission of these tenants that this process knows of, the newest
// first.
func (l *Ledger) Permissions(of schema.Tenants) []Permission {
	all := slices.DeleteFunc(l.allowed.All(), func(p Permission) bool { return !of.Include(p.Tenant) })
	slices.SortFunc(all, func(a, b Permission) int { return strings.Compare(b.ID, a.ID) })
	return all
}

// Permitting returns the permissions that are for such a call, as this process
// knows them. It is a hint: [Ledger.Use] decides.
func (l *Ledger) Permitting(b *Binding, rule, args []byte, now time.Time) []Permission {
	var found []Permission
	for _, p := range l.allowed.All() {
		if p.Good(now) && p.Covers(b, rule, args) {
			found = append(found, p)
		}
	}
	return found
}

// Permit stores a permission. One that is there already stays as it is, and
// false is returned.
func (l *Ledger) Permit(ctx context.Context, p Permission) (bool, error) {
	_, err := l.allowed.Create(ctx, p)
	if errors.Is(err, bus.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, unavailable(err, "")
	}
	return true, nil
}

// Use counts one use of a permission of the tenant, where uses are counted, and returns the permission as it
// then stands. fits is asked about the permission as it is stored, not as it was
// known; its error is returned. Who gets KindUnavailable may have used one up
// and must run nothing.
func (l *Ledger) Use(ctx context.Context, tenant schema.TenantID, id string, fits func(*Permission) error) (Permission, error) {
	return l.changePermission(ctx, tenant, id, func(p *Permission) (bool, error) {
		if err := fits(p); err != nil || p.MaxUses == 0 {
			return false, err
		}
		p.Uses++
		return true, nil
	})
}

// RevokePermission takes a permission of the tenant back. One that was taken back already is
// KindConflict.
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

// ForgetPermission removes a permission of the tenant; it must be over for long. One that this
// process does not know stays.
func (l *Ledger) ForgetPermission(ctx context.Context, tenant schema.TenantID, id string) error {
	if p, ok := l.allowed.Get(bus.Token(id)); !ok || !p.Tenant.Is(tenant) {
		return nil
	}
	if err := l.allowed.Delete(ctx, bus.Token(id)); err != nil {
		return unavailable(err, "")
	}
	return nil
}

// changePermission reads a permission of the tenant fresh, lets f change it and stores it when
// f says so and nobody was faster.
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

// permitted says that an approval may begin running: it names the permission and
// who gave it, and its runner.
func (a *Approval) permitted() bool {
	return a.State == Running && a.Permission != "" && a.Runner != nil && a.TokenHash == "" && a.Spent == nil && a.Edited == nil &&
		len(a.Decisions) == 1 && a.Decisions[0].Kind == Approve && a.Decisions[0].Channel == ChannelStanding
}

// ChannelStanding is the channel of a decision that a permission made, and
// ChannelToken of one that the caller made with its token. ChannelCaller is of one
// that the caller made without: the call was held when nobody was there to be given
// a token.
const (
	ChannelStanding = "standing"
	ChannelToken    = "token"
	ChannelCaller   = "caller"
)

// NoPermission is the error for a permission that does not exist, or is of another tenant.
func NoPermission(id string) error {
	return schema.Errorf(schema.KindNotFound, "There is no permission %s, or it ended long ago.", id)
}
