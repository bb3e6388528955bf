package approver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/audit"
)

// openAuthorization opens the authorization server, if one is configured.
func (a *Approver) openAuthorization(ctx context.Context) error {
	c := &a.o.Config.AuthorizationServer
	if !c.Enabled {
		return nil
	}
	if a.o.SealKeys == nil || a.o.Conn == nil || a.o.Config.PublicURL == "" || len(c.Resources) == 0 {
		return errors.New("approver.authorization_server requires approver.public_url, front_door.public_url and credentials.key_file")
	}
	public, _ := a.o.Config.Public()
	clients := make([]authserver.Client, len(c.Clients))
	for i, e := range c.Clients {
		clients[i] = authserver.Client{ID: e.ID, Name: e.Name, Redirects: e.RedirectURIs, SecretHash: e.SecretHash, KeysFile: e.JWKSFile, KeysURL: e.JWKSURL}
	}
	var err error
	a.authorization, err = authserver.Open(ctx, authserver.Options{
		Issuer: public.String(), Resources: c.Resources, Clients: clients, Hosts: c.ClientHosts, Scopes: c.Scopes, AdminGroups: c.AdminGroups,
		TokenLifetime: c.TokenLifetime, GrantLifetime: c.GrantLifetime, Current: a.currentPerson, Record: a.recordGrant, Keys: a.o.SealKeys, DataKeys: a.o.DataKeys, Conn: a.o.Conn, Log: a.o.Log,
	})
	if err != nil {
		return fmt.Errorf("approver.authorization_server: %w", err)
	}
	return nil
}

// recordFor limits the time for which an audit record may delay a program or a person.
const recordFor = time.Second

// grantKinds maps event kinds to kinds of audit records.
var grantKinds = map[authserver.EventKind]audit.Kind{
	authserver.Given: audit.GrantGiven, authserver.Denied: audit.GrantDenied, authserver.Redeemed: audit.GrantRedeemed, authserver.Renewed: audit.GrantRenewed, authserver.Ended: audit.GrantEnded,
}

// recordGrant writes an event of a program's access to the audit record.
func (a *Approver) recordGrant(ctx context.Context, e *authserver.Event) {
	if a.o.Audit == nil {
		return
	}
	entry := audit.Entry{
		Kind: grantKinds[e.Kind], Tenant: e.Person.Tenant, By: e.Person.Name, Owner: e.Person.Owner, Channel: e.Channel, Outcome: e.Why,
		GrantID: e.Grant, Client: e.Client, Resource: e.Resource, Scopes: strings.Join(e.Scopes, " "),
	}
	switch {
	case e.By == nil: // the program caused it
		entry.By, entry.Owner, entry.Person = e.Client, "", e.Person.Name
	case e.By.Name != e.Person.Name:
		entry.By, entry.Owner, entry.Person = e.By.Name, e.By.Owner, e.Person.Name
	}
	ctx, cancel := context.WithTimeout(ctx, recordFor)
	defer cancel()
	if err := a.o.Audit.Append(ctx, entry); err != nil {
		a.o.Log.Error("an audit line of the access of a program could not be written", "kind", entry.Kind, "grant", e.Grant, "error", err)
	}
}

// currentPerson returns the current data of a person. It returns false for a person who signed in
// with an API key that has been removed, replaced or has expired.
func (a *Approver) currentPerson(p *authserver.Person) (*authserver.Person, bool) {
	if p.Key == "" {
		return p, a.people != nil
	}
	key, ok := a.keys.Find(p.Name)
	if !ok || key.Hash != p.Key || !key.Expires.IsZero() && !time.Now().Before(key.Expires) {
		return nil, false
	}
	who := key.Principal
	return &authserver.Person{Name: who.Name, Owner: who.Owner, Groups: who.Groups, Tenant: who.Tenant, Key: p.Key}, true
}

// checkAuthorization returns the faults that depend on other sections.
func checkAuthorization(s *settings.File) []config.Fault {
	var faults config.Collector
	c := &s.Approver.AuthorizationServer
	for i := range c.Clients {
		for n, r := range c.Clients[i].RedirectURIs {
			if !authserver.GoodRedirect(r) {
				faults.Addf(fmt.Sprintf("approver.authorization_server.clients[%d].redirect_uris[%d]", i, n), "must be an https URL, or one of http on loopback, without a fragment and without the parameters of an answer.")
			}
		}
	}
	if !c.Enabled {
		return faults
	}
	if u, ok := urls.Secure(s.Approver.PublicURL); !ok || u.Path != "" {
		faults.Addf("approver.public_url", "is required with approver.authorization_server, as an https URL without a path: it is the issuer of the tokens. http is allowed for loopback only.")
	}
	if len(c.Resources) == 0 && s.FrontDoor.PublicURL == "" {
		faults.Addf("approver.authorization_server.resources", "is missing: name the front_door.public_url of each front door.")
	}
	if s.Credentials.KeyFile == "" {
		faults.Addf("credentials.key_file", "is required with approver.authorization_server: create it with `openssl rand -base64 32`, and keep it outside of NATS.")
	}
	if len(s.Approver.Keys) == 0 && !s.Approver.OIDC.Configured() {
		faults.Addf("approver.authorization_server.enabled", "requires sign-in: add approver.oidc or approver.keys.")
	}
	return faults
}
