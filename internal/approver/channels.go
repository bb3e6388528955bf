package approver

import (
	"context"
	"errors"
	"net/http"

	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/approver/slack"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
)

// channels holds the notification channels. Each is nil if it is not configured.
type channels struct {
	book  *enrol.Book
	slack *slack.App
	hooks *notify.Webhooks
	feed  *notify.Feed // of the webhooks
}

// openPeople opens the table that maps Slack accounts to principals. The pages need it.
func (a *Approver) openPeople(ctx context.Context) (err error) {
	c := a.o.Config
	if (c.Slack.Configured() || c.Notify.Configured()) && a.o.Conn == nil {
		return errors.New("approver: Slack and webhooks require a connection to NATS")
	}
	if c.Slack.Configured() {
		a.channels.book, err = enrol.Open(ctx, enrol.Options{Conn: a.o.Conn, Keys: a.keys, SignInFor: c.Slack.SignInFor, Tenants: a.o.Tenants, Page: func() string { return a.URL("") + "slack" }})
	}
	return err
}

// openChannels starts the notification channels.
func (a *Approver) openChannels(ctx context.Context) (err error) {
	c := a.o.Config
	if c.Slack.Configured() {
		if a.channels.slack, err = slack.Open(ctx, slack.Options{
			Config: c.Slack, Desk: a.o.Desk, Ledger: a.o.Ledger, People: a.channels.book, Conn: a.o.Conn, Page: a.URL, Tenants: a.o.Tenants, Log: a.o.Log,
		}); err != nil {
			return err
		}
	}
	if c.Notify.Configured() {
		if a.channels.hooks, err = notify.OpenWebhooks(ctx, c.Notify, a.o.Tenants, a.o.Conn, a.URL, a.o.Log); err != nil {
			return err
		}
		a.channels.feed = notify.Start(notify.Options{Ledger: a.o.Ledger, Channel: a.channels.hooks, Name: "webhooks", Log: a.o.Log})
	}
	return nil
}

// deliveries returns the outbox of the webhooks, or nil if there is none.
func (a *Approver) deliveries() *notify.Webhooks { return a.channels.hooks }

// closeChannels closes everything that openAuthorization, openPeople and openChannels have opened.
func (a *Approver) closeChannels(ctx context.Context) (err error) {
	a.authorization.Close()
	if a.channels.slack != nil {
		a.channels.slack.Close()
	}
	if a.channels.feed != nil {
		a.channels.feed.Close()
	}
	if a.channels.hooks != nil {
		err = a.channels.hooks.Close(ctx)
	}
	if a.channels.book != nil {
		a.channels.book.Close()
	}
	return err
}

// routed routes Slack's requests to the Slack app, and all others to the pages. Slack's requests
// are signed and do not come from a page.
func (a *Approver) routed() http.Handler {
	if a.channels.slack == nil || !a.o.Config.Slack.Endpoint() {
		return a.pages
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == slack.InteractionsPath || r.URL.Path == slack.CommandsPath {
			a.channels.slack.ServeHTTP(w, r)
			return
		}
		a.pages.ServeHTTP(w, r)
	})
}

// SlackManifest returns the manifest of the Slack app, in YAML or JSON. Slack reaches the approver
// at public. If public is empty, the app uses Socket Mode.
func SlackManifest(public string, asJSON bool) ([]byte, error) { return slack.Manifest(public, asJSON) }
