package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authserver"
)

// give gives the program access, and returns the refresh token.
func (f *fabric) give(c *http.Client) (refresh string) {
	f.t.Helper()
	page := f.do(c, "GET", authorize(), "")
	back := continuesTo(f.t, f.post(c, authserver.AuthorizePath, consent(page.body, "allow")))
	if back == nil {
		f.t.Fatalf("led nowhere: %d %s", page.status, page.body)
	}
	got := f.post(f.browser(), authserver.TokenPath, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {back.Query().Get("code")}, "redirect_uri": {appBack}, "code_verifier": {appVerifier},
	})
	var tokens struct {
		Refresh string `json:"refresh_token"`
	}
	if err := json.Unmarshal([]byte(got.body), &tokens); err != nil || tokens.Refresh == "" {
		f.t.Fatalf("%d %s", got.status, got.body)
	}
	return tokens.Refresh
}

// renews reports whether a refresh token is valid.
func (f *fabric) renews(refresh *string) bool {
	f.t.Helper()
	got := f.post(f.browser(), authserver.TokenPath, url.Values{"grant_type": {"refresh_token"}, "client_id": {"app"}, "refresh_token": {*refresh}})
	var tokens struct {
		Refresh string `json:"refresh_token"`
	}
	_ = json.Unmarshal([]byte(got.body), &tokens)
	*refresh = tokens.Refresh
	return got.status == http.StatusOK
}

var endForm = regexp.MustCompile(`action="(/grants/[0-9a-f]{32}/end)"`)

func tenantPeople() []authn.Key {
	return []authn.Key{
		{Name: "ada", Owner: "ada@x", Groups: []string{"staff"}}, {Name: "bob", Groups: []string{"staff"}}, {Name: "root", Groups: []string{"ops"}},
		{Name: "red/ada", Owner: "ada@x", Groups: []string{"staff"}, Tenant: "red"}, {Name: "red/root", Groups: []string{"ops"}, Tenant: "red"},
	}
}

