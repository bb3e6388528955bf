package web

import (
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/schema"
)

// slackPage is the page on which a person connects a Slack account.
type slackPage struct {
	Link    *enrol.Link // nil if none is connected
	Offered []linkForm  // accounts that typed a code of this person
	Code    string      // a new code, shown once
	Until   time.Time
	// Tokens of the forms.
	CodeToken, DropToken string
	Done                 string
}

// linkForm is an account and its form token.
type linkForm struct {
	enrol.User
	Token string
}

// slackPages serves the page that connects a person's Slack account.
type slackPages struct{ site *site }

func (g *slackPages) register() {
	if g.site.o.Slack == nil {
		return
	}
	g.site.visited("GET /slack", g.show)
	g.site.visited("POST /slack/code", g.signedIn(g.code))
	g.site.visited("POST /slack/connect", g.signedIn(g.connect))
	g.site.visited("POST /slack/disconnect", g.signedIn(g.disconnect))
}

func (g *slackPages) page(v visitor) slackPage {
	p := slackPage{CodeToken: g.site.access.formToken(v.cookie, "/slack/code"), DropToken: g.site.access.formToken(v.cookie, "/slack/disconnect")}
	if l, ok := g.site.o.Slack.Connected(v.who); ok {
		p.Link = &l
	}
	for _, u := range g.site.o.Slack.Offered(v.who) {
		p.Offered = append(p.Offered, linkForm{u, g.site.access.formToken(v.cookie, "/slack/connect")})
	}
	return p
}

func (g *slackPages) render(w http.ResponseWriter, v visitor, p slackPage) error {
	return g.site.render(w, http.StatusOK, "slack", v, view{Title: "Slack", Here: "/slack", Page: p})
}

func (g *slackPages) show(w http.ResponseWriter, r *http.Request, v visitor) error {
	p := g.page(v)
	p.Done = g.site.access.doneOf(r, v)
	return g.render(w, v, p)
}

// signedIn refuses forms if no sign-in is required, because there is no person to connect.
func (g *slackPages) signedIn(f func(w http.ResponseWriter, r *http.Request, v visitor) error) func(http.ResponseWriter, *http.Request, visitor) error {
	return func(w http.ResponseWriter, r *http.Request, v visitor) error {
		if v.local {
			return schema.Errorf(schema.KindForbidden, "This approver has no sign-in, so it cannot connect Slack accounts. An operator sets approver.keys or approver.oidc.")
		}
		return f(w, r, v)
	}
}

func (g *slackPages) code(w http.ResponseWriter, r *http.Request, v visitor) error {
	code, until, err := g.site.o.Slack.Code(r.Context(), v.who)
	if err != nil {
		return err
	}
	p := g.page(v)
	p.Code, p.Until = code, until
	return g.render(w, v, p)
}

func (g *slackPages) connect(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := g.site.o.Slack.Accept(r.Context(), v.who, v.began, r.PostForm.Get("team"), r.PostForm.Get("user")); err != nil {
		return err
	}
	g.site.o.Log.Info("a Slack account was connected", "name", v.who.Name, "slack_user", r.PostForm.Get("user"))
	http.Redirect(w, r, g.site.access.doneAddress("/slack", credential.Person(&v.who), "connect"), http.StatusSeeOther)
	return nil
}

func (g *slackPages) disconnect(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := g.site.o.Slack.Remove(r.Context(), v.who); err != nil {
		return err
	}
	http.Redirect(w, r, g.site.access.doneAddress("/slack", credential.Person(&v.who), "disconnect"), http.StatusSeeOther)
	return nil
}
