package web

import (
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/pkg/schema"
)

// slackPage is where a person connects an account of Slack.
type slackPage struct {
	Link    *enrol.Link // nil: none is connected
	Offered []offered   // accounts that typed a code of this person
	Code    string      // a new one, shown once
	Until   time.Time
	// Tokens of the forms.
	CodeToken, DropToken string
	Done                 string
}

// offered is an account and the token of its form.
type offered struct {
	enrol.User
	Token string
}

func (h *Handler) registerSlack() {
	if h.o.Slack == nil {
		return
	}
	h.html("GET /slack", h.showSlack)
	h.html("POST /slack/code", h.takeSlackCode)
	h.html("POST /slack/connect", h.takeSlackConnect)
	h.html("POST /slack/disconnect", h.takeSlackDisconnect)
}

func (h *Handler) slackPageOf(v visitor) slackPage {
	p := slackPage{CodeToken: h.formToken(v.cookie, "/slack/code"), DropToken: h.formToken(v.cookie, "/slack/disconnect")}
	if l, ok := h.o.Slack.Connected(v.who); ok {
		p.Link = &l
	}
	for _, u := range h.o.Slack.Offered(v.who) {
		p.Offered = append(p.Offered, offered{u, h.formToken(v.cookie, "/slack/connect")})
	}
	return p
}

func (h *Handler) renderSlack(w http.ResponseWriter, v visitor, p slackPage) error {
	return h.render(w, http.StatusOK, "slack", v, view{Title: "Slack", Here: "/slack", Page: p})
}

func (h *Handler) showSlack(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	p := h.slackPageOf(v)
	p.Done = r.URL.Query().Get("done")
	return h.renderSlack(w, v, p)
}

// slackForm finds out who sends a form of this page.
func (h *Handler) slackForm(w http.ResponseWriter, r *http.Request) (visitor, bool, error) {
	v, ok, err := h.enter(w, r)
	if !ok {
		return v, false, err
	}
	if err := h.form(w, r); err != nil {
		return v, false, err
	}
	if v.local {
		return v, false, schema.Errorf(schema.KindForbidden, "Nobody signs in here, so nobody can be connected to Slack.")
	}
	return v, true, nil
}

func (h *Handler) takeSlackCode(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.slackForm(w, r)
	if !ok {
		return err
	}
	code, until, err := h.o.Slack.Code(r.Context(), v.who)
	if err != nil {
		return err
	}
	p := h.slackPageOf(v)
	p.Code, p.Until = code, until
	return h.renderSlack(w, v, p)
}

func (h *Handler) takeSlackConnect(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.slackForm(w, r)
	if !ok {
		return err
	}
	if err := h.o.Slack.Accept(r.Context(), v.who, v.began, r.PostForm.Get("team"), r.PostForm.Get("user")); err != nil {
		return err
	}
	h.o.Log.Info("an account of Slack was connected", "name", v.who.Name, "slack_user", r.PostForm.Get("user"))
	http.Redirect(w, r, "/slack?done=connect", http.StatusSeeOther)
	return nil
}

func (h *Handler) takeSlackDisconnect(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.slackForm(w, r)
	if !ok {
		return err
	}
	if err := h.o.Slack.Remove(r.Context(), v.who); err != nil {
		return err
	}
	http.Redirect(w, r, "/slack?done=disconnect", http.StatusSeeOther)
	return nil
}
