package slack

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"time"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
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
	// brokenFor is between tries where only an operator can repair it.
	brokenFor = 30 * time.Second
	// maxWork bounds the clicks that are worked on at once.
	maxWork = 64
	// workFor bounds the work for one click.
	workFor = 20 * time.Second
)

// Options of the app. All must be set.
type Options struct {
	Config settings.Slack
	Desk   *approval.Desk
	Ledger *ledger.Ledger
	// People maps Slack accounts to principals; it stays the caller's.
	People *enrol.Book
	// Conn is the connection to NATS; it stays the caller's.
	Conn *bus.Conn
	// Page is the address of an approval's page.
	Page func(id schema.ApprovalID) string
	// Tenants say which channels are whose; nil: those of Config are everybody's.
	Tenants *tenants.Book
	Log     *slog.Logger
}

// App is the approver in Slack. It is safe for concurrent use.
type App struct {
	o      *Options
	client *client
	cards  *cards
	intake *intake
	feed   *notify.Feed
	idle   func() // closes the connections that are kept
}

// Open opens the app and begins to post; ctx bounds the opening. Slack need not be
// there.
func Open(ctx context.Context, o Options) (*App, error) {
	s, err := o.Config.Secrets()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // the standard library's own
	cl := &client{api.New(s.Bot, api.OptionAppLevelToken(s.App), api.OptionAPIURL(o.Config.APIURL), api.OptionHTTPClient(&http.Client{Transport: transport}),
		api.OptionLog(log.New(io.Discard, "", 0)))}
	a := &App{o: &o, client: cl, idle: transport.CloseIdleConnections}
	if a.cards, err = openCards(ctx, a.o, cl); err != nil {
		return nil, err
	}
	once, err := slacktable.OpenOnce(ctx, o.Conn)
	if err != nil {
		a.cards.messages.Close()
		return nil, err
	}
	a.intake = &intake{
		o: a.o, signing: s.Signing, client: cl, once: once, slots: make(chan struct{}, maxWork),
		decisions: &decisions{o: a.o, client: cl, cards: a.cards}, commands: &commands{a.o},
	}
	a.intake.ctx, a.intake.cancel = context.WithCancel(context.Background())
	a.feed = notify.Start(notify.Options{Ledger: o.Ledger, Channel: a.cards, Name: "Slack", Log: o.Log})
	a.intake.work.Go(func() { a.introduce(a.intake.ctx) })
	if s.App != "" {
		a.intake.work.Go(a.intake.listen)
	}
	return a, nil
}

// Close ends the app: what is under way is finished or canceled, and waited for.
// Nothing may be served by it any more.
func (a *App) Close() {
	a.intake.stop()
	a.feed.Close()
	a.intake.work.Wait()
	a.cards.messages.Close()
	a.idle()
}

// ServeHTTP takes what Slack sends over HTTP.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.intake.serveHTTP(w, r) }

// introduce asks Slack who we are, so that a wrong token is known before the first
// card.
func (a *App) introduce(ctx context.Context) {
	for {
		once, cancel := context.WithTimeout(ctx, updateFor)
		is, err := a.client.api.AuthTestContext(once)
		cancel()
		var answer api.SlackErrorResponse
		switch {
		case err == nil && is.TeamID != a.o.Config.TeamID:
			a.o.Log.Error("the bot token belongs to a different workspace than approver.slack.team_id; clicks will be refused", "team_id", is.TeamID)
			return
		case err == nil:
			a.o.Log.Info("Slack is connected", "team", is.Team, "team_id", is.TeamID)
			return
		case errors.As(err, &answer):
			a.o.Log.Error("Slack rejects the bot token", "error", answer.Err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(brokenFor):
		}
	}
}
