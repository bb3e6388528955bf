package credential

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/schema"
)

// exchanging returns a book whose server crm uses exchanged tokens. Tokens of callers are
// "caller-token-NAME-…".
func exchanging(t *testing.T) (*testServers, *Book) {
	t.Helper()
	w := newTestServers(t)
	w.as.Subjects = func(token string) (user, refusal string) {
		switch parts := strings.Split(token, "-"); {
		case parts[0] != "caller":
			return "", "invalid_request"
		case parts[2] == "consent":
			return "", "consent_required"
		case parts[2] == "target":
			return "", "invalid_target"
		default:
			return parts[2], ""
		}
	}
	return w, w.book(t, func(s *Server) { s.Exchange = &Exchange{Resource: s.URL} })
}

// signedIn returns a principal with an access token.
func signedIn(token string) *schema.Principal {
	return &schema.Principal{Name: "corp:x", Grant: &scope.Grant{Caller: &scope.CallerToken{Token: scope.Bearer(token), Expires: time.Now().Add(time.Hour)}}}
}

// asked sends a worker's request and returns the response of the book.
func asked(t *testing.T, w *testServers, b *Book, who *schema.Principal, refused uint64) (Credential, error) {
	t.Helper()
	q, err := Ask("call_1", "crm", w.mcp.URL+"/mcp", refused)
	if err != nil {
		t.Fatal(err)
	}
	answer := b.Answer(t.Context(), "call_1", "crm", who, q.Message)
	if strings.Contains(string(answer), "caller-token") || strings.Contains(string(answer), "canary") {
		t.Errorf("the answer can be read: %s", answer)
	}
	return q.Open(answer)
}

func TestConcurrentCallsShareOneTokenExchange(t *testing.T) {
	w, b := exchanging(t)
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			user := fmt.Sprint("user", i%20)
			c, err := asked(t, w, b, signedIn("caller-token-"+user), 0)
			if got := w.as.User(strings.TrimPrefix(c.Value, "Bearer ")); err != nil || got != user {
				t.Errorf("%s has a token of %q, %v", user, got, err)
			}
		})
	}
	calls.Wait()
	if n := w.as.Issued(); n != 20 {
		t.Errorf("%d exchanges for 20 tokens", n)
	}
	form := w.as.LastForm()
	if form.Get("resource") != w.mcp.URL+"/mcp" || form.Get("audience") != "" {
		t.Errorf("asked for %v", form)
	}
	// Another token of the same person may have other permissions, so it is exchanged separately.
	first, err := asked(t, w, b, signedIn("caller-token-user1"), 0)
	if err != nil || w.as.Issued() != 20 {
		t.Errorf("%d exchanges, %v", w.as.Issued(), err)
	}
	second, err := asked(t, w, b, signedIn("caller-token-user1-narrow"), 0)
	if err != nil || second.Version == first.Version || w.as.Issued() != 21 {
		t.Errorf("%d exchanges, %v", w.as.Issued(), err)
	}
	// The server rejects the token, or it expires.
	next, err := asked(t, w, b, signedIn("caller-token-user1"), first.Version)
	if err != nil || next.Version == first.Version || w.as.Issued() != 22 {
		t.Errorf("a token that was refused: %d exchanges, %v", w.as.Issued(), err)
	}
	b.now = func() time.Time { return time.Now().Add(w.as.Life - early + time.Second) }
	if last, err := asked(t, w, b, signedIn("caller-token-user1"), 0); err != nil || last.Version == next.Version {
		t.Errorf("near its end: %v", err)
	}
	rows, err := b.rows.All(t.Context())
	if err != nil || len(rows) != 0 {
		t.Errorf("%d rows are stored, %v", len(rows), err)
	}
}

