package web_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/internal/upstream/oauth/oauthtest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// openWithCredentials is like open, with a server of each kind: crm with the authorization server,
// and jira where people have keys.
func openWithCredentials(t *testing.T, keys []authn.Key) (*fabric, *credential.Book, *oauthtest.Server) {
	t.Helper()
	as := oauthtest.New(t)
	var mcp *httptest.Server
	mcp = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": mcp.URL + "/mcp", "authorization_servers": []string{as.URL}})
	}))
	t.Cleanup(mcp.Close)
	wrapping, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	var book *credential.Book
	f := open(t, keys, func(o *web.Options) {
		client := &oauth.Client{RedirectURL: credential.CallbackURL("http://page", "crm"), Name: "Callyard", HTTP: oauth.NewHTTPClient(mcp.URL)}
		book, err = credential.Open(t.Context(), bustest.Start(t).Connect(t, "approver"), wrapping, nil, []*credential.Server{
			{ID: "crm", URL: mcp.URL + "/mcp", Header: "Authorization", Scheme: "Bearer", OAuth: client}, {ID: "jira", URL: "https://jira.example/mcp", Header: "X-Api-Key"},
		}, "http://page", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(book.Close)
		o.Credentials = book
	})
	return f, book, as
}

// goes matches the address to which a page continues.
var goes = regexp.MustCompile(`href="(http://[^"]+/authorize[^"]*)"`)

// beginConnect starts a connection and returns the query of the authorization server's redirect.
func (f *fabric) beginConnect(c *http.Client) string {
	f.t.Helper()
	page := f.do(c, "GET", "/connect?server=crm", "")
	page = f.post(c, "/connect/start", url.Values{"token": {formToken(f.t, page.body, "/connect/start")}, "server": {"crm"}})
	m := goes.FindStringSubmatch(page.body)
	if page.status != http.StatusOK || m == nil {
		f.t.Fatalf("%d %s", page.status, page.body)
	}
	return oauthtest.Agree(f.t, strings.ReplaceAll(m[1], "&amp;", "&")).Encode()
}

func TestServerConnectionBelongsToOnePerson(t *testing.T) {
	f, book, as := openWithCredentials(t, people())
	ada, bob := f.signedIn("ada"), f.signedIn("bob")
	query := f.beginConnect(ada)
	for what, a := range map[string]answer{
		"in another browser":     f.do(bob, "GET", "/connect/callback/crm?"+query, ""),
		"in a browser of nobody": f.do(f.browser(), "GET", "/connect/callback/crm?"+query, ""),
		"of another server":      f.do(ada, "GET", "/connect/callback/jira?"+query, ""),
		"without a token":        f.post(ada, "/connect/start", url.Values{"server": {"crm"}}),
		"from another page":      f.post(ada, "/connect/disconnect", url.Values{"server": {"crm"}}, "Sec-Fetch-Site", "cross-site"),
	} {
		if a.status != http.StatusForbidden {
			t.Errorf("%s: %d", what, a.status)
		}
	}
	if as.Issued() != 0 {
		t.Error("a code was redeemed")
	}
	if a := f.do(ada, "GET", "/connect/callback/crm?"+query, ""); a.status != http.StatusOK || !strings.Contains(a.body, "You are connected to crm") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := f.do(ada, "GET", "/connect/callback/crm?"+query, ""); a.status != http.StatusForbidden {
		t.Errorf("a second time: %d", a.status)
	}
	if _, err := book.Get(t.Context(), "crm", credential.Person(&schema.Principal{Owner: "ada@x"}), 0); err != nil {
		t.Errorf("ada: %v", err)
	}
	if _, err := book.Get(t.Context(), "crm", "bob", 0); schema.KindOf(err) != schema.KindConnectRequired {
		t.Errorf("bob: %v", err)
	}
	page := f.do(ada, "GET", "/connect", "")
	if strings.Contains(page.body, "canary") || !strings.Contains(page.body, "Connected since") {
		t.Errorf("the page: %s", page.body)
	}
	if a := f.post(ada, "/connect/disconnect", url.Values{"token": {formToken(t, page.body, "/connect/disconnect")}, "server": {"crm"}}); a.status != http.StatusSeeOther || !strings.Contains(f.do(ada, "GET", a.header.Get("Location"), "").body, "You are disconnected.") {
		t.Errorf("disconnecting: %d", a.status)
	}
	if _, err := book.Get(t.Context(), "crm", credential.Person(&schema.Principal{Owner: "ada@x"}), 0); schema.KindOf(err) != schema.KindConnectRequired {
		t.Errorf("after disconnecting: %v", err)
	}
}

func TestAKeyThatAPersonEntersIsStoredAndNeverShown(t *testing.T) {
	f, book, _ := openWithCredentials(t, people())
	ada := f.signedIn("ada")
	page := f.do(ada, "GET", "/connect?server=jira", "")
	if a := f.post(ada, "/connect/key", url.Values{"token": {formToken(t, page.body, "/connect/key")}, "server": {"jira"}, "key": {" canary-key "}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if page = f.do(ada, "GET", "/connect", ""); strings.Contains(page.body, "canary") {
		t.Error("the key is shown")
	}
	all, err := book.Connections(t.Context(), credential.Person(&schema.Principal{Owner: "ada@x"}))
	if err != nil || all[1].Connected.IsZero() {
		t.Errorf("%v, %v", all, err)
	}
	if a := f.do(f.browser(), "GET", "/connect/client.json", ""); a.status != http.StatusOK || !json.Valid([]byte(a.body)) {
		t.Errorf("the metadata: %d %s", a.status, a.body)
	}
}
