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
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// A sign-in at a provider is under way in one browser, in a sealed cookie, and
// nowhere here: whoever begins many of them costs nothing. That cookie alone is
// sent when another site leads back (SameSite=Lax); the one of the session is not.

const flowAge = 10 * time.Minute

// maxFlow is more than any sealed flow takes.
const maxFlow = 3 << 10

// passage is what lies in the sealed cookie.
type passage struct {
	Flow oidc.Flow `json:"flow"`
	Next string    `json:"next"`
	// Before is the hash of the cookie of the session that the new one follows.
	Before []byte `json:"before,omitempty"`
}

func newSeal() (cipher.AEAD, error) {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (h *Handler) flowCookie() string {
	if h.https {
		return "__Host-callyard-passage"
	}
	return "callyard-passage"
}

func (h *Handler) setFlow(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // as the cookie of the session
		Name: h.flowCookie(), Value: value, Path: "/", MaxAge: age, Secure: h.https, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// passage reads the sealed cookie; false where there is none of ours.
func (h *Handler) passage(r *http.Request) (p passage, ok bool) {
	c, err := r.Cookie(h.flowCookie())
	if err != nil || len(c.Value) > maxFlow {
		return p, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return p, false
	}
	open, err := h.seal.Open(nil, nil, sealed, []byte(h.flowCookie()))
	return p, err == nil && json.Unmarshal(open, &p) == nil
}

// goToProvider sends the browser to the provider. It changes nothing here.
func (h *Handler) goToProvider(w http.ResponseWriter, r *http.Request) error {
	people := h.o.People
	if people == nil {
		return schema.Errorf(schema.KindNotFound, "People do not sign in at a provider here.")
	}
	q := r.URL.Query()
	// The cookie must be of the name under which the provider leads back.
	if back := people.Redirect(); r.Host != back.Host && h.ownHost(r.Host) && r.Method == http.MethodGet && !q.Has("arrived") {
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
	p := passage{Flow: flow, Next: next(q.Get("next"))}
	if cookie := h.cookie(r); cookie != "" {
		sum := sha256.Sum256([]byte(cookie))
		p.Before = sum[:]
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The sign-in cannot begin: %w", err)
	}
	sealed := h.seal.Seal(nil, nil, raw, []byte(h.flowCookie())) //nolint:gosec // the cipher makes a random nonce of its own
	h.setFlow(w, base64.RawURLEncoding.EncodeToString(sealed), int(flowAge.Seconds()))
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // the host is that of the provider in the configuration
	return nil
}

// comeBack takes a person from the provider.
func (h *Handler) comeBack(w http.ResponseWriter, r *http.Request) error {
	people := h.o.People
	if people == nil {
		return schema.Errorf(schema.KindNotFound, "People do not sign in at a provider here.")
	}
	if r.Method != http.MethodGet { // HEAD spends nothing
		w.Header().Set("Allow", http.MethodGet)
		return schema.Errorf(problem.KindMethod, "This path takes GET, from the provider's page.")
	}
	p, ok := h.passage(r)
	if !ok {
		return h.refuseArrival(w, schema.Errorf(schema.KindForbidden, "This sign-in was not begun in this browser, or was begun too long ago; nobody was signed in. Sign in again."))
	}
	h.setFlow(w, "", -1) // one flow, one try
	person, err := people.Finish(r.Context(), p.Flow, r.URL.Query())
	if err != nil {
		h.fault(r, err)
		return h.refuseArrival(w, err)
	}
	if len(p.Before) == sha256.Size {
		h.sessions.drop([sha256.Size]byte(p.Before))
	}
	h.begin(w, session{who: person.Principal, since: person.SignedIn})
	if h.o.Slack != nil {
		if err := h.o.Slack.SignedIn(r.Context(), person.Principal); err != nil {
			h.o.Log.Warn("the groups of a sign-in do not count in Slack yet; sign in once more", "error", err)
		}
	}
	h.o.Log.Info("somebody signed in", "name", person.Principal.Name, "groups", len(person.Principal.Groups))
	// A redirect would still count as led here by another site, and come without
	// the new cookie. A page of ours that leads on does not.
	page := view{Title: "You are signed in", Go: p.Next, Page: message{Text: "You are signed in as " + Escaped([]byte(person.Principal.Owner)) + ".", To: p.Next, Label: "Go on"}}
	return h.render(w, http.StatusOK, "message", visitor{}, page)
}

// refuseArrival tells a person who does not come in why, and leads back to the
// sign-in. What came with the request makes no part of it.
func (h *Handler) refuseArrival(w http.ResponseWriter, err error) error {
	d := problem.Of(err)
	page := view{Title: "You are not signed in", Page: message{Text: d.Detail, To: "/sign-in", Label: "To the sign-in"}}
	return h.render(w, d.Status, "message", visitor{}, page)
}
