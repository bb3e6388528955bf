package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/pkg/schema"
)

// session is one person's stay after a sign-in.
type session struct {
	who     schema.Principal
	key     string    // the hash of the API key that they signed in with; "" for a provider
	began   time.Time // its groups are of then
	since   time.Time // when they last proved who they are; zero where nobody knows
	expires time.Time
	seen    time.Time // when they last asked for something themselves
}

// maxSessions bounds the memory; beyond it the session that ends first makes room.
const maxSessions = 10_000

// sessions keeps who is signed in, under the hash of the cookie: a copy of the
// memory signs nobody in.
type sessions struct {
	now  func() time.Time
	idle time.Duration // how long a session lasts in which nobody asks for anything; 0: no limit
	mu   sync.Mutex
	by   map[[sha256.Size]byte]session
}

func newSessions(now func() time.Time, idle time.Duration) *sessions {
	return &sessions{now: now, idle: idle, by: make(map[[sha256.Size]byte]session)}
}

func (s *sessions) put(cookie string, in session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) >= maxSessions {
		s.makeRoomLocked()
	}
	in.seen = s.now()
	s.by[sha256.Sum256([]byte(cookie))] = in
}

// over says that a session has ended by time.
func (s *sessions) over(in session, now time.Time) bool {
	return !now.Before(in.expires) || s.idle > 0 && now.Sub(in.seen) >= s.idle
}

func (s *sessions) makeRoomLocked() {
	now := s.now()
	var first [sha256.Size]byte
	var ends time.Time
	for sum, in := range s.by {
		if s.over(in, now) {
			delete(s.by, sum)
		} else if ends.IsZero() || in.expires.Before(ends) {
			first, ends = sum, in.expires
		}
	}
	if len(s.by) >= maxSessions {
		delete(s.by, first)
	}
}

// get finds the session of a cookie. byHand says that the person asked for
// something, and not a page that keeps itself up to date.
func (s *sessions) get(cookie string, byHand bool) (session, bool) {
	sum := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	in, ok := s.by[sum]
	if !ok {
		return session{}, false
	}
	now := s.now()
	if s.over(in, now) {
		delete(s.by, sum)
		return session{}, false
	}
	if byHand {
		in.seen = now
		s.by[sum] = in
	}
	return in, true
}

func (s *sessions) drop(sum [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, sum)
}

// cookieBytes is how much chance a cookie holds.
const cookieBytes = 32

// cookieName has the prefix with which browsers accept the cookie over https
// only, for this host only, where we are reached like that.
func (h *Handler) cookieName() string {
	if h.https {
		return "__Host-callyard-session"
	}
	return "callyard-session"
}

func (h *Handler) cookie(r *http.Request) string {
	c, err := r.Cookie(h.cookieName())
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
func (h *Handler) newCookie(w http.ResponseWriter) string {
	var raw [cookieBytes]byte
	if _, err := rand.Read(raw[:]); err != nil {
		panic("web: no randomness: " + err.Error()) // crypto/rand never fails on what we run on
	}
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	h.setCookie(w, value, 0)
	return value
}

func (h *Handler) setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever browsers come over https; on plain loopback it would sign nobody in
		Name: h.cookieName(), Value: value, Path: "/", MaxAge: age, Secure: h.https, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
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

// unguarded says that nobody needs to sign in: there are neither keys nor a
// provider, and everybody on loopback is the principal "local".
func (h *Handler) unguarded() bool { return !h.o.Keys.Configured() && h.o.People == nil }

// byHand says that a person asked, and not the script of a page.
func byHand(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return (mode == "" || mode == "navigate") && r.URL.Path != "/events"
}

// visit finds out who asks for a page, and gives a cookie to who has none.
func (h *Handler) visit(w http.ResponseWriter, r *http.Request) visitor {
	v := visitor{cookie: h.cookie(r)}
	if h.unguarded() {
		v.known, v.local = true, true
		v.who = schema.Principal{Name: authn.Local, Groups: h.o.LocalGroups}
	} else if in, ok := h.session(v.cookie, byHand(r)); ok {
		v.known, v.who, v.began = true, in.who, in.began
		v.fresh = !in.since.IsZero() && h.o.Now().Sub(in.since) < h.o.FreshFor
	}
	// A link of another site comes without the cookie of a session; a new one would
	// replace it.
	if v.cookie == "" && r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		v.cookie = h.newCookie(w)
	}
	return v
}

// session finds the session of a cookie. One that began with an API key ends with that
// key, whatever replaced it, and has the groups that the key has now.
func (h *Handler) session(cookie string, byHand bool) (session, bool) {
	in, ok := h.sessions.get(cookie, byHand)
	if !ok || cookie == "" {
		return session{}, false
	}
	if in.key == "" {
		return in, true
	}
	key, ok := h.o.Keys.Find(in.who.Name)
	if !ok || key.Hash != in.key || !key.Expires.IsZero() && !h.o.Now().Before(key.Expires) {
		h.sessions.drop(sha256.Sum256([]byte(cookie)))
		return session{}, false
	}
	in.who = key.Principal
	return in, true
}

// formToken is what a form carries so that only the page which we made for this
// cookie can send it, to this path.
func (h *Handler) formToken(cookie, path string) string {
	mac := hmac.New(sha256.New, h.secret[:])
	mac.Write([]byte(cookie))
	mac.Write([]byte{0})
	mac.Write([]byte(path))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkForm says why a form cannot be taken. Its cookie was in the request, not
// given by the answer.
func (h *Handler) checkForm(r *http.Request) error {
	cookie := h.cookie(r)
	token := r.PostForm.Get("token")
	if cookie == "" || !hmac.Equal([]byte(token), []byte(h.formToken(cookie, r.URL.Path))) {
		return schema.Errorf(schema.KindForbidden, "This form is out of date, or was not made for you; nothing was done. Open the page again and repeat it there.")
	}
	return nil
}

// signIn takes an API key for a session.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request, key string) error {
	if !h.o.Keys.Configured() {
		return errNoKeys()
	}
	asked := &http.Request{Header: http.Header{"Authorization": {"Bearer " + key}}, RemoteAddr: r.RemoteAddr}
	who, err := h.o.Keys.Authenticate(asked)
	if err != nil {
		return err
	}
	known, ok := h.o.Keys.Find(who.Name)
	if !ok { // it was removed at this moment
		return schema.Errorf(schema.KindUnauthenticated, "The API key is not known here any more.")
	}
	h.sessions.drop(sha256.Sum256([]byte(h.cookie(r))))
	h.begin(w, session{who: who, key: known.Hash, since: h.o.Now()})
	return nil
}

func errNoKeys() error {
	return schema.Errorf(schema.KindUnauthenticated, "This approver has no API keys: people sign in on its pages. An operator who wants its API used adds approver.keys.")
}

// begin opens a session under a new cookie.
func (h *Handler) begin(w http.ResponseWriter, in session) {
	in.began = h.o.Now()
	in.expires = in.began.Add(h.o.Lifetime)
	h.sessions.put(h.newCookie(w), in)
}
