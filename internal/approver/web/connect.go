package web

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// connectFor limits the time that a person has at the authorization server.
const connectFor = 10 * time.Minute

// maxConnectFlow limits the size of a flow cookie, because browsers drop cookies of over 4096 bytes.
const maxConnectFlow = 3800

// connectPages serves the pages on which a person connects to MCP servers that require the person's
// own credential.
type connectPages struct{ site *site }

func (g *connectPages) register() {
	if g.site.o.Credentials == nil {
		return
	}
	g.site.visited("GET "+credential.ConnectPath, g.show)
	g.site.visited("POST "+credential.ConnectPath+"/start", g.start)
	g.site.visited("POST "+credential.ConnectPath+"/key", g.key)
	g.site.visited("POST "+credential.ConnectPath+"/disconnect", g.disconnect)
	g.site.html("GET "+credential.CallbackPath+"/{server}", g.arrive)
	g.site.routes.HandleFunc("GET "+credential.ClientPath, g.metadata)
}

// connectPage lists the servers.
type connectPage struct {
	Servers                       []connectRow
	StartToken, KeyToken, DropTok string
	Done                          string
}

type connectRow struct {
	ID        string
	Origin    string
	OAuth     bool
	Asked     bool // the address of the page names this server
	Connected time.Time
}

func (g *connectPages) show(w http.ResponseWriter, r *http.Request, v visitor) error {
	all, err := g.site.o.Credentials.Connections(r.Context(), credential.Person(&v.who))
	if err != nil {
		return err
	}
	token := func(path string) string { return g.site.access.formToken(v.cookie, credential.ConnectPath+path) }
	p := connectPage{StartToken: token("/start"), KeyToken: token("/key"), DropTok: token("/disconnect"), Done: g.site.access.doneOf(r, v)}
	asked := schema.ServerID(r.URL.Query().Get("server"))
	for _, c := range all {
		if g.hidden(v, c.Server.ID) != nil {
			continue
		}
		p.Servers = append(p.Servers, connectRow{
			ID: string(c.Server.ID), Origin: credential.Origin(c.Server.URL), OAuth: c.Server.OAuth != nil, Asked: c.Server.ID == asked, Connected: c.Connected,
		})
	}
	return g.site.render(w, http.StatusOK, "connect", v, view{Title: "Connections", Here: credential.ConnectPath, Page: p})
}

// hidden returns a not-found error if the visitor's tenant does not see the server, else nil.
func (g *connectPages) hidden(v visitor, server schema.ServerID) error {
	if g.site.o.Tenants.Sees(v.who.Tenant, server) {
		return nil
	}
	return schema.Errorf(schema.KindNotFound, "There is no server of this name.")
}

// shownAs returns the name of a visitor in the log.
func shownAs(v visitor) string { return cmp.Or(v.who.Owner, v.who.Name) }

// start redirects the person to the authorization server of an MCP server.
func (g *connectPages) start(w http.ResponseWriter, r *http.Request, v visitor) error {
	book := g.site.o.Credentials
	f := &credential.Flow{Server: schema.ServerID(r.PostForm.Get("server")), Person: credential.Person(&v.who), Owner: shownAs(v), Until: time.Now().Add(connectFor)}
	err := g.hidden(v, f.Server)
	if err != nil {
		return err
	}
	if f.Request, err = book.Begin(r.Context(), f.Server); err != nil {
		return err
	}
	to := f.Request.URL
	sealed, err := book.SealFlow(f)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The connection cannot start: %w", err)
	}
	value := base64.RawURLEncoding.EncodeToString(sealed)
	if len(value) > maxConnectFlow {
		return schema.Errorf(schema.KindServerFailed, "The connection cannot start: what the authorization server registered is too large for a cookie. Configure a client_id for this server.")
	}
	g.site.access.setFlow(w, connectCookie, value, int(connectFor.Seconds()))
	// Under our policy, browsers do not let a form redirect to another site. A page that continues
	// there can.
	page := message{Text: "You continue at " + visible.Escaped([]byte(credential.Origin(to))) + ", the authorization server of " + visible.Escaped([]byte(f.Server)) + ".", To: to, Label: "Continue"}
	return g.site.render(w, http.StatusOK, "message", v, view{Title: "Connect", Go: to, Page: page})
}

// arrive handles the redirect from the authorization server. The sealed cookie identifies the person
// who began the flow in this browser. Its state must equal that of the response.
func (g *connectPages) arrive(w http.ResponseWriter, r *http.Request) error {
	if err := getOnly(w, r); err != nil {
		return err
	}
	refuse := func(err error) error {
		d := problem.Of(err)
		return g.site.render(w, d.Status, "message", visitor{}, view{Title: "You are not connected", Page: message{Text: d.Detail, To: credential.ConnectPath, Label: "Connections"}})
	}
	var f *credential.Flow
	if c, err := r.Cookie(g.site.access.named(connectCookie)); err == nil {
		if sealed, err := base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			f, _ = g.site.o.Credentials.OpenFlow(sealed)
		}
	}
	if f == nil || r.PathValue("server") != string(f.Server) {
		return refuse(schema.Errorf(schema.KindForbidden, "This connection was not started in this browser, or it has expired. Start again."))
	}
	g.site.access.setFlow(w, connectCookie, "", -1) // a flow can be tried once
	if err := g.site.o.Credentials.Finish(r.Context(), f.Server, f.Person, f.Request, r.URL.Query()); err != nil {
		g.site.o.fault(r.Context(), r.Pattern, err)
		return refuse(err)
	}
	g.site.o.Log.Info("a person connected to a server", "name", f.Owner, "server", f.Server)
	next := g.site.access.doneAddress(credential.ConnectPath, f.Person, "connect")
	return g.site.render(w, http.StatusOK, "message", visitor{}, view{Title: "You are connected", Go: next, Page: message{Text: "You are connected to " + visible.Escaped([]byte(f.Server)) + ".", To: next, Label: "Continue"}})
}

// key stores a person's own secret.
func (g *connectPages) key(w http.ResponseWriter, r *http.Request, v visitor) error {
	server, person := schema.ServerID(r.PostForm.Get("server")), credential.Person(&v.who)
	if err := g.hidden(v, server); err != nil {
		return err
	}
	if err := g.site.o.Credentials.SetSecret(r.Context(), server, person, strings.TrimSpace(r.PostForm.Get("key"))); err != nil {
		return err
	}
	g.site.o.Log.Info("a person connected to a server", "name", shownAs(v), "server", server)
	http.Redirect(w, r, g.site.access.doneAddress(credential.ConnectPath, person, "connect"), http.StatusSeeOther)
	return nil
}

func (g *connectPages) disconnect(w http.ResponseWriter, r *http.Request, v visitor) error {
	server, person := schema.ServerID(r.PostForm.Get("server")), credential.Person(&v.who)
	if err := g.hidden(v, server); err != nil {
		return err
	}
	if err := g.site.o.Credentials.Disconnect(r.Context(), server, person); err != nil {
		return err
	}
	g.site.o.Log.Info("a person disconnected from a server", "name", shownAs(v), "server", server)
	http.Redirect(w, r, g.site.access.doneAddress(credential.ConnectPath, person, "disconnect"), http.StatusSeeOther)
	return nil
}

// metadata serves the client's metadata document to authorization servers.
func (g *connectPages) metadata(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=3600")
	_, _ = w.Write(g.site.o.Credentials.Metadata())
}