func TestPersonListsAndRevokesOwnProgramsOnly(t *testing.T) {
	f := openWithAuthorization(t, tenantPeople())
	ada, bob := f.signedIn("ada"), f.signedIn("bob")
	if page := f.do(ada, "GET", "/grants", "", "Accept", "text/html"); page.status != http.StatusOK || !strings.Contains(page.body, "You gave no program access") || !strings.Contains(page.body, `href="/grants"`) {
		t.Errorf("before: %d %s", page.status, page.body)
	}
	refresh := f.give(ada)
	page := f.do(ada, "GET", "/grants", "", "Accept", "text/html")
	for _, want := range []string{"App &lt;b&gt;", "https://tools.example/mcp", "Call all tools in your name", "the operator"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(page.body, "\u202e") || strings.Contains(page.body, "cyr_") || strings.Contains(page.body, "Programs of other people") {
		t.Errorf("the page shows too much: %s", page.body)
	}
	m := endForm.FindStringSubmatch(page.body)
	if m == nil {
		t.Fatalf("there is no form: %s", page.body)
	}
	token := formToken(t, page.body, m[1])
	if page := f.do(bob, "GET", "/grants", "", "Accept", "text/html"); strings.Contains(page.body, "App &lt;b&gt;") {
		t.Error("bob sees it")
	}
	for what, a := range map[string]answer{
		"bob, with ada's token":  f.post(bob, m[1], url.Values{"token": {token}}),
		"nobody":                 f.post(f.browser(), m[1], url.Values{"token": {token}}),
		"without a token":        f.post(ada, m[1], url.Values{}),
		"from another page":      f.post(ada, m[1], url.Values{"token": {token}}, "Sec-Fetch-Site", "cross-site"),
		"another access":         f.post(ada, "/grants/"+strings.Repeat("0", 32)+"/end", url.Values{"token": {token}}),
		"bob, over the API":      f.api("bob", "DELETE", strings.TrimSuffix(m[1], "/end"), ""),
		"of another tenant":      f.api("red/ada", "DELETE", strings.TrimSuffix(m[1], "/end"), ""),
		"their administrator":    f.api("red/root", "DELETE", strings.TrimSuffix(m[1], "/end"), ""),
		"nobody, over the API":   f.api("", "DELETE", strings.TrimSuffix(m[1], "/end"), ""),
		"a GET with the address": f.do(ada, "GET", m[1], ""),
	} {
		if a.status < 400 {
			t.Errorf("%s: %d", what, a.status)
		}
	}
	if !f.renews(&refresh) {
		t.Fatal("what was refused ended it")
	}
	done := f.post(ada, m[1], url.Values{"token": {token}})
	if done.status != http.StatusSeeOther || !strings.HasPrefix(done.header.Get("Location"), "/grants?done=end.") || f.renews(&refresh) {
		t.Errorf("%d, and it renews still", done.status)
	}
	if page := f.do(ada, "GET", done.header.Get("Location"), "", "Accept", "text/html"); !strings.Contains(page.body, "The access has ended") || strings.Contains(page.body, "App &lt;b&gt;") {
		t.Errorf("after: %s", page.body)
	}
	// A link of somebody else does not claim that it has ended, not even one to their own page.
	for who, to := range map[*http.Client]string{ada: "/grants?done=end", bob: done.header.Get("Location")} {
		if page := f.do(who, "GET", to, "", "Accept", "text/html"); page.status != http.StatusOK || strings.Contains(page.body, "The access has ended") {
			t.Errorf("%s claims: %d %s", to, page.status, page.body)
		}
	}
	if again := f.post(ada, m[1], url.Values{"token": {token}}); again.status != http.StatusNotFound || !strings.Contains(again.body, "does not exist, has ended") {
		t.Errorf("again: %d", again.status)
	}
}

func TestAdministratorListsAndRevokesProgramsOfTheTenant(t *testing.T) {
	f := openWithAuthorization(t, tenantPeople())
	of := map[string]string{"ada": f.give(f.signedIn("ada")), "bob": f.give(f.signedIn("bob")), "red/ada": f.give(f.signedIn("red/ada"))}
	list := func(name string) (told struct {
		Grants []struct {
			ID, Person string
			Client     string   `json:"client_id"`
			Used       string   `json:"last_used_at"`
			Scopes     []string `json:"scopes"`
		}
	},
	) {
		t.Helper()
		a := f.api(name, "GET", "/grants", "")
		if err := json.Unmarshal([]byte(a.body), &told); err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, a.status, a.body)
		}
		return told
	}
	for name, want := range map[string]int{"ada": 1, "bob": 1, "root": 2, "red/ada": 1, "red/root": 1} {
		if told := list(name); len(told.Grants) != want || told.Grants[0].Client != "app" || told.Grants[0].Used == "" || len(told.Grants[0].Scopes) == 0 {
			t.Errorf("%s sees %+v", name, told)
		}
	}
	root := f.signedIn("root")
	page := f.do(root, "GET", "/grants", "", "Accept", "text/html")
	if !strings.Contains(page.body, "Programs of other people") || strings.Count(page.body, "App &lt;b&gt;") < 2 || strings.Contains(page.body, "red/ada") {
		t.Errorf("the page of an administrator: %s", page.body)
	}
	for _, g := range list("root").Grants {
		if a := f.api("root", "DELETE", "/grants/"+g.ID, ""); a.status != http.StatusOK || !strings.Contains(a.body, `"person":"`+g.Person+`"`) {
			t.Errorf("ending that of %s: %d %s", g.Person, a.status, a.body)
		}
	}
	for name, refresh := range of {
		if f.renews(&refresh) != (name == "red/ada") {
			t.Errorf("that of %s", name)
		}
	}
	if a := f.api("root", "GET", "/grants?x=1", ""); a.status != http.StatusBadRequest {
		t.Errorf("an unknown parameter: %d", a.status)
	}
	if a := open(t, people(), nil).api("ada", "GET", "/grants", ""); a.status != http.StatusNotFound {
		t.Errorf("without an authorization server: %d", a.status)
	}
}
