package slack

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// message is the record of the Slack message that shows an approval in a channel.
type message struct {
	Approval schema.ApprovalID `json:"approval"`
	Channel  string            `json:"channel"`
	TS       string            `json:"ts,omitempty"` // Slack's message ID; empty until it is posted
	// Shown is the checksum of the displayed card.
	Shown string `json:"shown,omitempty"`
	// Told reports whether the end of the call was posted to the thread. Final reports that the
	// message will not change again.
	Told  bool `json:"told,omitempty"`
	Final bool `json:"final,omitempty"`
	// Unknown reports whether the thread says that the outcome is unknown.
	Unknown bool `json:"unknown,omitempty"`
	// Holder is the approver that may post until Until.
	Holder string    `json:"holder,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

func messageKey(m *message) string { return bus.Token(m.Approval) + "." + bus.Token(m.Channel) }

// cards keeps one message per approval and channel up to date. It is a
// [notify.Channel], and safe for concurrent use.
type cards struct {
	o        *Options
	id       string // ID of this process
	client   *client
	messages *bus.Table[message]

	mu     sync.Mutex
	before map[schema.ApprovalID][]string // channels that had a card at the start, by approval
	again  map[string]bool                // messages to rewrite even if the record says that they are current
}

var _ notify.Channel = (*cards)(nil)

func openCards(ctx context.Context, o *Options, cl *client) (*cards, error) {
	c := &cards{o: o, id: schema.NewID("slack"), client: cl, before: make(map[schema.ApprovalID][]string), again: make(map[string]bool)}
	var err error
	if c.messages, err = slacktable.OpenMessages(ctx, o.Conn, messageKey); err != nil {
		return nil, err
	}
	for _, m := range c.messages.All() {
		if !m.Final {
			c.before[m.Approval] = append(c.before[m.Approval], m.Channel)
		}
	}
	return c, nil
}

// asks returns the channels of the groups that may decide.
func (c *cards) asks(a *ledger.Approval) (all []string) {
	rule, err := approval.Rule(a)
	if err != nil || rule.By != risk.ByGroups {
		return nil
	}
	groups := slices.Clone(rule.Groups)
	if !a.Escalated.IsZero() {
		groups = append(groups, rule.EscalateTo...)
	}
	return c.channels(a.Binding.Tenant, groups)
}

func (c *cards) channels(tenant schema.TenantID, groups []string) (all []string) {
	for _, g := range groups {
		if channel := c.o.Tenants.SlackChannel(tenant, g, &c.o.Config); channel != "" {
			all = append(all, channel)
		}
	}
	return all
}

// moved reports whether the channel was asked only before the approval restarted.
func (c *cards) moved(a *ledger.Approval, channel string) bool {
	return len(a.Restarts) > 0 && !slices.Contains(c.asks(a), channel)
}

// Places implements [notify.Channel]. It includes the channels of groups asked under an earlier
// rule, because their cards must say that they are no longer asked.
func (c *cards) Places(a *ledger.Approval) []string {
	if a.Permission != "" {
		return nil
	}
	all := c.asks(a)
	for _, r := range a.Restarts {
		was := &risk.Approval{}
		if json.Unmarshal(r.Rule, was) == nil {
			all = append(all, c.channels(a.Binding.Tenant, append(was.Groups, was.EscalateTo...))...)
		}
	}
	c.mu.Lock()
	all = append(all, c.before[a.ID]...)
	c.mu.Unlock()
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(channel string) bool {
		m, known := c.messages.Get(messageKey(&message{Approval: a.ID, Channel: channel}))
		// An approval that ended before its message was posted needs no message.
		return known && m.Final || !known && a.State != ledger.Pending
	})
}

// allowed reports whether calls of this level may be decided in Slack.
func (c *cards) allowed(a *ledger.Approval, rule *risk.Approval) bool {
	return a.Bound().Level <= min(rule.SlackLevel, c.o.Config.MaxLevel)
}

// read loads the data of a card.
func (c *cards) read(ctx context.Context, a *ledger.Approval) (*asked, error) {
	rule, err := approval.Rule(a)
	if err != nil {
		return nil, err
	}
	args, err := c.o.Ledger.ArgumentsOf(ctx, a)
	if schema.KindOf(err) == schema.KindNotFound && a.State.Ended() {
		return &asked{Approval: a, rule: rule, args: schema.AsError(err).Detail, page: c.o.Page(a.ID)}, nil
	}
	if err != nil {
		return nil, err
	}
	bound := a.Bound()
	if schema.Digest(args) != bound.ArgumentsDigest {
		return nil, schema.Errorf(schema.KindConflict, "The approval is being changed.")
	}
	definition, err := c.o.Ledger.Definition(ctx, a.Binding.Tenant, a.ID)
	if err != nil {
		return nil, err
	}
	return &asked{Approval: a, rule: rule, args: shownArguments(args, definition), page: c.o.Page(a.ID), decidable: c.allowed(a, rule)}, nil
}

// Show implements [notify.Channel]. It posts or rewrites the card of an approval in a channel, and
// posts the end of the call to the thread.
func (c *cards) Show(ctx context.Context, channel string, a *ledger.Approval) error {
	key := messageKey(&message{Approval: a.ID, Channel: channel})
	m, revision, err := c.messages.Fresh(ctx, key)
	switch {
	case errors.Is(err, bus.ErrNotFound) && a.State != ledger.Pending:
		return nil
	case errors.Is(err, bus.ErrNotFound):
		m = message{Approval: a.ID, Channel: channel}
	case err != nil:
		return err
	case m.Final:
		return nil
	}
	q, err := c.read(ctx, a)
	if err != nil {
		return &notify.Wait{For: time.Second, Alone: true, Err: err}
	}
	q.moves = c.moved(a, channel)
	if m.TS == "" {
		if a.State != ledger.Pending || q.moves {
			return nil
		}
		if m, revision, err = c.post(ctx, q, m, revision); err != nil {
			return err
		}
	}
	return c.rewrite(ctx, q, m, revision)
}

// errPostedElsewhere reports that another approver is posting the message.
func errPostedElsewhere(after time.Duration) error {
	return &notify.Wait{For: max(after, 100*time.Millisecond), Alone: true, Err: errors.New("another approver posts it")}
}

// hold acquires the right to post the message. Only one approver gets it.
func (c *cards) hold(ctx context.Context, m message, revision uint64) (message, uint64, error) {
	now := time.Now().UTC()
	if m.Holder != "" && m.Holder != c.id && now.Before(m.Until) {
		return m, revision, errPostedElsewhere(m.Until.Sub(now))
	}
	m.Holder, m.Until = c.id, now.Add(holdFor)
	return c.store(ctx, m, revision)
}

func (c *cards) store(ctx context.Context, m message, revision uint64) (message, uint64, error) {
	var err error
	if revision == 0 {
		revision, err = c.messages.Create(ctx, m)
	} else {
		revision, err = c.messages.Replace(ctx, m, revision)
	}
	if errors.Is(err, bus.ErrConflict) {
		return m, revision, errPostedElsewhere(0)
	}
	return m, revision, err
}

// note stores the state that Slack already shows. It ignores the end of ctx, because the message
// would otherwise be posted again.
func (c *cards) note(ctx context.Context, m message, revision uint64) (message, uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeFor)
	defer cancel()
	return c.store(ctx, m, revision)
}

func (c *cards) post(ctx context.Context, q *asked, m message, revision uint64) (message, uint64, error) {
	m, revision, err := c.hold(ctx, m, revision)
	if err != nil {
		return m, revision, err
	}
	shown := q.card(c.o.Config.DenyReasons)
	m.TS, err = c.client.send(ctx, m.Channel, shown)
	if unfit(err) {
		shown = q.minimal()
		m.TS, err = c.client.send(ctx, m.Channel, shown)
	}
	if err != nil {
		return m, revision, retry(err)
	}
	m.Shown, m.Holder, m.Until = shown.sum, "", time.Time{}
	return c.note(ctx, m, revision)
}

// rewrite updates a posted message to the current state.
func (c *cards) rewrite(ctx context.Context, q *asked, m message, revision uint64) error {
	key, shown := messageKey(&m), q.card(c.o.Config.DenyReasons)
	over := q.State.Ended() && q.State != ledger.Unknown // an unknown outcome may still be settled
	ending := q.ending()
	late := m.Unknown && q.State != ledger.Unknown // the result arrived after the thread said that it is unknown
	told := ending == "" || m.Told && !late || q.moves
	if shown.sum != m.Shown || c.isStale(key) {
		err := c.client.update(ctx, m.Channel, m.TS, shown)
		if unfit(err) {
			err = c.client.update(ctx, m.Channel, m.TS, q.minimal())
		}
		switch {
		case isMessageGone(err):
			over, told = true, true // the message was deleted
		case err != nil:
			return retry(err)
		}
		m.Shown, m.Final = shown.sum, over && told
		if m, revision, err = c.note(ctx, m, revision); err != nil {
			// Another approver wrote concurrently, and either card may be displayed now.
			c.setStale(key, true)
			return err
		}
		c.setStale(key, false)
	}
	if !told {
		var err error
		if m, revision, err = c.hold(ctx, m, revision); err != nil {
			return err
		}
		if _, err := c.client.send(ctx, m.Channel, card{text: ending + " " + q.page}, api.MsgOptionTS(m.TS)); err != nil && !isMessageGone(err) {
			return retry(err)
		}
		m.Told, m.Unknown, m.Holder, m.Until, m.Final = true, q.State == ledger.Unknown, "", time.Time{}, over
		_, _, err = c.note(ctx, m, revision)
		return err
	}
	if over && !m.Final {
		m.Final = true
		_, _, err := c.note(ctx, m, revision)
		return err
	}
	return nil
}

func (c *cards) isStale(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.again[key]
}

func (c *cards) setStale(key string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		c.again[key] = true
	} else {
		delete(c.again, key)
	}
}

// heal rewrites the clicked card if it is not the recorded one. Such a duplicate exists if the
// response to a post was lost.
func (c *cards) heal(ctx context.Context, tenant schema.TenantID, k click) {
	if k.channel == "" || k.ts == "" {
		return
	}
	m, known := c.messages.Get(messageKey(&message{Approval: k.ref.id, Channel: k.channel}))
	if known && m.TS == k.ts {
		return
	}
	a, err := c.o.Ledger.Current(ctx, schema.OnlyTenant(tenant), k.ref.id)
	if err != nil {
		return
	}
	q, err := c.read(ctx, a)
	if err != nil {
		return
	}
	q.moves = c.moved(a, k.channel)
	if err := c.client.update(ctx, k.channel, k.ts, q.card(c.o.Config.DenyReasons)); err != nil {
		c.o.Log.Warn("an outdated card in Slack cannot be updated", "approval_id", a.ID, "error", err)
	}
}