func TestCallWithoutCallerTokenGetsNoCredential(t *testing.T) {
	w, b := exchanging(t)
	// A shared secret, or the person's grant at another server, must not be used.
	plain := w.book(t, nil)
	w.connect(t, plain, Person(&schema.Principal{Name: "corp:x"}))
	before := w.as.Issued()
	ends := func(what string, who *schema.Principal, kind schema.Kind, url string) {
		t.Helper()
		c, err := asked(t, w, b, who, 0)
		var e *schema.Error
		if !errors.As(err, &e) || e.Kind != kind || e.ConnectURL != url || c.Value != "" || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "caller-token") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ends("an API key", &schema.Principal{Name: "corp:x"}, schema.KindForbidden, "")
	ends("a key made over the API", &schema.Principal{Name: "corp:x", Grant: &scope.Grant{ID: "key"}}, schema.KindForbidden, "")
	ends("a target that is not allowed", signedIn("caller-token-target"), schema.KindForbidden, "")
	ends("consent without a page", signedIn("caller-token-consent"), schema.KindForbidden, "")
	b.servers["crm"].Exchange.ConsentURL = "https://login.example/consent"
	ends("consent", signedIn("caller-token-consent"), schema.KindConnectRequired, "https://login.example/consent")
	b.servers["crm"].OAuth.HTTP = &http.Client{Transport: unavailableStore{}}
	ends("an authorization server that is away", signedIn("caller-token-ada"), schema.KindUnavailable, "")
	b.servers["crm"].OAuth.HTTP = w.http
	b.servers["crm"].OAuth.Secret = func() (string, error) { return "wrong", nil }
	ends("a wrong client secret", signedIn("caller-token-ada"), schema.KindUnavailable, "")
	if w.as.Issued() != before {
		t.Errorf("%d tokens were issued", w.as.Issued()-before)
	}
	if all, err := b.Connections(t.Context(), "ada"); err != nil || len(all) != 1 || all[0].Server.ID != "jira" {
		t.Errorf("people are asked to connect to %v, %v", all, err)
	}
	if _, err := b.Begin(t.Context(), "crm"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("connecting: %v", err)
	}
}

func TestExchangeNeverReturnsTheCallersToken(t *testing.T) {
	w, b := exchanging(t)
	w.as.Issues = func(string) string { return "caller-token-ada" }
	if c, err := asked(t, w, b, signedIn("caller-token-ada"), 0); schema.KindOf(err) != schema.KindUnavailable || c.Value != "" {
		t.Errorf("got %v", err)
	}
}

func TestExchangedTokenExpiresWithTheCallersToken(t *testing.T) {
	now := time.Now()
	got := &oauth.Token{Expires: now.Add(time.Hour)}
	if until := end(got, now, now.Add(time.Minute)); !until.Equal(now.Add(time.Minute)) {
		t.Errorf("it is kept for %v", until.Sub(now))
	}
	if until := end(got, now, time.Time{}); !until.Equal(now.Add(59 * time.Minute)) {
		t.Errorf("it is kept for %v", until.Sub(now))
	}
	x := &Exchange{}
	for i := range mostExchanged + 10 {
		x.keep([32]byte{byte(i), byte(i >> 8)}, Credential{Version: 1}, now.Add(time.Minute), now)
	}
	if len(x.kept) != mostExchanged {
		t.Errorf("%d tokens are kept", len(x.kept))
	}
}

// TestCallersTokenIsSentOnlyToTheIssuer tests an issuer whose endpoint redirects, one whose
// metadata names another issuer, and a worker with a different address of the server.
func TestCallersTokenIsSentOnlyToTheIssuer(t *testing.T) {
	var strayed atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(thief.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		moved := httptest.NewServer(http.RedirectHandler(thief.URL, status))
		t.Cleanup(moved.Close)
		w, b := exchanging(t)
		w.as.Change = func(m map[string]any) { m["token_endpoint"] = moved.URL }
		if _, err := asked(t, w, b, signedIn("caller-token-ada"), 0); schema.KindOf(err) != schema.KindUnavailable {
			t.Errorf("a redirect %d: %v", status, err)
		}
	}
	w, b := exchanging(t)
	w.as.Change = func(m map[string]any) { m["issuer"], m["token_endpoint"] = thief.URL, thief.URL }
	if _, err := asked(t, w, b, signedIn("caller-token-ada"), 0); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("metadata of another issuer: %v", err)
	}
	q, err := Ask("call_1", "crm", thief.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Open(b.Answer(t.Context(), "call_1", "crm", signedIn("caller-token-ada"), q.Message)); schema.KindOf(err) != schema.KindServerFailed {
		t.Errorf("a server that moved: %v", err)
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
