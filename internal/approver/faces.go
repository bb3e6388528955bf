package approver

import (
	"context"
	"errors"
	"net/http"

	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/approver/slack"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
)

// faces are the ways to tell of approvals beside the pages; each is nil where it is
// not configured.
type faces struct {
	book  *enrol.Book
	slack *slack.Face
	hooks *notify.Webhooks
	feed  *notify.Feed // of the hooks
}

// openPeople opens the table of who of Slack is whom, which the pages need.
func (a *Approver) openPeople(ctx context.Context) (err error) {
	c := a.o.Config
	if (c.Slack.Configured() || c.Notify.Configured()) && a.o.Conn == nil {
		return errors.New("approver: Slack and webhooks need a connection to NATS")
	}
	if c.Slack.Configured() {
		a.faces.book, err = enrol.Open(ctx, enrol.Options{Conn: a.o.Conn, Keys: a.keys, SignInFor: c.Slack.SignInFor, Page: func() string { return a.URL("") + "slack" }})
	}
	return err
}

// openFaces begins to tell.
func (a *Approver) openFaces(ctx context.Context) (err error) {
	c := a.o.Config
	if c.Slack.Configured() {
		if a.faces.slack, err = slack.Open(ctx, slack.Options{
			Config: c.Slack, Desk: a.o.Desk, Ledger: a.o.Ledger, People: a.faces.book, Conn: a.o.Conn, Page: a.URL, Log: a.o.Log,
		}); err != nil {
			return err
		}
	}
	if c.Notify.Configured() {
		if a.faces.hooks, err = notify.OpenWebhooks(ctx, c.Notify, a.o.Conn, a.URL, a.o.Log); err != nil {
			return err
		}
		a.faces.feed = notify.Start(notify.Options{Ledger: a.o.Ledger, Face: a.faces.hooks, Name: "webhooks", Log: a.o.Log})
	}
	return nil
}

// closeFaces ends what openPeople and openFaces began, as far as they came.
func (a *Approver) closeFaces(ctx context.Context) (err error) {
	if a.faces.slack != nil {
		a.faces.slack.Close()
	}
	if a.faces.feed != nil {
		a.faces.feed.Close()
	}
	if a.faces.hooks != nil {
		err = a.faces.hooks.Close(ctx)
	}
	if a.faces.book != nil {
		a.faces.book.Close()
	}
	return err
}

// routed leads what Slack sends to its face, and everything else to the pages. What
// Slack sends is signed, and comes from no page.
func (a *Approver) routed() http.Handler {
	if a.faces.slack == nil || !a.o.Config.Slack.Endpoint() {
		return a.pages
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == slack.InteractionsPath || r.URL.Path == slack.CommandsPath {
			a.faces.slack.ServeHTTP(w, r)
			return
		}
		a.pages.ServeHTTP(w, r)
	})
}

// SlackManifest is the manifest of the app in Slack, in YAML or JSON: for Slack
// reaching the approver at public, or where that is empty for Socket mode.
func SlackManifest(public string, asJSON bool) ([]byte, error) { return slack.Manifest(public, asJSON) }
