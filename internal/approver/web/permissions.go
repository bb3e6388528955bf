package web

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// permissions gives each person access to the standing permissions that they may see and revoke.
// It is safe for concurrent use.
type permissions struct{ o *Options }

// standing is a permission as one person sees it.
type standing struct {
	ledger.Permission
	State string // one of the constants below, with the names of the API
	// May reports whether this person may revoke it. Token is the token of the form for that.
	May   bool
	Token string
	// NeedsReason reports whether revoking it requires a comment.
	NeedsReason bool
}

// States of a permission in the API.
const (
	permissionActive  = "good"
	permissionExpired = "over"
	permissionUsedUp  = "used up"
	permissionRevoked = "revoked"
)

// list returns the permissions that concern the person, newest first.
func (p *permissions) list(who schema.Principal) (seen []standing) {
	now := p.o.Now()
	for _, one := range p.o.Desk.Permissions.List(who.Tenant) {
		rule := &risk.Approval{}
		if err := json.Unmarshal(one.Rule, rule); err != nil {
			p.o.Log.Error("a permission has no readable rule", "permission_id", one.ID, "error", err)
			continue
		}
		s := standing{Permission: one, State: permissionState(&one, now), NeedsReason: rule.Reasons}
		decides := overlap(rule.Groups, who.Groups) || overlap(rule.EscalateTo, who.Groups) || samePerson(who, one.By, one.Owner)
		if !decides && !samePerson(who, one.Requester.Name, one.Requester.Owner) && !overlap(p.o.Observers, who.Groups) && !p.o.open() {
			continue
		}
		s.May = decides && s.State == permissionActive
		seen = append(seen, s)
	}
	return seen
}

func samePerson(who schema.Principal, name, owner string) bool {
	return strings.EqualFold(cmp.Or(who.Owner, who.Name), cmp.Or(owner, name))
}

func permissionState(p *ledger.Permission, now time.Time) string {
	switch {
	case p.Revoked != nil:
		return permissionRevoked
	case !now.Before(p.Until):
		return permissionExpired
	case p.MaxUses > 0 && p.Uses >= p.MaxUses:
		return permissionUsedUp
	}
	return permissionActive
}

// revoke revokes a permission. A person whom it does not concern gets a not-found error.
func (p *permissions) revoke(ctx context.Context, who schema.Principal, id, reason string) (*ledger.Permission, error) {
	if len(reason) > maxReason {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The reason is longer than %d bytes; shorten it.", maxReason)
	}
	if !slices.ContainsFunc(p.list(who), func(s standing) bool { return s.ID == id }) {
		return nil, schema.Errorf(schema.KindNotFound, "The permission does not exist, or you may not see it.")
	}
	return p.o.Desk.Permissions.Revoke(ctx, id, who, reason)
}
