package upstream

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/internal/upstream/oauth/oauthtest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mcp is a server that takes requests with the right value of the header Authorization.
type mcp struct {
	*httptest.Server
	mu    sync.Mutex
	takes func(value string) bool
	seen  []string
	says  http.Header // with a refusal
	code  int
}

func newMCP(t *testing.T, takes func(string) bool) *mcp {
	t.Helper()
	m := &mcp{takes: takes, code: http.StatusUnauthorized}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := r.Header.Get("Authorization")
		m.mu.Lock()
		defer m.mu.Unlock()
		m.seen = append(m.seen, got)
		if !m.takes(got) {
			maps.Copy(w.Header(), m.says)
			w.WriteHeader(m.code)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(m.Close)
	return m
}

// call posts to a server with a credential and returns the status.
func call(t *testing.T, address string, auth launch.Authorizer) (int, error) {
	t.Helper()
	client := launch.HTTPClient(launch.Spec{ID: "s", URL: address, Auth: auth})
	defer client.CloseIdleConnections()
	resp, err := client.Post(address, "application/json", bytes.NewReader([]byte("{}")))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode == http.StatusOK && string(body) != "{}" {
		t.Errorf("the server got the body %q", body)
	}
	return resp.StatusCode, nil
}

func write(t *testing.T, file, text string) {
	t.Helper()
	// A new file in its place, as Kubernetes and Vault's agent write theirs.
	next := file + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

func TestSecretFileChangeIsPickedUpWithoutAFailedCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "one\n")
	good := "Bearer one"
	m := newMCP(t, func(v string) bool { return v == good })
	auth := New("s", m.URL, &config.Auth{Mode: config.AuthStatic, Header: "Authorization", Scheme: "Bearer", Value: config.Secret{File: file}})
	for round := range 3 {
		if status, err := call(t, m.URL, auth); status != http.StatusOK || err != nil {
			t.Fatalf("round %d: %d, %v", round, status, err)
		}
		next := fmt.Sprint("next", round)
		write(t, file, next)
		m.mu.Lock()
		good = "Bearer " + next
		m.mu.Unlock()
	}
	// A file that goes away does not take the secret along.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, _ = call(t, m.URL, auth)
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.seen[len(m.seen)-1]; last != "Bearer next1" {
		t.Errorf("with the file gone it sends %q", last)
	}
}

func TestChangedSecretFileIsReadWithinASecond(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "one")
	synctest.Test(t, func(t *testing.T) {
		s := newSecret(config.Secret{File: file})
		for _, want := range []string{"one", "two", "a third one"} {
			write(t, file, want)
			time.Sleep(recheck)
			if got, err := s.get(t.Context(), false); got != want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		}
	})
}

func TestUnusableSecretFailsTheCall(t *testing.T) {
	m := newMCP(t, func(string) bool { return true })
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "can\nary")
	for _, value := range []config.Secret{{File: file}, {File: filepath.Join(t.TempDir(), "none")}} {
		_, err := call(t, m.URL, New("s", m.URL, &config.Auth{Mode: config.AuthStatic, Header: "Authorization", Value: value}))
		var e *schema.Error
		if !errors.As(err, &e) || e.Kind != schema.KindServerFailed || strings.Contains(err.Error(), "ary") || !strings.Contains(e.Detail, "did not start") {
			t.Errorf("%s: %v", value.File, err)
		}
	}
	if len(m.seen) != 0 {
		t.Error("the server was asked")
	}
}

func serviceOf(issuer *oauthtest.Server) *config.Auth {
	return &config.Auth{
		Mode: config.AuthService, Header: "Authorization", Issuer: issuer.URL, ClientID: "callyard", ClientSecret: config.Secret{Text: "canary-secret"},
		Scopes: []string{"read"}, Resource: "https://mcp.example/",
	}
}

