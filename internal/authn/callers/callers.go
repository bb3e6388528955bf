package callers

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/schema"
)

// Options are the sources of credentials. Keys is required.
type Options struct {
	Keys *authn.Keys
	// Issued are the keys created through the API. If nil, there are none.
	Issued *issued.Keys
	// Ended are grants whose tokens are refused. If nil, there are none.
	Ended *ended.Grants
	// Issuers are the issuers of Tokens. If Tokens is nil, no access token is accepted.
	Issuers []settings.Issuer
	Tokens  *token.Verifier
	// Public is the address of the front door for callers, without a slash at the end. It may be ""
	// until [Callers.Serve] sets it.
	Public string
	// Member reports whether a set contains a tool. If nil, all sets are empty.
	Member scope.Member
	// Tenants are the tenants whose credentials are valid. If nil, all are.
	Tenants *tenants.Book
}

// Callers authenticates the callers of a front door. It is safe for concurrent use.
type Callers struct {
	o      Options
	public atomic.Pointer[string]
}

// New returns a Callers with the options.
func New(o Options) *Callers {
	c := &Callers{o: o}
	c.public.Store(&o.Public)
	return c
}

// Serve sets the address of the front door for callers, if none was configured.
func (c *Callers) Serve(address string) {
	if *c.public.Load() == "" {
		c.public.Store(&address)
	}
}

// Configured reports whether callers need a credential.
func (c *Callers) Configured() bool { return c.o.Keys.Configured() || c.o.Tokens.Configured() }

// Authenticate returns the principal of a request. path is the path of the requested resource: ""
// for the REST API, or the mount of an MCP endpoint. The error is a *schema.Error of
// KindUnauthenticated, of KindQuota after too many wrong keys from one address, or of
// KindUnavailable while a token cannot be checked.
func (c *Callers) Authenticate(r *http.Request, path string) (schema.Principal, error) {
	who, err := c.identify(r, path)
	if err != nil {
		return who, err
	}
	if err := c.o.Tenants.Check(who.Tenant); err != nil {
		refuse := c.o.Keys.Refuse
		if c.o.Tokens.Names(who.Name) {
			refuse = c.o.Keys.RefuseToken
		}
		return schema.Principal{}, refuse(r, schema.AsError(err).Detail)
	}
	return who, nil
}

// identify is Authenticate without the check of the tenant.
func (c *Callers) identify(r *http.Request, path string) (schema.Principal, error) {
	if c.o.Keys.Configured() && !authn.Sent(r.Header) {
		if shown := authn.ClientCertificate(r); shown != nil {
			return c.ofCertificate(r, shown)
		}
	}
	credential, bearer, err := authn.Credential(r.Header)
	if err == nil && c.o.Issued != nil && issued.Looks(credential) {
		return c.ofKey(r, credential)
	}
	if !c.o.Tokens.Configured() {
		return c.o.Keys.Authenticate(r)
	}
	if err != nil {
		return schema.Principal{}, err
	}
	if !token.Looks(credential) {
		if !c.o.Keys.Configured() { // it would be the local principal, who may do everything
			return schema.Principal{}, c.o.Keys.Refuse(r, "The credential is not an access token, and this front door has no API keys. Send an access token of one of its issuers.")
		}
		return c.o.Keys.Authenticate(r)
	}
	if !bearer {
		return schema.Principal{}, c.o.Keys.RefuseToken(r, "An access token must be sent as Authorization: Bearer TOKEN.")
	}
	who, err := c.ofToken(r, credential, path)
	if schema.KindOf(err) == schema.KindUnauthenticated {
		return schema.Principal{}, c.o.Keys.RefuseToken(r, schema.AsError(err).Detail)
	}
	return who, err
}

// ofKey returns the principal of a key created through the API.
func (c *Callers) ofKey(r *http.Request, credential string) (schema.Principal, error) {
	who, err := c.o.Issued.Authenticate(r.Context(), credential)
	if err == nil && c.o.Keys.Has(who.Name) { // data of one principal must not be shown to another
		err = schema.Errorf(schema.KindUnauthenticated, "A key of the configuration has the name of this API key, %q, too. Ask the operator to rename one of them.", who.Name)
	}
	if err == nil && c.o.Tokens.Names(who.Name) { // the issuer was configured after the key was created
		err = schema.Errorf(schema.KindUnauthenticated, "The name of this API key, %q, is one of an issuer of tokens. Ask the operator to rename one of them.", who.Name)
	}
	if schema.KindOf(err) == schema.KindUnauthenticated {
		return schema.Principal{}, c.o.Keys.Refuse(r, schema.AsError(err).Detail)
	}
	return who, err
}

// ofCertificate returns the principal of a client certificate, if the request has no other credential.
func (c *Callers) ofCertificate(r *http.Request, shown *x509.Certificate) (schema.Principal, error) {
	who, ok, err := c.o.Keys.OfCertificate(shown)
	if err == nil && !ok {
		err = schema.Errorf(schema.KindUnauthenticated, "No key stands for your client certificate. Ask the operator to add an entry with its URI or DNS name to front_door.keys, or send an API key.")
	}
	if err != nil {
		return schema.Principal{}, c.o.Keys.Refuse(r, schema.AsError(err).Detail)
	}
	return who, nil
}

