package slack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// decisions handles clicks on cards. It is safe for concurrent use.
type decisions struct {
	o      *Options
	client *client
	cards  *cards
}

// click is one action of one person on one call.
type click struct {
	team, user  string
	channel, ts string // of the card; ts is empty for modals
	trigger     string // opens a modal, within 3 s
	ref         reference
	kind        ledger.DecisionKind
	reason      string
	window      bool // a modal must be opened first
	show        bool
}

// act processes a click after Slack was acknowledged. Only the person who clicked sees its messages.
func (d *decisions) act(ctx context.Context, c *api.InteractionCallback) {
	k, ok := parseClick(c)
	if !ok {
		return
	}
	if err := d.take(ctx, k); err != nil {
		d.refuse(ctx, k, err)
	}
}

// parseClick parses a click. It returns false for actions that are not handled here.
func parseClick(c *api.InteractionCallback) (click, bool) {
	k := click{team: c.Team.ID, user: c.User.ID, channel: cmp.Or(c.Container.ChannelID, c.Channel.ID), ts: c.Container.MessageTs, trigger: c.TriggerID}
	switch c.Type {
	case api.InteractionTypeBlockActions:
		if len(c.ActionCallback.BlockActions) != 1 {
			return k, false
		}
		return k, k.button(c.ActionCallback.BlockActions[0])
	case api.InteractionTypeViewSubmission:
		return k, k.submission(&c.View)
	}
	return k, false
}

// button parses a click on a button or the menu of a card.
func (k *click) button(a *api.BlockAction) (ok bool) {
	switch a.ActionID {
	case actApprove:
		k.kind = ledger.Approve
		k.ref, ok = parseReference(a.Value)
	case actShow:
		k.show = true
		k.ref, ok = parseReference(a.Value)
	case actDeny:
		k.kind = ledger.Deny
		value := a.SelectedOption.Value
		last := strings.LastIndexByte(value, '.')
		if last < 0 {
			return false
		}
		k.ref, ok = parseReference(value[:last])
		if value[last+1:] == "other" {
			k.window = true
		} else if a.SelectedOption.Text != nil {
			k.reason = a.SelectedOption.Text.Text // as shown on the card, even if the configuration has changed since
		}
	}
	return ok
}

// take performs the action, or returns the reason why it cannot.
func (d *decisions) take(ctx context.Context, k click) error {
	who, err := d.o.People.Of(ctx, k.team, k.user)
	if err != nil {
		return err
	}
	none := schema.Errorf(schema.KindNotFound, "The call does not exist, or you may not see it.")
	a, err := d.o.Ledger.Current(ctx, schema.OnlyTenant(who.Tenant), k.ref.id)
	if schema.KindOf(err) == schema.KindNotFound {
		return none
	}
	if err != nil {
		return err
	}
	rule, err := approval.Rule(a)
	if err != nil {
		return err
	}
	if !maySee(rule, who) {
		return none
	}
	defer d.cards.heal(ctx, who.Tenant, k)
	switch {
	case referenceTo(a) != k.ref:
		return schema.Errorf(schema.KindConflict, "The arguments changed since this card was posted; review the call again.")
	case k.show:
		return d.showAll(ctx, k, a)
	case !d.cards.allowed(a, rule):
		return schema.Errorf(schema.KindForbidden, "Calls of risk level %d cannot be decided in Slack. Decide on the request's page: %s", a.Bound().Level, d.o.Page(a.ID))
	}
	if k.kind == ledger.Approve {
		q, err := d.cards.read(ctx, a)
		if err != nil {
			return err
		}
		if !q.mayApprove() {
			return schema.Errorf(schema.KindForbidden, "Approve this call on the request's page: %s", q.page)
		}
	}
	if k.window || rule.Reasons && k.reason == "" {
		return d.askReason(ctx, k, a)
	}
	bound := a.Bound()
	answer := approval.Answer{Kind: k.kind, Reason: k.reason, Digest: bound.ArgumentsDigest}
	_, err = d.o.Desk.Decide(ctx, a.ID, answer, who, Channel)
	return err
}

// maySee reports whether a person may see the call because they are asked, or will be on
// escalation.
func maySee(rule *risk.Approval, who schema.Principal) bool {
	return slices.ContainsFunc(who.Groups, func(g string) bool { return slices.Contains(rule.Groups, g) || slices.Contains(rule.EscalateTo, g) })
}

// refuse sends the reason of a refusal to the person who clicked. The sentence is safe for callers:
// it contains no arguments.
func (d *decisions) refuse(ctx context.Context, k click, err error) {
	e := schema.AsError(err)
	if problem.Status(e.Kind) >= 500 {
		d.o.Log.Error("a click in Slack failed", "approval_id", k.ref.id, "error", err)
	}
	if k.channel == "" {
		return
	}
	if err := d.client.whisper(ctx, k.channel, k.user, e.Detail); err != nil {
		d.o.Log.Warn("the reason for a refused click cannot be sent to the user in Slack", "approval_id", k.ref.id, "error", err)
	}
}