func TestConcurrentCallsShareOneTokenAndReplaceItOnce(t *testing.T) {
	issuer := oauthtest.New(t)
	issuer.AddClient("callyard", "canary-secret")
	m := newMCP(t, func(v string) bool { return issuer.Takes(strings.TrimPrefix(v, "Bearer ")) })
	auth := New("s", m.URL, serviceOf(issuer))
	both := func() {
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if status, err := call(t, m.URL, auth); status != http.StatusOK || err != nil {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
		calls.Wait()
	}
	both()
	if n := issuer.Issued(); n != 1 {
		t.Errorf("%d tokens for 50 calls", n)
	}
	// The token is younger than the age at which another one is fetched.
	s := auth.(*service)
	s.tokens.mu.Lock()
	s.tokens.since = s.tokens.since.Add(-fresh)
	s.tokens.mu.Unlock()
	issuer.RevokeAll()
	both()
	if n := issuer.Issued(); n != 2 {
		t.Errorf("%d tokens after all were revoked once", n)
	}
	form := issuer.LastForm()
	if form.Get("resource") != "https://mcp.example/" || form.Get("scope") != "read" || form.Get("grant_type") != "client_credentials" {
		t.Errorf("asked with %v", form)
	}
}

func TestAtMostTwoTokensAreFetchedForARefusingServer(t *testing.T) {
	issuer := oauthtest.New(t)
	issuer.AddClient("callyard", "canary-secret")
	m := newMCP(t, func(string) bool { return false })
	auth := New("s", m.URL, serviceOf(issuer))
	for range 20 {
		if status, err := call(t, m.URL, auth); status != http.StatusUnauthorized || err != nil {
			t.Fatalf("%d, %v", status, err)
		}
	}
	if n := issuer.Issued(); n > 2 {
		t.Errorf("%d tokens", n)
	}
}

func TestMissingScopesAreRequestedOnce(t *testing.T) {
	issuer := oauthtest.New(t)
	issuer.AddClient("callyard", "canary-secret")
	m := newMCP(t, func(v string) bool { return issuer.Scope(strings.TrimPrefix(v, "Bearer ")) == "read write" })
	m.code, m.says = http.StatusForbidden, http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write"`}}
	auth := New("s", m.URL, serviceOf(issuer))
	if status, err := call(t, m.URL, auth); status != http.StatusOK || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	m.takes = func(string) bool { return false }
	before := issuer.Issued()
	if status, err := call(t, m.URL, auth); status != http.StatusForbidden || err != nil || issuer.Issued() != before {
		t.Errorf("%d, %v, %d tokens more", status, err, issuer.Issued()-before)
	}
}

func TestClientAuthenticatesWithAPrivateKey(t *testing.T) {
	issuer := oauthtest.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	issuer.AddKey("callyard", &key.PublicKey)
	a := serviceOf(issuer)
	a.ClientSecret, a.PrivateKeyFile, a.KeyID = config.Secret{}, file, "k1"
	m := newMCP(t, func(v string) bool { return issuer.Takes(strings.TrimPrefix(v, "Bearer ")) })
	if status, err := call(t, m.URL, New("s", m.URL, a)); status != http.StatusOK || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
}

func TestATokenIsReplacedShortlyBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := tokens{fetch: func(context.Context, []string) (*oauth.Token, error) {
			n++
			return &oauth.Token{Access: fmt.Sprint(n), Expires: time.Now().Add(time.Hour)}, nil
		}}
		for _, c := range []struct {
			pause time.Duration
			want  string
		}{{0, "1"}, {58 * time.Minute, "1"}, {61 * time.Second, "2"}, {58 * time.Minute, "2"}} {
			time.Sleep(c.pause)
			if got, err := s.get(t.Context()); err != nil || got.Access != c.want {
				t.Errorf("after %v: %v, %v, want token %s", c.pause, got.Access, err, c.want)
			}
		}
	})
}

// TestCredentialsAreNotSentToOtherOrigins sends a server with a credential elsewhere in every way that a server or
// a name server has.
func TestCredentialsAreNotSentToOtherOrigins(t *testing.T) {
	var leaked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
	}))
	defer other.Close()
	issuer := oauthtest.New(t)
	issuer.AddClient("callyard", "canary-secret")
	for _, status := range []int{301, 302, 303, 307, 308} {
		m := httptest.NewServer(http.RedirectHandler(other.URL, status))
		for _, a := range []*config.Auth{serviceOf(issuer), {Mode: config.AuthStatic, Header: "Authorization", Value: config.Secret{Text: "canary-secret"}}} {
			if got, err := call(t, m.URL, New("s", m.URL, a)); err == nil {
				t.Errorf("the redirect %d was followed: %d", status, got)
			} else if strings.Contains(err.Error(), "canary") {
				t.Errorf("the error has a secret: %v", err)
			}
		}
		m.Close()
	}
	// The client is asked for an address of another origin.
	auth := New("s", "http://tools.invalid", serviceOf(issuer))
	client := launch.HTTPClient(launch.Spec{ID: "s", URL: "http://tools.invalid", Auth: auth})
	defer client.CloseIdleConnections()
	if _, err := client.Get(other.URL); err == nil {
		t.Error("another origin was asked")
	}
	if n := leaked.Load(); n != 0 {
		t.Errorf("%d requests with a credential went elsewhere", n)
	}
}

func TestHijackedHostNameGetsNoCredential(t *testing.T) {
	var leaked atomic.Int32
	// Whoever has the name now has no certificate for it.
	thief := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer thief.Close()
	thief.Config.ErrorLog = nil
	_, port, _ := net.SplitHostPort(thief.Listener.Addr().String())
	address := "https://localhost:" + port
	auth := New("s", address, &config.Auth{Mode: config.AuthStatic, Header: "Authorization", Value: config.Secret{Text: "canary-secret"}})
	if _, err := call(t, address, auth); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
	if leaked.Load() != 0 {
		t.Error("it got the request")
	}
}
