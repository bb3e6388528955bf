package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// access says who sends a request: a person by the cookie of a session, a program by
// an API key. It is safe for concurrent use.
type access struct {
	o        *Options
	sessions *sessions
	secret   [32]byte // of form tokens; another one after each start
	https    bool     // browsers reach the pages over TLS
}

func newAccess(o *Options) (*access, error) {
	a := &access{o: o, sessions: newSessions(o.Now, o.Idle), https: o.HTTPS}
	if o.PublicURL != nil {
		a.https = o.PublicURL.Scheme == "https"
	}
	_, err := rand.Read(a.secret[:])
	return a, err
}

// caller returns who sends a request of the API: by key, never by cookie.
func (a *access) caller(r *http.Request) (schema.Principal, error) {
	switch {
	case a.open():
		return a.local(), nil
	case !a.o.Keys.Configured():
		return schema.Principal{}, errNoKeys()
	}
	return a.o.Keys.Authenticate(r)
}

// local returns the principal of an approver at which nobody signs in.
func (a *access) local() schema.Principal {
	return schema.Principal{Name: authn.Local, Groups: a.o.LocalGroups}
}

// cookieBytes is how much chance a cookie holds.
const cookieBytes = 32

// Names of cookies, as [access.named] completes them.
const (
	sessionCookie = "callyard-session"
	passageCookie = "callyard-passage" // a sign-in at a provider
	connectCookie = "callyard-connect" // a connection to an MCP server
)

// named has the prefix with which browsers accept a cookie over https only, for this host
// only, where we are reached like that.
func (a *access) named(cookie string) string {
	if a.https {
		return "__Host-" + cookie
	}
	return cookie
}

func (a *access) cookie(r *http.Request) string {
	c, err := r.Cookie(a.named(sessionCookie))
	if err != nil {
		return ""
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.Value)
	if err != nil || len(raw) != cookieBytes {
		return ""
	}
	return c.Value
}

// newCookie gives the browser a new cookie; until somebody signs in with it, it
// is worth the tokens of forms only.
func (a *access) newCookie(w http.ResponseWriter) string {
	var raw [cookieBytes]byte
	if _, err := rand.Read(raw[:]); err != nil {
		panic("web: no randomness: " + err.Error()) // crypto/rand never fails on what we run on
	}
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	a.setCookie(w, value, 0)
	return value
}

func (a *access) setCookie(w http.ResponseWriter, value string, age int) {
	a.set(w, sessionCookie, value, age, http.SameSiteStrictMode)
}

// setFlow keeps what is under way at another site in a cookie of its own. It is sent when that
// site leads back, which the cookie of the session is not.
func (a *access) setFlow(w http.ResponseWriter, cookie, value string, age int) {
	a.set(w, cookie, value, age, http.SameSiteLaxMode)
}

func (a *access) set(w http.ResponseWriter, cookie, value string, age int, site http.SameSite) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever browsers come over https; on plain loopback it would sign nobody in
		Name: a.named(cookie), Value: value, Path: "/", MaxAge: age, Secure: a.https, HttpOnly: true, SameSite: site,
	})
}

// getOnly refuses HEAD on a path where GET spends something.
func getOnly(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet {
		return nil
	}
	w.Header().Set("Allow", http.MethodGet)
	return schema.Errorf(problem.KindMethod, "This path accepts GET only.")
}

// visitor is who looks at a page.
type visitor struct {
	who    schema.Principal
	known  bool // signed in, or nobody needs to
	fresh  bool
	local  bool
	began  time.Time // when they signed in here
	cookie string
}

// open reports whether nobody needs to sign in: there are neither keys nor a
// provider, and everybody on loopback is the principal "local".
func (a *access) open() bool { return a.o.open() }

// byHand says that a person asked, and not the script of a page.
func byHand(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return (mode == "" || mode == "navigate") && r.URL.Path != "/events"
}

// visit finds out who asks for a page, and gives a cookie to who has none.
func (a *access) visit(w http.ResponseWriter, r *http.Request) visitor {
	v := visitor{cookie: a.cookie(r)}
	if a.open() {
		v.known, v.local = true, true
		v.who = a.local()
	} else if in, ok := a.session(v.cookie, byHand(r)); ok {
		v.known, v.who, v.began = true, in.who, in.began
		v.fresh = !in.since.IsZero() && a.o.Now().Sub(in.since) < a.o.FreshFor
	}
	// A link of another site comes without the cookie of a session; a new one would
	// replace it.
	if v.cookie == "" && r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		v.cookie = a.newCookie(w)
	}
	return v
}

// session finds the session of a cookie. One that began with an API key ends with that
// key, whatever replaced it, and has the groups that the key has now.
func (a *access) session(cookie string, byHand bool) (session, bool) {
	in, ok := a.sessions.get(cookie, byHand)
	if !ok || cookie == "" {
		return session{}, false
	}
	if in.key == "" {
		return in, true
	}
	key, ok := a.o.Keys.Find(in.who.Name)
	if !ok || key.Hash != in.key || !key.Expires.IsZero() && !a.o.Now().Before(key.Expires) {
		a.sessions.drop(sha256.Sum256([]byte(cookie)))
		return session{}, false
	}
	in.who = key.Principal
	return in, true
}

// formToken is what a form carries so that only the page which we made for this
// cookie can send it, to this path.
func (a *access) formToken(cookie, path string) string {
	mac := hmac.New(sha256.New, a.secret[:])
	mac.Write([]byte(cookie))
	mac.Write([]byte{0})
	mac.Write([]byte(path))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkForm says why a form cannot be taken. Its cookie was in the request, not
// given by the answer.
func (a *access) checkForm(r *http.Request) error {
	cookie := a.cookie(r)
	token := r.PostForm.Get("token")
	if cookie == "" || !hmac.Equal([]byte(token), []byte(a.formToken(cookie, r.URL.Path))) {
		return schema.Errorf(schema.KindForbidden, "This form has expired, or belongs to another session; nothing was recorded. Reload the page and try again.")
	}
	return nil
}

// signIn takes an API key for a session.
func (a *access) signIn(w http.ResponseWriter, r *http.Request, key string) error {
	if !a.o.Keys.Configured() {
		return errNoKeys()
	}
	asked := &http.Request{Header: http.Header{"Authorization": {"Bearer " + key}}, RemoteAddr: r.RemoteAddr}
	who, err := a.o.Keys.Authenticate(asked)
	if err != nil {
		return err
	}
	known, ok := a.o.Keys.Find(who.Name)
	if !ok { // it was removed at this moment
		return schema.Errorf(schema.KindUnauthenticated, "The API key was removed.")
	}
	a.end(r)
	a.begin(w, session{who: who, key: known.Hash, since: a.o.Now()})
	return nil
}

func errNoKeys() error {
	return schema.Errorf(schema.KindUnauthenticated, "This approver has no API keys, so its API is not available; people sign in on its pages. An operator adds keys under approver.keys.")
}

// begin opens a session under a new cookie.
func (a *access) begin(w http.ResponseWriter, in session) {
	in.began = a.o.Now()
	in.expires = in.began.Add(a.o.Lifetime)
	a.sessions.put(a.newCookie(w), in)
}

// end ends the session of the request, if it has one.
func (a *access) end(r *http.Request) { a.sessions.drop(sha256.Sum256([]byte(a.cookie(r)))) }
