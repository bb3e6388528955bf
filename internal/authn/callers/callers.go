package callers

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"sync/atomic"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says who is known. Keys is required.
type Options struct {
	Keys *authn.Keys
	// Issued are the keys that were made over the API; nil: there are none.
	Issued *issued.Keys
	// Ended are the grants whose tokens are refused; nil: there are none.
	Ended *ended.Grants
	// Issuers are those of Tokens; without Tokens no access token is accepted.
	Issuers []settings.Issuer
	Tokens  *token.Verifier
	// Public is the address by which callers reach the front door, without a slash at its
	// end; "" until [Callers.Serve] says it.
	Public string
	// Member reports whether a set has a tool; without it no set has any.
	Member scope.Member
	// Tenants are those whose credentials count; nil: all are.
	Tenants *tenants.Book
}

// Callers knows the callers of a front door. It is safe for concurrent use.
type Callers struct {
	o      Options
	public atomic.Pointer[string]
}

// New returns the callers.
func New(o Options) *Callers {
	c := &Callers{o: o}
	c.public.Store(&o.Public)
	return c
}

// Serve says by which address callers reach the front door, where nothing was configured.
func (c *Callers) Serve(address string) {
	if *c.public.Load() == "" {
		c.public.Store(&address)
	}
}

// Configured says whether callers must show a credential.
func (c *Callers) Configured() bool { return c.o.Keys.Configured() || c.o.Tokens.Configured() }

// Authenticate returns who sends a request. path is that of the resource which is asked
// for: "" for the REST API, or the mount of an MCP endpoint. The error is a *schema.Error of
// KindUnauthenticated, of KindQuota after too many wrong credentials from one address, or of
// KindUnavailable while a token cannot be checked.
func (c *Callers) Authenticate(r *http.Request, path string) (schema.Principal, error) {
	who, err := c.identify(r, path)
	if err != nil {
		return who, err
	}
	if err := c.o.Tenants.Check(who.Tenant); err != nil {
		return schema.Principal{}, c.o.Keys.Refuse(r, schema.AsError(err).Detail)
	}
	return who, nil
}

// identify is Authenticate for any tenant.
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
		return c.o.Keys.Authenticate(r)
	}
	if !bearer {
		return schema.Principal{}, c.o.Keys.Refuse(r, "An access token must be sent as Authorization: Bearer TOKEN.")
	}
	who, err := c.ofToken(r, credential, path)
	if schema.KindOf(err) == schema.KindUnauthenticated {
		return schema.Principal{}, c.o.Keys.Refuse(r, schema.AsError(err).Detail)
	}
	return who, err
}

// ofKey finds whose key it is that was made over the API.
func (c *Callers) ofKey(r *http.Request, credential string) (schema.Principal, error) {
	who, err := c.o.Issued.Authenticate(r.Context(), credential)
	if err == nil && c.o.Keys.Has(who.Name) { // what is of one principal must not be shown to another
		err = schema.Errorf(schema.KindUnauthenticated, "A key of the configuration has the name of this API key, %q, too. Ask the operator to rename one of them.", who.Name)
	}
	if err == nil && c.o.Tokens.Names(who.Name) { // its issuer was configured after the key was made
		err = schema.Errorf(schema.KindUnauthenticated, "The name of this API key, %q, is one of an issuer of tokens. Ask the operator to rename one of them.", who.Name)
	}
	if schema.KindOf(err) == schema.KindUnauthenticated {
		return schema.Principal{}, c.o.Keys.Refuse(r, schema.AsError(err).Detail)
	}
	return who, err
}

// ofCertificate finds whose client certificate it is, where nothing else says who calls.
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
	if t.Thumbprint != "" && t.Thumbprint != thumbprint(authn.ClientCertificate(r)) { // for each request: the verifier knows the token for a minute
		return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "The access token is not accepted: it is bound to a client certificate that this connection has not shown.")
	}
	if c.o.Ended.Has(t.Grant) { // looked up for each request: the verifier knows the token for a minute
		return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "The access token is not accepted: the person has ended the access of the program.")
	}
	who := t.Principal
	who.Grant = &scope.Grant{Scopes: t.Scopes, Member: c.o.Member, Access: t.Grant, ID: t.Issuer + "\x00" + t.Subject + "\x00" + string(t.Tenant), Caller: &scope.CallerToken{Token: scope.Bearer(raw), Expires: t.Expires}}
	return who, nil
}

// thumbprint is x5t#S256 of a certificate (RFC 8705, section 3.1); "" for none.
func thumbprint(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	sum := sha256.Sum256(c.Raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Continues returns nil while a principal that has been let in may continue to read what it began
// to: a key as [Callers.Valid], and the principal of an access token until the person ends the
// access of the program. It is cheap, and asks nobody.
func (c *Callers) Continues(p *schema.Principal) error {
	if g, ok := p.Grant.(*scope.Grant); ok && c.o.Ended.Has(g.Access) {
		return schema.Errorf(schema.KindUnauthenticated, "The person has ended the access of the program.")
	}
	return c.Valid(p.Name)
}

// Valid returns nil while the principal of that name may have calls run: a key as
// [authn.Keys.Valid] and [issued.Keys.Valid], and a principal of a token while its issuer is
// configured, because a call may wait for longer than its token is valid.
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
