package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/callyard/callyard/internal/approver/oidc"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// The state of a sign-in at a provider is stored only in a sealed cookie of the browser, so that
// starting many of them uses no memory here. Browsers send that cookie when another site redirects
// back (SameSite=Lax), unlike the session cookie.

const flowAge = 10 * time.Minute

// maxFlow is an upper bound of the size of a sealed flow.
const maxFlow = 3900

// sessionContent is the content of the sealed cookie.
type sessionContent struct {
	Flow oidc.Flow `json:"flow"`
	Next string    `json:"next"`
	// Before is the hash of the session cookie that the new session replaces.
	Before []byte `json:"before,omitempty"`
}

func newSeal() (cipher.AEAD, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// passage opens the sealed cookie. It returns false if there is no valid one.
func (s *signInPages) passage(r *http.Request) (p sessionContent, ok bool) {
	c, err := r.Cookie(s.site.access.named(passageCookie))
	if err != nil || len(c.Value) > maxFlow {
		return p, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return p, false
	}
	open, err := s.seal.Open(nil, nil, sealed, []byte(s.site.access.named(passageCookie)))
	return p, err == nil && json.Unmarshal(open, &p) == nil
}

// goToProvider redirects the browser to the provider. It changes nothing here.
func (s *signInPages) goToProvider(w http.ResponseWriter, r *http.Request) error {
	people := s.site.o.People
	if people == nil {
		return schema.Errorf(schema.KindNotFound, "This approver has no identity provider; sign in with an API key.")
	}
	q := r.URL.Query()
	// The cookie must be for the host name to which the provider redirects back.
	if back := people.Redirect(); r.Host != back.Host && s.site.o.ownHost(r.Host) && r.Method == http.MethodGet && !q.Has("arrived") {
		q.Set("arrived", "1")
		to := url.URL{Scheme: back.Scheme, Host: back.Host, Path: r.URL.Path, RawQuery: q.Encode()}
		http.Redirect(w, r, to.String(), http.StatusSeeOther)
		return nil
	}
	if r.Method == http.MethodHead {
		return nil // a scanner need not wait for the provider
	}
	flow, to, err := people.Begin(r.Context(), q.Has("fresh"))
	if err != nil {
		return err
	}
	p := sessionContent{Flow: flow, Next: next(q.Get("next"))}
	if cookie := s.site.access.cookie(r); cookie != "" {
		sum := sha256.Sum256([]byte(cookie))
		p.Before = sum[:]
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The sign-in cannot start: %w", err)
	}
	sealed := s.seal.Seal(nil, nil, raw, []byte(s.site.access.named(passageCookie))) //nolint:gosec // the cipher makes a random nonce of its own
	s.site.access.setFlow(w, passageCookie, base64.RawURLEncoding.EncodeToString(sealed), int(flowAge.Seconds()))
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // the host is that of the provider in the configuration
	return nil
}

// comeBack handles the redirect from the provider.
func (s *signInPages) comeBack(w http.ResponseWriter, r *http.Request) error {
	people := s.site.o.People
	if people == nil {
		return schema.Errorf(schema.KindNotFound, "This approver has no identity provider; sign in with an API key.")
	}
	if err := getOnly(w, r); err != nil {
		return err
	}
	p, ok := s.passage(r)
	if !ok {
		return s.refuseArrival(w, schema.Errorf(schema.KindForbidden, "This sign-in was not started in this browser, or it has expired. Sign in again."))
	}
	s.site.access.setFlow(w, passageCookie, "", -1) // a flow can be tried once
	person, err := people.Finish(r.Context(), p.Flow, r.URL.Query())
	if err == nil {
		err = s.site.o.Tenants.Check(person.Principal.Tenant)
	}
	if err != nil {
		s.site.o.fault(r.Context(), r.Pattern, err)
		return s.refuseArrival(w, err)
	}
	if len(p.Before) == sha256.Size {
		s.site.access.sessions.drop([sha256.Size]byte(p.Before))
	}
	s.site.access.begin(w, session{who: person.Principal, since: person.SignedIn})
	if s.site.o.Slack != nil {
		if err := s.site.o.Slack.SignedIn(r.Context(), person.Principal); err != nil {
			s.site.o.Log.Warn("the groups of a sign-in are not known in Slack yet; sign in again", "error", err)
		}
	}
	s.site.o.Log.Info("a person signed in", "name", person.Principal.Name, "groups", len(person.Principal.Groups))
	// A redirect would still count as cross-site, so the browser would not send the new cookie. A
	// page of ours that continues does not.
	page := view{Title: "You are signed in", Go: p.Next, Page: message{Text: "You are signed in as " + visible.Escaped([]byte(person.Principal.Owner)) + ".", To: p.Next, Label: "Continue"}}
	return s.site.render(w, http.StatusOK, "message", visitor{}, page)
}

// refuseArrival shows the reason why a person was not signed in, with a link to the sign-in. It
// shows nothing from the request.
func (s *signInPages) refuseArrival(w http.ResponseWriter, err error) error {
	d := problem.Of(err)
	page := view{Title: "You are not signed in", Page: message{Text: d.Detail, To: "/sign-in", Label: "Sign in"}}
	return s.site.render(w, d.Status, "message", visitor{}, page)
}
