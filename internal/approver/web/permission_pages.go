package web

import (
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/problem"
)

// permissionPages lists the standing permissions, and revokes them.
type permissionPages struct {
	site        *site
	permissions *permissions
}

func (g *permissionPages) register() { g.site.visited("POST /permissions/{id}/revoke", g.revoke) }

type permissionsPage struct {
	All     []standing
	Done    bool
	Refusal string
}

func (g *permissionPages) show(w http.ResponseWriter, r *http.Request, v visitor) error {
	page := permissionsPage{All: g.seen(v), Done: g.site.access.doneOf(r, v) == "revoke"}
	return g.site.render(w, http.StatusOK, "permissions", v, view{Title: "Permissions", Here: "/permissions", Page: page})
}

// revoke revokes a permission from its page.
func (g *permissionPages) revoke(w http.ResponseWriter, r *http.Request, v visitor) error {
	_, err := g.permissions.revoke(r.Context(), v.who, r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("reason")))
	if err == nil {
		http.Redirect(w, r, g.site.access.doneAddress("/permissions", credential.Person(&v.who), "revoke"), http.StatusSeeOther)
		return nil
	}
	g.site.o.fault(r.Context(), r.Pattern, err)
	d := problem.Of(err)
	page := permissionsPage{All: g.seen(v), Refusal: d.Detail}
	return g.site.render(w, d.Status, "permissions", v, view{Title: "Permissions", Here: "/permissions", Page: page})
}

// list serves the page to browsers that open the API address of the list.
func (g *permissionPages) list(w http.ResponseWriter, r *http.Request) {
	g.site.page(w, r, g.site.known(g.show))
}

// seen returns the permissions that concern the visitor, with the tokens of their forms.
func (g *permissionPages) seen(v visitor) []standing {
	all := g.permissions.list(v.who)
	for i := range all {
		if all[i].May {
			all[i].Token = g.site.access.formToken(v.cookie, "/permissions/"+all[i].ID+"/revoke")
		}
	}
	return all
}
