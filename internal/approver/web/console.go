package web

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// consoleWithin is the timeout for the front door requests of a console page.
const consoleWithin = time.Minute

// consolePages serves the console to permitted visitors, with the same sign-in and navigation as the
// approvals.
type consolePages struct {
	site *site
}

func (p *consolePages) register() {
	for _, route := range p.site.o.Console.Routes() {
		p.site.visited(route.Pattern, func(w http.ResponseWriter, r *http.Request, v visitor) error {
			if !p.site.o.seesConsole(v) {
				return schema.Errorf(schema.KindForbidden, "You are in no group that may use the console. An operator sets approver.console.groups.")
			}
			if r.URL.Path != console.Root+"/events" && r.URL.Path != console.Root+"/batch/results" { // these set their own deadlines
				ctx, cancel := context.WithTimeout(r.Context(), consoleWithin)
				defer cancel()
				r = r.WithContext(ctx)
			}
			// A page waits for the front door. The read deadline must not end that wait, because the
			// request has been read.
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Time{})
			_ = control.SetWriteDeadline(time.Now().Add(2 * consoleWithin)) // the recorder of a test does not support it
			return route.Serve(w, r, p.visit(v))
		})
	}
}

// seesConsole reports whether a visitor may use the console: members of its groups, or everyone on
// loopback if no sign-in is required.
func (o *Options) seesConsole(v visitor) bool {
	if o.Console == nil || !v.known {
		return false
	}
	return v.local || slices.ContainsFunc(v.who.Groups, func(g string) bool { return slices.Contains(o.ConsoleGroups, g) })
}

func (p *consolePages) visit(v visitor) console.Visit {
	return console.Visit{
		Person: personOf(v.who.Name), Key: p.site.keys.get(v.cookie),
		Keep:  func(key string) { p.site.keys.put(v.who.ID(), v.cookie, key) },
		Token: func(path string) string { return p.site.access.formToken(v.cookie, path) },
		Write: func(w http.ResponseWriter, status int, t *template.Template, f ui.Frame) error {
			f.Nav = append(f.Nav, ui.Link{To: "/", Label: "Approvals"})
			return p.site.write(w, status, t, v, f)
		},
	}
}

// vault stores the API keys that people entered for the console, at most as many as there can be
// sessions. Each is sealed with the cookie of its session, so that a memory dump reveals none. It is
// safe for concurrent use.
type vault struct {
	now      func() time.Time
	lifetime time.Duration
	mu       sync.Mutex
	by       map[[sha256.Size]byte]sealed
}

type sealed struct {
	person  schema.PrincipalID
	text    []byte
	expires time.Time
}

func newVault(now func() time.Time, lifetime time.Duration) *vault {
	return &vault{now: now, lifetime: lifetime, by: make(map[[sha256.Size]byte]sealed)}
}

// place returns the index of a cookie's key, and the cipher that seals it. Both are derived from the
// cookie by different hashes.
func (k *vault) place(cookie string) ([sha256.Size]byte, cipher.AEAD, error) {
	secret := sha256.Sum256([]byte("callyard console key\x00" + cookie))
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return secret, nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	return sha256.Sum256([]byte(cookie)), seal, err
}

// put stores a key of a person for a cookie. An empty key removes it.
func (k *vault) put(person schema.PrincipalID, cookie, key string) {
	place, seal, err := k.place(cookie)
	if err != nil || cookie == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.by, place)
	if key == "" {
		return
	}
	now := k.now()
	evict(k.by, person, func(s sealed) tenure { return tenure{s.person, s.expires, !now.Before(s.expires)} })
	k.by[place] = sealed{person, seal.Seal(nil, nil, []byte(key), nil), now.Add(k.lifetime)} //nolint:gosec // the AEAD makes a random nonce
}

// get returns the key of a cookie, or "".
func (k *vault) get(cookie string) string {
	place, seal, err := k.place(cookie)
	if err != nil {
		return ""
	}
	k.mu.Lock()
	s, ok := k.by[place]
	k.mu.Unlock()
	if !ok || !k.now().Before(s.expires) {
		return ""
	}
	key, err := seal.Open(nil, nil, s.text, nil)
	if err != nil {
		return ""
	}
	return string(key)
}

// serveConsoleFile serves a stylesheet or script of the console.
func serveConsoleFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		content, media, ok := console.Static(name)
		if !ok {
			problem.Write(w, schema.Errorf(schema.KindNotFound, "The file does not exist."))
			return
		}
		sendFile(w, content, media)
	}
}
