package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// access authenticates requests: people by session cookie, programs by API key. It is safe for
// concurrent use.
type access struct {
	o        *Options
	sessions *sessions
	secret   [32]byte // key of form tokens; new after each start
	https    bool     // browsers use TLS
}

func newAccess(o *Options) *access {
	a := &access{o: o, sessions: newSessions(o.Now, o.Idle), https: o.HTTPS}
	if o.PublicURL != nil {
		a.https = o.PublicURL.Scheme == "https"
	}
	_, _ = rand.Read(a.secret[:]) // it never fails
	return a
}

// caller returns the principal of an API request, by its key. It ignores cookies.
func (a *access) caller(r *http.Request) (schema.Principal, error) {
	switch {
	case a.open():
		return a.local(), nil
	case !a.o.Keys.Configured():
		return schema.Principal{}, errNoKeys()
	}
	return a.o.Keys.Authenticate(r)
}

// local returns the principal for an approver without sign-in.
func (a *access) local() schema.Principal {
	return schema.Principal{Name: authn.Local, Groups: a.o.LocalGroups}
}

// cookieBytes is the number of random bytes in a cookie.
const cookieBytes = 32

// Cookie names, before the prefix that [access.named] adds.
const (
	sessionCookie = "callyard-session"
	passageCookie = "callyard-passage" // a sign-in at a provider
	connectCookie = "callyard-connect" // a connection to an MCP server
)

// named adds the prefix that makes browsers accept a cookie only over https and only for this host,
// if the pages are served over https.
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

// newCookie sends the browser a new cookie. Until a sign-in it is valid only for form tokens.
func (a *access) newCookie(w http.ResponseWriter) string {
	var raw [cookieBytes]byte
	_, _ = rand.Read(raw[:]) // it never fails
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	a.setCookie(w, value, 0)
	return value
}

func (a *access) setCookie(w http.ResponseWriter, value string, age int) {
	a.set(w, sessionCookie, value, age, http.SameSiteStrictMode)
}

// setFlow stores the state of a flow at another site in a separate cookie. Browsers send it when
// that site redirects back, unlike the session cookie.
func (a *access) setFlow(w http.ResponseWriter, cookie, value string, age int) {
	a.set(w, cookie, value, age, http.SameSiteLaxMode)
}

func (a *access) set(w http.ResponseWriter, cookie, value string, age int, site http.SameSite) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever browsers come over https; on plain loopback it would sign nobody in
		Name: a.named(cookie), Value: value, Path: "/", MaxAge: age, Secure: a.https, HttpOnly: true, SameSite: site,
	})
}

// getOnly rejects HEAD on a path on which GET consumes something.
func getOnly(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet {
		return nil
	}
	w.Header().Set("Allow", http.MethodGet)
	return schema.Errorf(problem.KindMethod, "This path accepts GET only.")
}

// visitor is the viewer of a page.
type visitor struct {
	who    schema.Principal
	known  bool // signed in, or no sign-in is required
	fresh  bool
	local  bool
	began  time.Time // time of the sign-in here
	cookie string
}

// open reports whether no sign-in is required: there are neither keys nor a provider, and every
// client on loopback is the principal "local".
func (a *access) open() bool { return a.o.open() }

// userInitiated reports whether a person made the request, and not the script of a page.
func userInitiated(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return (mode == "" || mode == "navigate") && r.URL.Path != "/events"
}

// visit identifies the visitor of a page, and sends a cookie to visitors without one.
func (a *access) visit(w http.ResponseWriter, r *http.Request) visitor {
	v := visitor{cookie: a.cookie(r)}
	if a.open() {
		v.known, v.local = true, true
		v.who = a.local()
	} else if in, ok := a.session(v.cookie, userInitiated(r)); ok {
		v.known, v.who, v.began = true, in.who, in.began
		v.fresh = !in.since.IsZero() && a.o.Now().Sub(in.since) < a.o.FreshFor
	}
	// A cross-site request lacks the session cookie, and a new cookie would replace it.
	if v.cookie == "" && r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		v.cookie = a.newCookie(w)
	}
	return v
}

// session returns the session of a cookie. A session that began with an API key ends when that key
// is removed, replaced or expires, and has the key's current groups.
func (a *access) session(cookie string, userInitiated bool) (session, bool) {
	in, ok := a.sessions.get(cookie, userInitiated)
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

// formToken returns the CSRF token of a form. It is bound to this cookie and path.
func (a *access) formToken(cookie, path string) string {
	mac := hmac.New(sha256.New, a.secret[:])
	mac.Write([]byte(cookie))
	mac.Write([]byte{0})
	mac.Write([]byte(path))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// doneAddress returns the address of the page at path that confirms an act of a person; see [ui.Done].
func (a *access) doneAddress(path, person, act string) string {
	return path + "?done=" + ui.Done(act, a.proof(path, person))
}

// doneOf returns the act that the page of this request confirms, or "" if the visitor has not done it.
func (a *access) doneOf(r *http.Request, v visitor) string {
	return ui.DoneOf(r, a.proof(r.URL.Path, credential.Person(&v.who)))
}

func (a *access) proof(path, person string) func(text string) string {
	return func(text string) string { return a.formToken(person, text+" "+path) }
}

// checkForm returns the reason to refuse a form. The cookie must come from the request, not from
// its response.
func (a *access) checkForm(r *http.Request) error {
	cookie := a.cookie(r)
	token := r.PostForm.Get("token")
	if cookie == "" || !hmac.Equal([]byte(token), []byte(a.formToken(cookie, r.URL.Path))) {
		return schema.Errorf(schema.KindForbidden, "This form has expired, or belongs to another session; nothing was recorded. Reload the page and try again.")
	}
	return nil
}

// signIn begins a session with an API key.
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
	if !ok { // the key was removed concurrently
		return schema.Errorf(schema.KindUnauthenticated, "The API key was removed.")
	}
	a.end(r)
	a.begin(w, session{who: who, key: known.Hash, since: a.o.Now()})
	return nil
}

func errNoKeys() error {
	return schema.Errorf(schema.KindUnauthenticated, "This approver has no API keys, so its API is not available; people sign in on its pages. An operator adds keys under approver.keys.")
}

// begin begins a session with a new cookie.
func (a *access) begin(w http.ResponseWriter, in session) {
	in.began = a.o.Now()
	in.expires = in.began.Add(a.o.Lifetime)
	a.sessions.put(a.newCookie(w), in)
}

// end ends the session of the request, if there is one.
func (a *access) end(r *http.Request) { a.sessions.drop(sha256.Sum256([]byte(a.cookie(r)))) }
