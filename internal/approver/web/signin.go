package web

import (
	"crypto/cipher"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// signInPages sign people in and out, with an API key or at a provider.
type signInPages struct {
	site *site
	seal cipher.AEAD // seals sign-ins in progress; its key is new after each start
}

func newSignInPages(s *site) (*signInPages, error) {
	seal, err := newSeal()
	return &signInPages{s, seal}, err
}

func (s *signInPages) register() {
	s.site.html("GET /sign-in", s.show)
	s.site.html("POST /sign-in", s.signIn)
	s.site.html("GET /sign-in/provider", s.goToProvider)
	s.site.html("GET "+settings.CallbackPath, s.comeBack)
	s.site.html("POST /sign-out", s.signOut)
}

type signInPage struct {
	Token, Next, Refusal string
	Again                bool   // the person is signed in and must authenticate again
	Keys                 bool   // sign-in with an API key is possible
	Provider             string // the name of the provider, or ""
	ToProvider           string // the address that starts the sign-in at the provider
}

// ownPages are the approver's pages, except those of a single approval.
var ownPages = []string{"/", reviewPath, "/history", "/permissions", "/slack", grantsPath, credential.ConnectPath}

// next returns the page to show after a sign-in, with its query. It is always one of ours,
// regardless of the request.
func next(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Opaque != "" || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	p := u.EscapedPath()
	switch id, isApproval := strings.CutPrefix(p, "/a/"); {
	case isApproval:
		if id, _, _ = strings.Cut(id, "/"); plainID(schema.ApprovalID(id)) { // a refused form has the address of its target
			return "/a/" + id
		}
	case slices.Contains(ownPages, p):
		return withQuery(p, u)
	case ofConsole(u.Path):
		return nextOfConsole(u)
	case p == authserver.AuthorizePath:
		if to, ok := nextOfAuthorize(u); ok {
			return to
		}
	}
	return "/"
}

// ofConsole reports whether a path belongs to the console.
func ofConsole(path string) bool {
	return path == console.Root || strings.HasPrefix(path, console.Root+"/")
}

// maxNextQuery limits the query that a sign-in preserves, because a cookie stores it. It has room
// for the address of a bulk review.
const maxNextQuery = 2000

// withQuery returns a path with the query of an address, if the query is short enough.
func withQuery(path string, u *url.URL) string {
	q := u.Query()
	q.Del("arrived")
	q.Del("done") // the page would report an earlier action again
	if query := q.Encode(); query != "" && len(query) <= maxNextQuery {
		return path + "?" + query
	}
	return path
}

// nextOfConsole returns the console page of an address, with its query.
func nextOfConsole(u *url.URL) string {
	p := u.EscapedPath()
	if p == console.Root+"/events" || !ofConsole(p) || strings.Contains(u.Path, "..") || strings.Contains(u.Path, "//") || strings.ContainsAny(p, "%\\ ") {
		return console.Root // a stream is not a page
	}
	return withQuery(p, u)
}

func (s *signInPages) show(w http.ResponseWriter, r *http.Request) error {
	if s.site.arriving(r) {
		return s.site.showArrival(w, r)
	}
	return s.renderForm(w, r, http.StatusOK, next(r.URL.Query().Get("next")), "")
}

func (s *signInPages) renderForm(w http.ResponseWriter, r *http.Request, status int, to, refusal string) error {
	v := s.site.access.visit(w, r)
	if v.local {
		http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // next lets pages of ours through only
		return nil
	}
	page := signInPage{Token: s.site.access.formToken(v.cookie, "/sign-in"), Next: to, Refusal: refusal, Again: v.known, Keys: s.site.o.Keys.Configured()}
	if s.site.o.People != nil {
		q := url.Values{"next": {to}}
		if v.known {
			q.Set("fresh", "1")
		}
		page.Provider, page.ToProvider = s.site.o.People.Name(), "/sign-in/provider?"+q.Encode()
	}
	return s.site.render(w, status, "signin", v, view{Title: "Sign in", Page: page})
}

func (s *signInPages) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := s.site.form(w, r); err != nil {
		return err
	}
	to := next(r.PostForm.Get("next"))
	if err := s.site.access.signIn(w, r, strings.TrimSpace(r.PostForm.Get("key"))); err != nil {
		d := problem.Of(err)
		return s.renderForm(w, r, d.Status, to, d.Detail)
	}
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // next lets pages of ours through only
	return nil
}

func (s *signInPages) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.site.form(w, r); err != nil {
		return err
	}
	s.site.keys.put(schema.PrincipalID{}, s.site.access.cookie(r), "")
	s.site.access.end(r)
	s.site.access.setCookie(w, "", -1)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	return nil
}
