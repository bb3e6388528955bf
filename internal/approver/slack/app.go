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
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/store/slacktable"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Channel is the channel recorded in decisions taken in Slack.
const Channel = "slack"

// Timeouts of requests. Tests raise them.
var (
	// postFor is the timeout for a new message. A message may exist even if it timed out.
	// updateFor is the timeout for all other requests, which can be repeated.
	postFor   = 8 * time.Second
	updateFor = 4 * time.Second
	// holdFor is the time for which one approver may post a message. It exceeds postFor.
	holdFor = postFor + 2*time.Second
	// storeFor is the timeout for storing the record of a posted message.
	storeFor = 5 * time.Second
	// takeFor limits the work before the response to a request of Slack, which waits 3 s.
	takeFor = 2 * time.Second
)

const (
	// brokenFor is the time between attempts when only an operator can fix the cause.
	brokenFor = 30 * time.Second
	// maxWork limits the number of clicks that are processed concurrently.
	maxWork = 64
	// workFor is the timeout for processing one click.
	workFor = 20 * time.Second
)

// Options configures the app. All fields must be set, unless noted.
type Options struct {
	Config settings.Slack
	Desk   *approval.Desk
	Ledger *ledger.Ledger
	// People maps Slack accounts to principals. The caller must close it.
	People *enrol.Book
	// Conn is the connection to NATS. The caller must close it.
	Conn *bus.Conn
	// Page returns the address of an approval's page.
	Page func(id schema.ApprovalID) string
	// Tenants maps Slack channels to tenants. If nil, the channels of Config serve all tenants.
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
	idle   func() // closes idle connections
}

// Open opens the app and starts to post; ctx bounds the opening. It succeeds even if Slack is not
// reachable.
func Open(ctx context.Context, o Options) (*App, error) {
	s, err := o.Config.Secrets()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // always this type in the standard library
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
		o: a.o, signing: s.Signing, client: cl, once: once, slots: make(chan struct{}, maxWork), budget: bodies.New(smallBodies, largeBodies),
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

// Close closes the app. It waits for work in progress, which finishes or is canceled. The app must
// not serve requests after that.
func (a *App) Close() {
	a.intake.stop()
	a.feed.Close()
	a.intake.work.Wait()
	a.cards.messages.Close()
	a.idle()
}

// ServeHTTP handles the HTTP requests of Slack.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.intake.serveHTTP(w, r) }

// introduce verifies the token with Slack, so that a wrong token is reported before the first card.
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
		if !sleep.For(brokenFor, ctx.Done()) {
			return
		}
	}
}
