package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/internal/upstream/oauth/oauthtest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServers is a NATS server, an authorization server, and an MCP server of which only the
// metadata is used.
type testServers struct {
	nats *bustest.Server
	as   *oauthtest.Server
	mcp  *httptest.Server
	keys *Keys
	data DataKeys // nil if there are none
	http *http.Client
}

func newTestServers(t *testing.T) *testServers {
	t.Helper()
	w := &testServers{nats: bustest.Start(t), as: oauthtest.New(t)}
	w.mcp = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(map[string]any{"resource": w.mcp.URL + "/mcp", "authorization_servers": []string{w.as.URL}})
	}))
	t.Cleanup(w.mcp.Close)
	w.as.AddClient("callyard", "canary-client")
	w.http = oauth.NewHTTPClient(w.mcp.URL)
	t.Cleanup(w.http.CloseIdleConnections)
	var err error
	if w.keys, err = NewKeys(); err != nil {
		t.Fatal(err)
	}
	return w
}

// book returns the book of one process.
func (w *testServers) book(t *testing.T, change func(s *Server)) *Book {
	t.Helper()
	conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: w.nats.URL, Provision: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	crm := &Server{ID: "crm", URL: w.mcp.URL + "/mcp", Header: "Authorization", Scheme: "Bearer", OAuth: &oauth.Client{
		ID: "callyard", Issuer: w.as.URL, Secret: func() (string, error) { return "canary-client", nil }, RedirectURL: "https://callyard.example/connect/callback", HTTP: w.http,
	}}
	if change != nil {
		change(crm)
	}
	b, err := Open(t.Context(), conn, w.keys, w.data, []*Server{crm, {ID: "jira", URL: "https://jira.example/mcp", Header: "X-Api-Key"}}, "https://callyard.example", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *testServers) connect(t *testing.T, b *Book, person string) {
	t.Helper()
	w.as.SignIn(person)
	req, err := b.Begin(t.Context(), "crm")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Finish(t.Context(), "crm", person, req, oauthtest.Agree(t, req.URL)); err != nil {
		t.Fatal(err)
	}
}

func required(t *testing.T, what string, err error) {
	t.Helper()
	var e *schema.Error
	if !errors.As(err, &e) || e.Kind != schema.KindConnectRequired || e.ConnectURL == "" {
		t.Errorf("%s: got %v, want a question to connect", what, err)
	}
}

func TestAPersonIsReadyOnceConnected(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	ada := &schema.Principal{Owner: "ada"}
	required(t, "before connecting", b.Ready(t.Context(), ada, "crm"))
	w.connect(t, b, Person(ada))
	if err := b.Ready(t.Context(), ada, "crm"); err != nil {
		t.Error(err)
	}
	required(t, "another person", b.Ready(t.Context(), &schema.Principal{Owner: "bob"}, "crm"))
	for _, of := range []*Book{b, nil} {
		if err := of.Ready(t.Context(), ada, "needs-none"); err != nil {
			t.Error(err)
		}
	}
}

func TestCredentialsArePerPerson(t *testing.T) {
	w := newTestServers(t)
	b, other := w.book(t, nil), w.book(t, nil)
	_, err := b.Get(t.Context(), "crm", "ada", 0)
	required(t, "before connecting", err)
	for i := range 20 {
		w.connect(t, b, fmt.Sprint("person", i))
		if err := b.SetSecret(t.Context(), "jira", fmt.Sprint("person", i), fmt.Sprint("canary-key-", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		person := fmt.Sprint("person", i)
		c, err := other.Get(t.Context(), "crm", person, 0)
		if token := strings.TrimPrefix(c.Value, "Bearer "); err != nil || w.as.User(token) != person || c.Header != "Authorization" {
			t.Errorf("%s: a token of %q, %v", person, w.as.User(token), err)
		}
		c, err = other.Get(t.Context(), "jira", person, 0)
		if err != nil || c.Value != fmt.Sprint("canary-key-", i) || c.Header != "X-Api-Key" {
			t.Errorf("%s: %v", person, err)
		}
	}
	_, err = other.Get(t.Context(), "crm", "ada", 0)
	required(t, "somebody else", err)
	if err := b.Disconnect(t.Context(), "crm", "person3"); err != nil {
		t.Fatal(err)
	}
	_, err = other.Get(t.Context(), "crm", "person3", 0)
	required(t, "after disconnecting", err)
	c, err := other.Get(t.Context(), "jira", "person3", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Get(t.Context(), "jira", "person3", c.Version)
	required(t, "a key that the server refuses", err)
}

// TestConcurrentProcessesRenewATokenOnce uses single-use refresh tokens: a second redemption would
// lose the grant.
func TestConcurrentProcessesRenewATokenOnce(t *testing.T) {
	w := newTestServers(t)
	books := []*Book{w.book(t, nil), w.book(t, nil), w.book(t, nil)}
	w.connect(t, books[0], "ada")
	for round := range 3 {
		old, err := books[0].Get(t.Context(), "crm", "ada", 0)
		if err != nil {
			t.Fatal(err)
		}
		w.as.RevokeAll()
		before := w.as.Issued()
		var calls sync.WaitGroup
		for i := range 300 {
			calls.Go(func() {
				c, err := books[i%3].Get(t.Context(), "crm", "ada", old.Version)
				if err != nil || !w.as.Takes(strings.TrimPrefix(c.Value, "Bearer ")) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		calls.Wait()
		if n := w.as.Issued() - before; n != 1 {
			t.Errorf("round %d: %d redemptions", round, n)
		}
	}
	w.as.RevokeGrants()
	c, err := books[1].Get(t.Context(), "crm", "ada", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = books[1].Get(t.Context(), "crm", "ada", c.Version)
	required(t, "a grant that was revoked", err)
	_, err = books[2].Get(t.Context(), "crm", "ada", 0)
	required(t, "a grant that was revoked, at another process", err)
}

func TestGrantSurvivesAuthorizationServerOutage(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	w.connect(t, b, "ada")
	c, err := b.Get(t.Context(), "crm", "ada", 0)
	if err != nil {
		t.Fatal(err)
	}
	b.servers["crm"].OAuth.HTTP = &http.Client{Transport: unavailableStore{}}
	_, err = b.Get(t.Context(), "crm", "ada", c.Version)
	if schema.KindOf(err) != schema.KindUnavailable || strings.Contains(err.Error(), "canary") {
		t.Errorf("away: %v", err)
	}
	b.servers["crm"].OAuth.HTTP = w.http
	if next, err := b.Get(t.Context(), "crm", "ada", c.Version); err != nil || next.Version == c.Version {
		t.Errorf("back: %v", err)
	}
}

type unavailableStore struct{}

func (unavailableStore) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("away")
}

func TestCredentialIsBoundToItsOriginAndRow(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	w.connect(t, b, "ada")
	moved := w.book(t, func(s *Server) { s.URL = "https://thief.example/mcp" })
	_, err := moved.Get(t.Context(), "crm", "ada", 0)
	required(t, "a server that moved", err)
	// An attacker who can write to NATS copies the row to their own person.
	sealed, _, err := b.rows.Fresh(t.Context(), credentialtable.Key("", "crm", "ada"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.rows.Put(t.Context(), credentialtable.Key("", "crm", "mallory"), sealed); err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(t.Context(), "crm", "mallory", 0)
	required(t, "a copied row", err)
	if w.keys, err = NewKeys(); err != nil {
		t.Fatal(err)
	}
	_, err = w.book(t, nil).Get(t.Context(), "crm", "ada", 0)
	required(t, "another key", err)
}

func TestCredentialsAreStoredEncrypted(t *testing.T) {

	w := newTestServers(t)
	b := w.book(t, nil)
	for i := range 50 {
		if err := b.SetSecret(t.Context(), "jira", fmt.Sprint("person", i), fmt.Sprint("canary-secret-", i)); err != nil {
			t.Fatal(err)
		}
	}
	w.connect(t, b, "ada")
	all, err := b.rows.All(t.Context())
	if err != nil || len(all) != 51 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for key, sealed := range all {
		if bytes.Contains(sealed, []byte("canary")) || strings.Contains(key, "person") || bytes.Contains(sealed, []byte(w.as.URL)) {
			t.Errorf("the row %s can be read", key)
		}
	}
	if _, err := b.Begin(t.Context(), "jira"); err == nil {
		t.Error("a server without an authorization server can be connected to")
	}
	if err := b.Finish(context.Background(), "crm", "ada", &oauth.Request{}, url.Values{}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("an answer without a request: %v", err)
	}
	for _, bad := range []string{"", "a\nb", "ä", strings.Repeat("x", maxSecret+1)} {
		if err := b.SetSecret(t.Context(), "jira", "ada", bad); err == nil {
			t.Errorf("the key %.20q was stored", bad)
		}
	}
}

func TestKeysAreRotatedByWritingTheNewOneFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	one, two := "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI="
	load := func(text string) (*Keys, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadKeys(file)
	}
	first, err := load(one + "\n")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := first.seal([]byte("x"), place("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	both, err := load("# keys\n" + two + "\n" + one + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := both.open(sealed, place("a", "b")); err != nil || string(plain) != "x" {
		t.Errorf("%q, %v", plain, err)
	}
	if _, err := both.open(sealed, place("ab", "")); err == nil {
		t.Error("it opens for another place")
	}
	only, err := load(two)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := only.open(sealed, place("a", "b")); err == nil || strings.Contains(err.Error(), one) {
		t.Errorf("without its key: %v", err)
	}
	for _, text := range []string{"", "x", one[:20]} {
		if _, err := load(text); err == nil || text != "" && strings.Contains(err.Error(), text+" ") {
			t.Errorf("the file %q: %v", text, err)
		}
	}

}

func TestAKeyThatIsMissingIsLoggedOnce(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	for _, person := range []string{"ann", "bob"} {
		if err := b.SetSecret(t.Context(), "jira", person, "canary-secret"); err != nil {
			t.Fatal(err)
		}
	}
	b.Close()
	var err error
	if w.keys, err = NewKeys(); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	b = w.book(t, nil)
	defer b.Close()
	b.log = slog.New(slog.NewTextHandler(&lines, nil))
	for _, person := range []string{"ann", "bob", "ann", "nobody"} {
		_, err := b.Get(t.Context(), "jira", person, 0)
		required(t, person, err)
		if _, err := b.Connections(t.Context(), person); err != nil {
			t.Error(err)
		}
	}
	if text := lines.String(); strings.Count(text, "credentials.key_file") != 1 || strings.Contains(text, "canary") {
		t.Errorf("it logged %s", text)
	}
}

func FuzzOpen(f *testing.F) {
	k, err := NewKeys()
	if err != nil {
		f.Fatal(err)
	}
	good, err := k.seal([]byte("plain"), place("s", "o", "p"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if plain, err := k.open(sealed, place("s", "o", "p")); err == nil && !bytes.Equal(sealed, good) {
			t.Errorf("%x opens to %q", sealed, plain)
		}
	})
}
