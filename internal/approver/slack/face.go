package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// Channel is what decisions bear that were taken here.
const Channel = "slack"

const (
	// postFor bounds the sending of a new message: one that times out may be there
	// all the same. updateFor bounds everything else, which can be repeated.
	postFor   = 8 * time.Second
	updateFor = 4 * time.Second
	// holdFor is how long a message is one approver's to post: longer than that takes.
	holdFor = postFor + 2*time.Second
	// storeFor bounds the note of what was posted.
	storeFor = 5 * time.Second
	// brokenFor is between tries where only an operator can mend it.
	brokenFor = 30 * time.Second
	// maxWork bounds the clicks that are worked on at once.
	maxWork = 64
	// workFor bounds the work for one click.
	workFor = 20 * time.Second
)

// message says which message of Slack shows an approval in a channel.
type message struct {
	Approval string `json:"approval"`
	Channel  string `json:"channel"`
	TS       string `json:"ts,omitempty"` // Slack's name of the message; empty until it is posted
	// Shown is a mark of what it shows.
	Shown string `json:"shown,omitempty"`
	// Told says that the thread told of the end of the call; Final that nothing more
	// comes.
	Told  bool `json:"told,omitempty"`
	Final bool `json:"final,omitempty"`
	// Holder is the approver that posts now, until Until.
	Holder string    `json:"holder,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

func messageKey(m *message) string { return bus.TableKey(m.Approval) + "." + bus.TableKey(m.Channel) }

// Options of the face. All must be set.
type Options struct {
	Config settings.Slack
	Desk   *approval.Desk
	Ledger *ledger.Ledger
	// People is who of Slack is whom; it stays the caller's.
	People *enrol.Book
	// Conn is the connection to NATS; it stays the caller's.
	Conn *bus.Conn
	// Page is the address of an approval's page.
	Page func(id string) string
	Log  *slog.Logger
}

// Face is the approver in Slack. It is safe for concurrent use.
type Face struct {
	o        Options
	id       string // of this process
	secrets  settings.SlackSecrets
	client   *api.Client
	messages *bus.Table[message]
	once     *bus.Once
	feed     *notify.Feed
	idle     func()
	slots    chan struct{}
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu     sync.Mutex
	shut   bool
	before map[string][]string // channels that had a card at the start, by approval
	again  map[string]bool     // messages to be rewritten whatever they are thought to show
}

var _ notify.Face = (*Face)(nil)

// Open opens the face and begins to post; ctx bounds the opening. Slack need not be
// there.
func Open(ctx context.Context, o Options) (*Face, error) {
	s, err := o.Config.Secrets()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // the standard library's own
	f := &Face{
		o: o, id: schema.NewID("face"), secrets: s, idle: transport.CloseIdleConnections, slots: make(chan struct{}, maxWork),
		before: make(map[string][]string), again: make(map[string]bool),
	}
	f.client = api.New(s.Bot, api.OptionAppLevelToken(s.App), api.OptionAPIURL(o.Config.APIURL), api.OptionHTTPClient(&http.Client{Transport: transport}),
		api.OptionLog(log.New(io.Discard, "", 0)))
	if f.messages, err = slacktable.OpenMessages(ctx, o.Conn, messageKey); err != nil {
		return nil, err
	}
	if f.once, err = slacktable.OpenOnce(ctx, o.Conn); err != nil {
		f.messages.Close()
		return nil, err
	}
	for _, m := range f.messages.All() {
		if !m.Final {
			f.before[m.Approval] = append(f.before[m.Approval], m.Channel)
		}
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.feed = notify.Start(notify.Options{Ledger: o.Ledger, Face: f, Name: "Slack", Log: o.Log})
	f.work.Go(f.introduce)
	if s.App != "" {
		f.work.Go(f.listen)
	}
	return f, nil
}

// Close ends the face: what is under way is finished or cut off, and waited for.
// Nothing may be served by it any more.
func (f *Face) Close() {
	f.mu.Lock()
	f.shut = true
	f.mu.Unlock()
	f.cancel()
	f.feed.Close()
	f.work.Wait()
	f.messages.Close()
	f.idle()
}

// begin does the work of a click beside its answer; false where too much is under way.
func (f *Face) begin(work func(ctx context.Context)) bool {
	select {
	case f.slots <- struct{}{}:
	default:
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		<-f.slots
		return false
	}
	f.work.Go(func() {
		defer func() { <-f.slots }()
		ctx, cancel := context.WithTimeout(f.ctx, workFor)
		defer cancel()
		work(ctx)
	})
	return true
}

// introduce asks Slack who we are, so that a wrong token is known before the first
// card.
func (f *Face) introduce() {
	for {
		ctx, cancel := context.WithTimeout(f.ctx, updateFor)
		is, err := f.client.AuthTestContext(ctx)
		cancel()
		var answer api.SlackErrorResponse
		switch {
		case err == nil && is.TeamID != f.o.Config.TeamID:
			f.o.Log.Error("the bot token is of another workspace than approver.slack.team_id; clicks will be refused", "team_id", is.TeamID)
			return
		case err == nil:
			f.o.Log.Info("Slack is connected", "team", is.Team, "team_id", is.TeamID)
			return
		case errors.As(err, &answer):
			f.o.Log.Error("Slack does not take the bot token", "error", answer.Err)
			return
		}
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(brokenFor):
		}
	}
}

// asks returns the channels of the groups that are asked.
func (f *Face) asks(a *ledger.Approval) (all []string) {
	rule, err := approval.Rule(a)
	if err != nil || rule.By != risk.ByGroups {
		return nil
	}
	groups := slices.Clone(rule.Groups)
	if !a.Escalated.IsZero() {
		groups = append(groups, rule.EscalateTo...)
	}
	return f.channels(groups)
}

func (f *Face) channels(groups []string) (all []string) {
	for _, g := range groups {
		if c := f.o.Config.Channel(g); c != "" {
			all = append(all, c)
		}
	}
	return all
}

// moved says that the channel was asked before the approval started again, and is not
// any more.
func (f *Face) moved(a *ledger.Approval, channel string) bool {
	return len(a.Restarts) > 0 && !slices.Contains(f.asks(a), channel)
}

// Places implements [notify.Face]. Channels of groups that were asked under an
// earlier rule are among them: their cards say so.
func (f *Face) Places(a *ledger.Approval) []string {
	if a.Permission != "" {
		return nil
	}
	all := f.asks(a)
	for _, r := range a.Restarts {
		was := &risk.Approval{}
		if json.Unmarshal(r.Rule, was) == nil {
			all = append(all, f.channels(append(was.Groups, was.EscalateTo...))...)
		}
	}
	f.mu.Lock()
	all = append(all, f.before[a.ID]...)
	f.mu.Unlock()
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(channel string) bool {
		m, known := f.messages.Known(messageKey(&message{Approval: a.ID, Channel: channel}))
		// Where nothing was posted, what is over is not news.
		return known && m.Final || !known && a.State != ledger.Pending
	})
}

// allowed says that calls of this level may be decided in Slack.
func (f *Face) allowed(a *ledger.Approval, rule *risk.Approval) bool {
	return a.Bound().Level <= min(rule.SlackLevel, f.o.Config.MaxLevel)
}

// read loads what a card shows.
func (f *Face) read(ctx context.Context, a *ledger.Approval) (*asked, error) {
	rule, err := approval.Rule(a)
	if err != nil {
		return nil, err
	}
	args, err := f.o.Ledger.ArgumentsOf(ctx, a)
	if schema.KindOf(err) == schema.KindNotFound && a.State.Ended() {
		return &asked{Approval: a, rule: rule, args: schema.AsError(err).Detail, page: f.o.Page(a.ID)}, nil
	}
	if err != nil {
		return nil, err
	}
	bound := a.Bound()
	if digest.Of(args) != bound.ArgumentsDigest {
		return nil, schema.Errorf(schema.KindConflict, "The approval is being changed at this moment.")
	}
	definition, err := f.o.Ledger.Definition(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	return &asked{Approval: a, rule: rule, args: visible(args, definition), page: f.o.Page(a.ID), decidable: f.allowed(a, rule)}, nil
}

// Show implements [notify.Face]: it posts the card of an approval in a channel, or
// rewrites it, and tells the thread how the call ended.
func (f *Face) Show(ctx context.Context, channel string, a *ledger.Approval) error {
	key := messageKey(&message{Approval: a.ID, Channel: channel})
	m, revision, err := f.messages.Fresh(ctx, key)
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
	q, err := f.read(ctx, a)
	if err != nil {
		return &notify.Wait{For: time.Second, Alone: true, Err: err}
	}
	q.moves = f.moved(a, channel)
	if m.TS == "" {
		if a.State != ledger.Pending || q.moves {
			return nil
		}
		if m, revision, err = f.post(ctx, q, m, revision); err != nil {
			return err
		}
	}
	return f.rewrite(ctx, q, m, revision)
}

// errOther is for what another approver does at the moment.
func errOther(after time.Duration) error {
	return &notify.Wait{For: max(after, 100*time.Millisecond), Alone: true, Err: errors.New("another approver posts it")}
}

// hold makes the message ours to post. Of several approvers one gets it.
func (f *Face) hold(ctx context.Context, m message, revision uint64) (message, uint64, error) {
	now := time.Now().UTC()
	if m.Holder != "" && m.Holder != f.id && now.Before(m.Until) {
		return m, revision, errOther(m.Until.Sub(now))
	}
	m.Holder, m.Until = f.id, now.Add(holdFor)
	return f.store(ctx, m, revision)
}

func (f *Face) store(ctx context.Context, m message, revision uint64) (message, uint64, error) {
	var err error
	if revision == 0 {
		revision, err = f.messages.Create(ctx, m)
	} else {
		revision, err = f.messages.Replace(ctx, m, revision)
	}
	if errors.Is(err, bus.ErrConflict) {
		return m, revision, errOther(0)
	}
	return m, revision, err
}

// note stores what is true of Slack already: it takes its time also when ours is over.
func (f *Face) note(ctx context.Context, m message, revision uint64) (message, uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeFor)
	defer cancel()
	return f.store(ctx, m, revision)
}

func (f *Face) post(ctx context.Context, q *asked, m message, revision uint64) (message, uint64, error) {
	m, revision, err := f.hold(ctx, m, revision)
	if err != nil {
		return m, revision, err
	}
	c := q.card(f.o.Config.DenyReasons)
	m.TS, err = f.send(ctx, m.Channel, c)
	if unfit(err) {
		c = q.bare()
		m.TS, err = f.send(ctx, m.Channel, c)
	}
	if err != nil {
		return m, revision, f.sorted(err)
	}
	m.Shown, m.Holder, m.Until = c.sum, "", time.Time{}
	return f.note(ctx, m, revision)
}

// send posts a new message, and returns its name. more are options beside the card.
func (f *Face) send(ctx context.Context, channel string, c card, more ...api.MsgOption) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, postFor)
	defer cancel()
	_, ts, err := f.client.PostMessageContext(ctx, channel, append(options(c), more...)...)
	return ts, err
}

func options(c card) []api.MsgOption {
	all := []api.MsgOption{api.MsgOptionText(c.text, true), api.MsgOptionDisableLinkUnfurl(), api.MsgOptionDisableMediaUnfurl()}
	if c.blocks != nil {
		all = append(all, api.MsgOptionBlocks(c.blocks...))
	}
	return all
}

func (f *Face) update(ctx context.Context, channel, ts string, c card) error {
	ctx, cancel := context.WithTimeout(ctx, updateFor)
	defer cancel()
	_, _, _, err := f.client.UpdateMessageContext(ctx, channel, ts, options(c)...)
	return err
}

// rewrite makes a posted message show what is.
func (f *Face) rewrite(ctx context.Context, q *asked, m message, revision uint64) error {
	key, c := messageKey(&m), q.card(f.o.Config.DenyReasons)
	over := q.State.Ended() && q.State != ledger.Unknown // of that one more may be heard
	ending := q.ending()
	told := ending == "" || m.Told || q.moves
	if c.sum != m.Shown || f.isStale(key) {
		err := f.update(ctx, m.Channel, m.TS, c)
		if unfit(err) {
			err = f.update(ctx, m.Channel, m.TS, q.bare())
		}
		switch {
		case gone(err):
			over, told = true, true // somebody removed it
		case err != nil:
			return f.sorted(err)
		}
		m.Shown, m.Final = c.sum, over && told
		if m, revision, err = f.note(ctx, m, revision); err != nil {
			// Another approver wrote at the same time, and nobody knows whose card stands.
			f.setStale(key, true)
			return err
		}
		f.setStale(key, false)
	}
	if !told {
		var err error
		if m, revision, err = f.hold(ctx, m, revision); err != nil {
			return err
		}
		if _, err := f.send(ctx, m.Channel, card{text: ending + " " + q.page}, api.MsgOptionTS(m.TS)); err != nil && !gone(err) {
			return f.sorted(err)
		}
		m.Told, m.Holder, m.Until, m.Final = true, "", time.Time{}, over
		_, _, err = f.note(ctx, m, revision)
		return err
	}
	if over && !m.Final {
		m.Final = true
		_, _, err := f.note(ctx, m, revision)
		return err
	}
	return nil
}

func (f *Face) isStale(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.again[key]
}

func (f *Face) setStale(key string, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is {
		f.again[key] = true
	} else {
		delete(f.again, key)
	}
}

// codeOf is the error that Slack named; empty for others.
func codeOf(err error) string {
	var answer api.SlackErrorResponse
	if errors.As(err, &answer) {
		return answer.Err
	}
	return ""
}

// unfit says that Slack does not take a message as it is.
func unfit(err error) bool {
	return slices.Contains([]string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_arguments"}, codeOf(err))
}

// gone says that there is no such message, or that it cannot be changed any more.
func gone(err error) bool {
	return slices.Contains([]string{"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"}, codeOf(err))
}

// sorted says what an error of Slack means for the next try.
func (f *Face) sorted(err error) error {
	var limited *api.RateLimitedError
	if errors.As(err, &limited) {
		return &notify.Wait{For: max(limited.RetryAfter, time.Second), Err: err}
	}
	switch code := codeOf(err); code {
	case "":
		return fmt.Errorf("reaching Slack: %w", err)
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org":
		return fmt.Errorf("Slack is not well: %w", err)
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return &notify.Wait{For: 5 * time.Second, Err: err}
	case "channel_not_found", "not_in_channel":
		return &notify.Wait{For: brokenFor, Err: fmt.Errorf("invite the app to its channel (/invite @Callyard), and see that approver.slack.channels has the right id: %w", err)}
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope", "no_permission", "is_archived", "restricted_action", "access_denied", "org_login_required", "ekm_access_denied":
		return &notify.Wait{For: brokenFor, Err: fmt.Errorf("an operator has to fix the app or its channel: %w", err)}
	}
	return &notify.Never{Err: err}
}
