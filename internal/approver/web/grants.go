package web

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// grantsPath is the page of the programs with access.
const grantsPath = "/grants"

// grants gives each person access to the grants that they may see and end: their own, and for
// administrators all of their tenant. It is safe for concurrent use.
type grants struct{ server *authserver.Server }

func (g *grants) may(who *schema.Principal) func(*authserver.Person) bool {
	admin := g.server.Administers(who.Groups)
	return func(p *authserver.Person) bool {
		return p.Tenant.Is(who.Tenant) && (admin || samePerson(*who, p.Name, p.Owner))
	}
}

// list returns the visible grants, newest first.
func (g *grants) list(ctx context.Context, who *schema.Principal) ([]authserver.Access, error) {
	return g.server.Accesses(ctx, g.may(who))
}

// end ends a grant. A person who may not see it gets a not-found error.
func (g *grants) end(ctx context.Context, who *schema.Principal, id, channel string) (*authserver.Access, error) {
	return g.server.End(ctx, id, &authserver.Person{Name: who.Name, Owner: who.Owner, Tenant: who.Tenant}, channel, g.may(who))
}

// Grant is the access that a person gave a program.
type Grant struct {
	ID         string     `json:"id" doc:"The id of the access."`
	Client     string     `json:"client_id" doc:"The client id of the program: the URL of its metadata document, or its id in the configuration."`
	ClientName string     `json:"client_name,omitempty" doc:"The name that the program gave; absent if it gave none. It is not verified."`
	ClientHost string     `json:"client_host,omitempty" doc:"The host of its metadata document; absent for a program of the configuration."`
	Person     string     `json:"person" doc:"The principal of the person who gave the access."`
	Owner      string     `json:"owner,omitempty" doc:"The owner of that principal; absent if it has none."`
	Resource   string     `json:"resource" doc:"The resource for which its tokens are valid."`
	Scopes     []string   `json:"scopes" doc:"What the program may do for the person, such as tools:read and tools:call."`
	Created    time.Time  `json:"created_at" doc:"When the person gave the access."`
	Used       *time.Time `json:"last_used_at,omitempty" doc:"When the program last got a token; absent: it has none yet."`
	Expires    time.Time  `json:"expires_at" doc:"When the access ends by itself."`
}

// GrantList lists the grants that the caller may end.
type GrantList struct {
	Grants []Grant `json:"grants" doc:"The accesses that have not ended, newest first. All are in this list; it has no pages."`
}

func grantOf(a *authserver.Access) Grant {
	told := Grant{
		ID: a.ID, Client: a.Client, ClientName: a.Name, ClientHost: a.Host, Person: a.Person.Name, Owner: a.Person.Owner, Resource: a.Resource, Scopes: a.Scopes,
		Created: a.Since, Expires: a.Until,
	}
	if !a.Used.IsZero() {
		told.Used = &a.Used
	}
	return told
}

// grantInput identifies a grant.
type grantInput struct {
	ID string `path:"id" doc:"The id of the access."`
}

// registerGrants registers the operations on grants. listPage shows them to browsers.
func (a *api) registerGrants(g *grants, listPage http.HandlerFunc) {
	get(a, operation("listGrants", "GET "+grantsPath, "List the programs that you gave access to", "The accesses that have not ended. A browser without a key gets the page instead.", "Newest first; an administrator of the authorization server sees those of everybody in the same tenant.", listPage), func(ctx context.Context, _ *struct{}) (GrantList, error) {
		who := exchangeOf(ctx).who
		all, err := g.list(ctx, &who)
		list := GrantList{make([]Grant, 0, len(all))}
		for i := range all {
			list.Grants = append(list.Grants, grantOf(&all[i]))
		}
		return list, err
	})
	get(a, operation("endGrant", "DELETE "+grantsPath+"/{id}", "End the access of a program", "You can end an access that you gave. An administrator of the authorization server can end those of everybody in the same tenant. If you may not see it, the answer is 404.", "The access, which has ended: its refresh token is refused at once, and its access tokens within a second at every front door.", nil), func(ctx context.Context, in *grantInput) (Grant, error) {
		who := exchangeOf(ctx).who
		one, err := g.end(ctx, &who, in.ID, authserver.ChannelAPI)
		if err != nil {
			return Grant{}, err
		}
		return grantOf(one), nil
	})
}

// grantPages lists the programs with access, and ends grants.
type grantPages struct {
	site   *site
	grants *grants
}

// newGrantPages returns the pages, or nil if there is no authorization server.
func newGrantPages(s *site) *grantPages {
	if s.o.Authorization == nil {
		return nil
	}
	return &grantPages{s, &grants{s.o.Authorization}}
}

func (g *grantPages) register() {
	if g != nil {
		g.site.visited("POST "+grantsPath+"/{id}/end", g.end)
	}
}

type grantsPage struct {
	Own, Others []grantRow
	Admin, Done bool
	Refusal     string
}

// grantRow is a grant with its form token.
type grantRow struct {
	authserver.Access
	Shown  string // the name of the program
	Scopes []grantedScope
	Token  string
}

// list serves the page to browsers that open the API address of the list.
func (g *grantPages) list(w http.ResponseWriter, r *http.Request) {
	g.site.page(w, r, g.site.known(func(w http.ResponseWriter, r *http.Request, v visitor) error {
		return g.show(w, r, v, http.StatusOK, "")
	}))
}

func (g *grantPages) show(w http.ResponseWriter, r *http.Request, v visitor, status int, refusal string) error {
	all, err := g.grants.list(r.Context(), &v.who)
	if err != nil {
		return err
	}
	page := grantsPage{Admin: g.grants.server.Administers(v.who.Groups), Done: g.site.access.doneOf(r, v) == "end", Refusal: refusal}
	for i := range all {
		row := grantRow{Access: all[i], Shown: cmp.Or(all[i].Name, all[i].Client), Token: g.site.access.formToken(v.cookie, grantsPath+"/"+all[i].ID+"/end")}
		for _, name := range all[i].Scopes {
			row.Scopes = append(row.Scopes, grantedScope{name, meaning(name)})
		}
		if samePerson(v.who, row.Person.Name, row.Person.Owner) {
			page.Own = append(page.Own, row)
		} else {
			page.Others = append(page.Others, row)
		}
	}
	return g.site.render(w, status, "grants", v, view{Title: "Programs", Here: grantsPath, Page: page})
}

// end ends a grant from its page.
func (g *grantPages) end(w http.ResponseWriter, r *http.Request, v visitor) error {
	_, err := g.grants.end(r.Context(), &v.who, r.PathValue("id"), authserver.ChannelWeb)
	if err == nil {
		http.Redirect(w, r, g.site.access.doneAddress(grantsPath, credential.Person(&v.who), "end"), http.StatusSeeOther)
		return nil
	}
	g.site.o.fault(r.Context(), r.Pattern, err)
	d := problem.Of(err)
	return g.show(w, r, v, d.Status, d.Detail)
}
