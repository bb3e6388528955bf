// Package oauthtest provides an HTTP authorization server for tests. It must not be used outside
// tests.
package oauthtest

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Server is an authorization server whose users consent to everything. Each refresh token can be
// used once. Set the fields before the first request.
type Server struct {
	*httptest.Server
	// Life is the lifetime of access tokens, one hour by default.
	Life time.Duration
	// Subjects returns the user of a token that may be exchanged, or the error with which it is
	// refused. If nil, no token may be exchanged.
	Subjects func(token string) (user, refusal string)
	// Issues changes an access token before it is sent. If nil, tokens are not changed.
	Issues func(token string) string
	// Change, if set, changes the metadata before it is sent.
	Change func(m map[string]any)

	mu      sync.Mutex
	clients map[string]client
	tokens  map[string]issued
	codes   map[string]code
	refresh map[string]code // by refresh token
	forms   []url.Values
	issued  int
	ever    map[string]string // every token, by its description
	user    string
}

type client struct {
	secret string
	key    crypto.PublicKey
}

type issued struct {
	scope, resource, user string
	ends                  time.Time
}

type code struct {
	client, redirect, challenge, scope, resource, user string
}

// New starts a server that stops when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		Life: time.Hour, clients: map[string]client{}, tokens: map[string]issued{}, codes: map[string]code{},
		refresh: map[string]code{}, ever: map[string]string{}, user: "somebody",
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", s.revoke)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// AddClient registers a client with a secret. If the secret is "", the client is public.
func (s *Server) AddClient(id, secret string) { s.add(id, client{secret: secret}) }

// AddKey registers a client that authenticates with a signature (ES256, RS256 or EdDSA).
func (s *Server) AddKey(id string, key crypto.PublicKey) { s.add(id, client{key: key}) }

func (s *Server) add(id string, c client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[id] = c
}

// SignIn sets the user who consents from now on.
func (s *Server) SignIn(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = user
}

// Takes reports whether an access token is valid.
func (s *Server) Takes(token string) bool { _, ok := s.find(token); return ok }

// Scope returns the scopes of a token, or "" if the token is invalid.
func (s *Server) Scope(token string) string { t, _ := s.find(token); return t.scope }

// User returns the user of a token, or "" if the token is invalid or has no user.
func (s *Server) User(token string) string { t, _ := s.find(token); return t.user }

func (s *Server) find(token string) (issued, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tokens[token]
	return t, ok && time.Now().Before(t.ends)
}

// Issued returns the number of issued tokens.
func (s *Server) Issued() int { s.mu.Lock(); defer s.mu.Unlock(); return s.issued }

// Secrets returns all tokens that were ever issued, by description.
func (s *Server) Secrets() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ever)
}

// RevokeAll makes all access tokens invalid.
func (s *Server) RevokeAll() { s.mu.Lock(); defer s.mu.Unlock(); clear(s.tokens) }

// RevokeGrants makes all refresh tokens invalid.
func (s *Server) RevokeGrants() { s.mu.Lock(); defer s.mu.Unlock(); clear(s.refresh) }

// LastForm returns the last request for a token.
func (s *Server) LastForm() url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms[len(s.forms)-1]
}

// Agree simulates a browser that is sent to address and whose user consents to everything. It
// returns the query of the final redirect.
func Agree(t testing.TB, address string) url.Values {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	resp, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
		"revocation_endpoint": s.URL + "/revoke", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post", "none", "private_key_jwt"},
		"authorization_response_iss_parameter_supported": true, "scopes_supported": []string{"read", "write", "offline_access"},
	}
	if s.Change != nil {
		s.Change(m)
	}
	answer(w, http.StatusOK, m)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code string) {
	// A server's error description may repeat the request.
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": "canary-description"})
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		refuse(w, "invalid_client_metadata")
		return
	}
	id, secret := rand.Text(), rand.Text()
	s.AddClient(id, secret)
	m["client_id"], m["client_secret"] = id, secret
	answer(w, http.StatusCreated, m)
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("resource") == "" {
		refuse(w, "invalid_request")
		return
	}
	id := rand.Text()
	s.codes[id] = code{
		client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), scope: q.Get("scope"), resource: q.Get("resource"), user: s.user,
	}
	back := url.Values{"code": {id}, "state": {q.Get("state")}, "iss": {s.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound) //nolint:gosec // the server of a test
}

// authenticated returns the client of a request.
func (s *Server) authenticated(r *http.Request) (string, bool) {
	if id, secret, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		c, known := s.clients[id]
		return id, known && c.key == nil && c.secret == secret
	}
	id := r.PostForm.Get("client_id")
	c, known := s.clients[id]
	if c.key == nil {
		return id, known && c.secret == r.PostForm.Get("client_secret") || strings.HasPrefix(id, "https://")
	}
	t, err := jwt.ParseSigned(r.PostForm.Get("client_assertion"), []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.EdDSA})
	var claims jwt.Claims
	if err == nil {
		err = t.Claims(c.key, &claims)
	}
	return id, err == nil && claims.Issuer == id && claims.Subject == id && claims.ID != "" && claims.Audience.Contains(s.URL) &&
		claims.Validate(jwt.Expected{Time: time.Now()}) == nil
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	form := r.PostForm
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forms = append(s.forms, form)
	id, ok := s.authenticated(r)
	if !ok {
		refuse(w, "invalid_client")
		return
	}
	var g code
	switch form.Get("grant_type") {
	case "client_credentials":
		s.issue(w, code{client: id, scope: form.Get("scope"), resource: form.Get("resource")}, false)
		return
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		s.exchange(w, id, form)
		return
	case "authorization_code":
		g, ok = s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		ok = ok && g.redirect == form.Get("redirect_uri") && g.challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && g.resource == form.Get("resource")
	case "refresh_token":
		old := form.Get("refresh_token")
		g, ok = s.refresh[old]
		delete(s.refresh, old)
	default:
		refuse(w, "unsupported_grant_type")
		return
	}
	if !ok || g.client != id {
		refuse(w, "invalid_grant")
		return
	}
	s.issue(w, g, true)
}

func (s *Server) issue(w http.ResponseWriter, g code, refresh bool) {
	access := "canary-access-" + rand.Text()
	s.tokens[access] = issued{scope: g.scope, resource: g.resource, user: g.user, ends: time.Now().Add(s.Life)}
	s.issued++
	s.ever[fmt.Sprintf("access token %d of %s", s.issued, g.user+g.client)] = access
	if s.Issues != nil {
		access = s.Issues(access)
	}
	a := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(s.Life.Seconds()), "scope": g.scope}
	if refresh {
		next := "canary-refresh-" + rand.Text()
		s.refresh[next] = g
		s.ever[fmt.Sprintf("refresh token %d of %s", s.issued, g.user)] = next
		a["refresh_token"] = next
	}
	answer(w, http.StatusOK, a)
}

// exchange exchanges the tokens that Subjects accepts.
func (s *Server) exchange(w http.ResponseWriter, id string, form url.Values) {
	user, refusal := "", "invalid_request"
	if s.Subjects != nil {
		user, refusal = s.Subjects(form.Get("subject_token"))
	}
	if refusal != "" || form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
		refuse(w, refusal)
		return
	}
	s.issue(w, code{client: id, scope: form.Get("scope"), resource: form.Get("resource") + form.Get("audience"), user: user}, false)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.authenticated(r); ok {
		delete(s.refresh, r.PostForm.Get("token"))
	}
	w.WriteHeader(http.StatusOK)
}
