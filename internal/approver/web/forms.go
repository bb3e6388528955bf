package web

import (
	"bytes"
	"crypto/sha256"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// form reads the fields of a form and checks that it is ours.
func (h *Handler) form(w http.ResponseWriter, r *http.Request) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return schema.Errorf(problem.KindMediaType, "Only a form of these pages can be sent here.")
	}
	// A browser may write each byte as three.
	body, err := h.whole(w, r, 3*h.o.ArgumentBytes+bodyRoom, "What you sent is over the limit for arguments of %d bytes; send less, or ask the operator to raise argument_bytes.", h.o.ArgumentBytes)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, io.NopCloser(bytes.NewReader(body)), int64(len(body))) // or 10 MB were the most
	if r.ParseForm() != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The form did not arrive whole; send it again.")
	}
	for name, values := range r.PostForm {
		if len(values) != 1 || !utf8.ValidString(values[0]) {
			return schema.Errorf(schema.KindInvalidRequest, "The field %.20q of the form is there twice, or is no text.", name)
		}
	}
	return h.checkForm(r)
}

// takeDecision takes a form of the detail page.
func (h *Handler) takeDecision(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	if err := h.form(w, r); err != nil {
		return err
	}
	id, kind := r.PathValue("id"), ledger.DecisionKind(r.PathValue("kind"))
	f := r.PostForm
	answer := approval.Answer{Kind: kind, Reason: strings.TrimSpace(f.Get("reason")), Digest: f.Get("digest"), Fresh: v.fresh}
	if answer.Reason == "" {
		answer.Reason = f.Get("preset")
	}
	if kind == allowKind {
		answer.Kind = ledger.Approve
		if answer.Allow, err = h.wish(f); err != nil {
			return h.refuseDecision(w, r, v, id, kind, answer, err)
		}
	}
	if kind == ledger.Edit {
		// Forms end their lines with CR LF; a string in JSON holds neither.
		answer.Arguments = []byte(strings.ReplaceAll(f.Get("arguments"), "\r\n", "\n"))
	}
	if _, err = h.decide(r.Context(), id, answer, v.who, "web"); err == nil {
		http.Redirect(w, r, "/a/"+url.PathEscape(id)+"?done="+url.QueryEscape(string(kind)), http.StatusSeeOther)
		return nil
	}
	return h.refuseDecision(w, r, v, id, kind, answer, err)
}

// refuseDecision gives the person the page as it is now, with what was typed and
// why it does not count.
func (h *Handler) refuseDecision(w http.ResponseWriter, r *http.Request, v visitor, id string, kind ledger.DecisionKind, answer approval.Answer, err error) error {
	q, readErr := h.read(r.Context(), id, v.who)
	if readErr != nil {
		return err
	}
	h.fault(r, err)
	d := problem.Of(err)
	p := h.detailOf(q, v)
	p.Refusal, p.Faults, p.Reason = d.Detail, d.Errors, answer.Reason
	switch kind {
	case ledger.Edit:
		p.Edit, p.EditOpen = string(answer.Arguments), true
	case allowKind:
		p.AllowOpen = true
	}
	return h.renderDetail(w, d.Status, v, p)
}

type signInPage struct {
	Token, Next, Refusal string
	Again                bool   // somebody is signed in, and must show that it is still them
	Keys                 bool   // an API key signs in
	Provider             string // the name of the provider; empty where there is none
	ToProvider           string // the address of the way there
}

// next is where to go after a sign-in: a page of ours, whatever was asked for.
func next(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Opaque != "" || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	if p := u.EscapedPath(); p == "/history" || p == "/permissions" || p == "/slack" || strings.HasPrefix(p, "/a/") && plainID(p[len("/a/"):]) {
		return p
	}
	return "/"
}

func (h *Handler) showSignIn(w http.ResponseWriter, r *http.Request) error {
	if h.arriving(r) {
		return h.showArrival(w, r)
	}
	return h.renderSignIn(w, r, http.StatusOK, next(r.URL.Query().Get("next")), "")
}

func (h *Handler) renderSignIn(w http.ResponseWriter, r *http.Request, status int, to, refusal string) error {
	v := h.visit(w, r)
	if v.local {
		http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // next lets pages of ours through only
		return nil
	}
	page := signInPage{Token: h.formToken(v.cookie, "/sign-in"), Next: to, Refusal: refusal, Again: v.known, Keys: h.o.Keys.Configured()}
	if h.o.People != nil {
		q := url.Values{"next": {to}}
		if v.known {
			q.Set("fresh", "1")
		}
		page.Provider, page.ToProvider = h.o.People.Name(), "/sign-in/provider?"+q.Encode()
	}
	return h.render(w, status, "signin", v, view{Title: "Sign in", Page: page})
}

func (h *Handler) takeSignIn(w http.ResponseWriter, r *http.Request) error {
	if err := h.form(w, r); err != nil {
		return err
	}
	to := next(r.PostForm.Get("next"))
	if err := h.signIn(w, r, strings.TrimSpace(r.PostForm.Get("key"))); err != nil {
		d := problem.Of(err)
		return h.renderSignIn(w, r, d.Status, to, d.Detail)
	}
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // next lets pages of ours through only
	return nil
}

func (h *Handler) takeSignOut(w http.ResponseWriter, r *http.Request) error {
	if err := h.form(w, r); err != nil {
		return err
	}
	h.sessions.drop(sha256.Sum256([]byte(h.cookie(r))))
	h.setCookie(w, "", -1)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	return nil
}