func (c *Callers) ofToken(r *http.Request, raw, path string) (schema.Principal, error) {
	t, err := c.o.Tokens.Verify(r.Context(), raw, c.Resource(path))
	if err != nil {
		return schema.Principal{}, err
	}
	if t.Thumbprint != "" && t.Thumbprint != thumbprint(authn.ClientCertificate(r)) { // checked for each request, because the verifier caches the token for a minute
		return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "The access token is not accepted: it is bound to a client certificate that this connection has not shown.")
	}
	if c.o.Ended.Has(t.Grant) { // checked for each request, because the verifier caches the token for a minute
		return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "The access token is not accepted: the person has ended the access of the program.")
	}
	who := t.Principal
	who.Grant = &scope.Grant{Scopes: t.Scopes, Member: c.o.Member, Access: t.Grant, ID: t.Issuer + "\x00" + t.Subject + "\x00" + string(t.Tenant), Caller: &scope.CallerToken{Token: scope.Bearer(raw), Expires: t.Expires}}
	return who, nil
}

// thumbprint returns x5t#S256 of a certificate (RFC 8705, section 3.1), or "" for nil.
func thumbprint(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	sum := sha256.Sum256(c.Raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Continues returns nil if the request of an authenticated principal may continue: the secret or
// certificate of a key is still valid, and the person has not ended the access of an access token. A call
// may wait longer than its token is valid. It is fast and sends no request.
func (c *Callers) Continues(r *http.Request, p *schema.Principal) error {
	_, err := c.present(r, p)
	return err
}

// Follows returns nil if the principal of a request may continue to read a stream: as [Callers.Continues],
// and its access token has not expired, or its key allows everything that it did when the stream began.
func (c *Callers) Follows(r *http.Request, p *schema.Principal) error {
	now, err := c.present(r, p)
	if err != nil {
		return err
	}
	if g, ok := p.Grant.(*scope.Grant); ok && g.Caller != nil && !time.Now().Before(g.Caller.Expires) {
		return schema.Errorf(schema.KindUnauthenticated, "The access token has expired.")
	}
	if !now.Tenant.Is(p.Tenant) || !scope.Includes(now.Grant, p.Grant) {
		return schema.Errorf(schema.KindForbidden, "The API key %q allows less than when the stream began.", p.Name)
	}
	return nil
}

// present returns what the principal of a request is now. The error is of KindUnauthenticated if its
// credential is no longer valid.
func (c *Callers) present(r *http.Request, p *schema.Principal) (schema.Principal, error) {
	if g, ok := p.Grant.(*scope.Grant); ok && c.o.Ended.Has(g.Access) {
		return *p, schema.Errorf(schema.KindUnauthenticated, "The person has ended the access of the program.")
	}
	if err := c.Valid(p.Name); err != nil || p.Name == authn.Local || c.o.Tokens.Names(p.Name) {
		return *p, err
	}
	now, ok := c.holder(r)
	if !ok || now.Name != p.Name {
		return *p, schema.Errorf(schema.KindUnauthenticated, "The secret of the API key %q with which this request began is no longer valid.", p.Name)
	}
	return now, nil
}

// holder returns the principal that the key or client certificate of a request has now, as far as this
// process knows.
func (c *Callers) holder(r *http.Request) (who schema.Principal, ok bool) {
	if !authn.Sent(r.Header) {
		shown := authn.ClientCertificate(r)
		if shown == nil {
			return who, false
		}
		who, ok, err := c.o.Keys.OfCertificate(shown)
		return who, ok && err == nil
	}
	credential, _, err := authn.Credential(r.Header)
	switch {
	case err != nil:
		return who, false
	case c.o.Issued != nil && issued.Looks(credential):
		return c.o.Issued.Holder(credential)
	}
	return c.o.Keys.Holder(credential)
}

// Valid returns nil if the principal with that name may still run calls: for a key as in
// [authn.Keys.Valid] and [issued.Keys.Valid], and for a principal of a token while its issuer is
// configured, because a call may wait longer than its token is valid.
func (c *Callers) Valid(principal string) error {
	if c.o.Tokens.Names(principal) {
		return nil
	}
	known, err := c.o.Issued.Valid(principal)
	if known && !c.o.Keys.Has(principal) {
		return err
	}
	if !c.o.Keys.Configured() && (c.o.Tokens.Configured() || c.o.Issued.Some()) && principal != authn.Local {
		return schema.Errorf(schema.KindUnauthenticated, "The credential of %q is no longer valid: neither its key nor its issuer is known.", principal)
	}
	return c.o.Keys.Valid(principal)
}

// MayStillCall returns nil if the key of the principal includes the tool of a call that waited, and
// an error of KindForbidden if the key was narrowed in the meantime. A call with the grant of its
// request was checked when it arrived. The scopes of an access token are known during its request
// only.
func (c *Callers) MayStillCall(call *schema.Call) error {
	p := &call.Principal
	if p.Grant != nil || call.Tool == "" || c.o.Tokens.Names(p.Name) {
		return nil
	}
	grant := c.o.Keys.Grant(p.Name)
	if !c.o.Keys.Has(p.Name) {
		grant = c.o.Issued.Grant(p)
	}
	if grant == nil || grant.MayCall(call.Server, call.Tool) {
		return nil
	}
	return schema.Errorf(schema.KindForbidden, "The API key %q does not include tool %q of server %q any more. The call had waited, and was not run.", p.Name, call.Tool, call.Server)
}
