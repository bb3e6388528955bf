package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// authorizePages serves the consent pages for programs, and the OAuth endpoints of the programs.
type authorizePages struct {
	site   *site
	server *authserver.Server
}

func (g *authorizePages) register(origin *http.CrossOriginProtection) {
	if g.server == nil {
		return
	}
	programs := []struct {
		method, path string
		serve        http.HandlerFunc
	}{
		{"GET", authserver.MetadataPath, g.server.ServeMetadata}, {"GET", authserver.KeysPath, g.server.ServeKeys},
		{"POST", authserver.TokenPath, g.server.ServeToken}, {"POST", authserver.RevokePath, g.server.ServeRevoke},
	}
	for _, p := range programs {
		g.site.routes.HandleFunc(p.method+" "+p.path, p.serve)
		g.site.routes.HandleFunc("OPTIONS "+p.path, g.server.ServePreflight)
		if p.method == http.MethodPost { // person cookies are ignored there
			origin.AddInsecureBypassPattern("POST " + p.path)
		}
	}
	g.site.visited("GET "+authserver.AuthorizePath, g.show)
	g.site.visited("POST "+authserver.AuthorizePath, g.decide)
}

// consentPage asks a person to give a program access.
type consentPage struct {
	Token      string
	Person     string
	Name, Host string // of the client; a client without Host is registered here
	Return     string // the host that the person is redirected to
	Local      bool   // it is a program on the person's computer
	Resource   string
	Scopes     []grantedScope
	Fields     []field
}

type grantedScope struct{ Name, Meaning string }

type field struct{ Name, Value string }

// asked lists the parameters that the form submits again. They are validated again then.
var asked = []string{"response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method", "resource"}

func (g *authorizePages) show(w http.ResponseWriter, r *http.Request, v visitor) error {
	q := r.URL.Query()
	req, err := g.server.Ask(r.Context(), q, g.person(v))
	if err != nil {
		return g.refuse(w, v, err)
	}
	back := mustParse(req.Redirect)
	p := consentPage{
		Token: g.site.access.formToken(v.cookie, authserver.AuthorizePath), Person: personOf(v.who.Name), Name: cmp.Or(req.Client.Name, req.Client.ID), Host: req.Client.Host(),
		Return: back.Host, Local: urls.Loopback(back.Hostname()), Resource: req.Resource,
	}
	for _, name := range req.Scopes {
		p.Scopes = append(p.Scopes, grantedScope{name, meaning(name)})
	}
	for _, name := range asked {
		if value := q.Get(name); value != "" {
			p.Fields = append(p.Fields, field{name, value})
		}
	}
	p.Fields = append(p.Fields, field{"scope", strings.Join(req.Scopes, " ")})
	return g.site.render(w, http.StatusOK, "consent", v, view{Title: "Give access", Page: p})
}

func (g *authorizePages) decide(w http.ResponseWriter, r *http.Request, v visitor) error {
	who := g.person(v)
	req, err := g.server.Ask(r.Context(), r.PostForm, who)
	if err != nil {
		return g.refuse(w, v, err)
	}
	var to, title string
	switch r.PostForm.Get("answer") {
	case "allow":
		title = "Access given"
		if to, err = g.server.Approve(r.Context(), req, who); err != nil {
			return schema.Errorf(schema.KindUnavailable, "The access cannot be recorded at the moment; try again. (%w)", err)
		}
	case "deny":
		title, to = "Access denied", g.server.Deny(r.Context(), req, who)
	default:
		return schema.Errorf(schema.KindInvalidRequest, "The form has no answer; go back and select one.")
	}
	// Under our policy, browsers do not let a form redirect to another site. A page that continues
	// there can.
	page := message{Text: "You return to " + visible.Escaped([]byte(mustParse(req.Redirect).Host)) + ". You can close this page if nothing happens.", To: to, Label: "Continue"}
	return g.site.render(w, http.StatusOK, "message", v, view{Title: title, Go: to, Page: page})
}

// refuse shows the reason why a request cannot be granted. It does not redirect without a click,
// because the request may be an attempt to lead people to another site.
func (g *authorizePages) refuse(w http.ResponseWriter, v visitor, err error) error {
	var refusal *authserver.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	page := message{Text: refusal.Text}
	if refusal.Back != "" {
		page.To, page.Label = refusal.Back, "Return to "+visible.Escaped([]byte(mustParse(refusal.Back).Host))
	}
	return g.site.render(w, http.StatusBadRequest, "message", v, view{Title: "No access", Page: page})
}

// person returns the visitor as the person in tokens.
func (g *authorizePages) person(v visitor) *authserver.Person {
	p := &authserver.Person{Name: v.who.Name, Owner: v.who.Owner, Groups: v.who.Groups, Tenant: v.who.Tenant}
	if !strings.HasPrefix(p.Name, settings.NamePrefix) {
		if key, ok := g.site.o.Keys.Find(p.Name); ok {
			p.Key = key.Hash
		}
	}
	return p
}

// mustParse parses an address that has been validated.
func mustParse(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// meaning describes the permissions of a scope.
func meaning(name string) string {
	server, narrow := strings.CutPrefix(name, scope.CallTools+":")
	switch {
	case name == scope.ReadTools:
		return "See servers, tools and resources"
	case name == scope.CallTools:
		return "Call all tools in your name"
	case narrow && strings.HasPrefix(server, "@"):
		return "Call the tools of the set " + server[1:] + " in your name"
	case narrow:
		return "Call the tools of the server " + server + " in your name"
	case name == scope.ReadCalls:
		return "See your calls and their results"
	case name == scope.Admin:
		return "Change settings: disable tools and servers, settle calls, manage keys"
	}
	return name
}

// maxAuthorizeQuery limits the query that a sign-in preserves for a program, because it is stored
// in a cookie.
const maxAuthorizeQuery = 2400

// nextOfAuthorize returns the page of an authorization request with its query, or false if that is
// too long.
func nextOfAuthorize(u *url.URL) (string, bool) {
	q := u.Query()
	q.Del("arrived")
	query := q.Encode()
	return authserver.AuthorizePath + "?" + query, len(query) <= maxAuthorizeQuery
}
