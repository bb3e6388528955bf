package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/endtable"
	"github.com/callyard/callyard/internal/store/oauthtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Paths of the authorization server, below its issuer.
const (
	MetadataPath  = "/.well-known/oauth-authorization-server"
	AuthorizePath = "/oauth/authorize"
	TokenPath     = "/oauth/token" //nolint:gosec // no secret: a path
	RevokePath    = "/oauth/revoke"
	KeysPath      = "/oauth/jwks"
)

// Options configures a server.
type Options struct {
	// Issuer is the address of the server, without a path.
	Issuer string
	// Resources lists the addresses of front doors. A token is for one of them, or for a path
	// below one.
	Resources []string
	// Clients lists the configured clients. Hosts lists the hosts whose client-id metadata
	// documents are accepted too; "*" means every host with a public address.
	Clients []Client
	Hosts   []string
	// Scopes lists the scopes that can be granted. Only members of AdminGroups can grant the scope
	// admin.
	Scopes      []string
	AdminGroups []string
	// TokenLifetime is the lifetime of an access token, GrantLifetime that of a grant.
	TokenLifetime, GrantLifetime time.Duration
	// Current returns the current data of a person when a token is issued. If it returns false,
	// the grant ends. If nil, the data of the sign-in is used.
	Current func(*Person) (*Person, bool)
	// Record receives an event for each grant that is given, denied, used or ended. It must not
	// block for long. If nil, events are discarded.
	Record func(context.Context, *Event)
	// Keys encrypts stored data. DataKeys, if not nil, encrypts grants again with the key of the
	// person's tenant. Conn is the connection to the store. The caller owns all of them.
	Keys     *credential.Keys
	DataKeys *datakey.Ring
	Conn     *bus.Conn
	Log      *slog.Logger
	// Now returns the current time; nil means time.Now. HTTP fetches metadata documents; nil means
	// a client that connects only to public addresses and to Hosts.
	Now  func() time.Time
	HTTP *http.Client
}

// Server is an authorization server. It is safe for concurrent use. Close releases its
// resources.
type Server struct {
	o         Options
	ring      *keyring
	grants    *grants
	ends      *bus.Bucket // ended grants, watched by front doors
	once      *bus.Claims // used client assertions
	documents *documents
	plain     *http.Client // fetches the configured key sets
	scopes    scope.Set
	metadata  []byte

	clientKeys clientKeys
	erasures   *erasures // of tenants
}

// Person is a person who signed in.
type Person struct {
	Name   string          `json:"name"`
	Owner  string          `json:"owner,omitempty"`
	Groups []string        `json:"groups,omitempty"`
	Tenant schema.TenantID `json:"tenant,omitempty"`
	// Key is the hash of the API key of the sign-in, or "" for a sign-in at a provider.
	Key string `json:"key,omitempty"`
}

// Open opens a server and its tables in NATS.
func Open(ctx context.Context, o Options) (*Server, error) {
	if o.Keys == nil || o.Conn == nil || o.Log == nil || o.Issuer == "" || len(o.Resources) == 0 {
		return nil, errors.New("authserver: Issuer, Resources, Keys, Conn and Log are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HTTP == nil {
		o.HTTP = newDocumentClient(o.Hosts)
	}
	given, err := scope.Parse(o.Scopes)
	if err != nil {
		return nil, err
	}
	for i := range o.Clients {
		if err := o.Clients[i].checkKeysFile(); err != nil {
			return nil, err
		}
	}
	keys, err := oauthtable.OpenKeys(ctx, o.Conn)
	if err != nil {
		return nil, err
	}
	rows, err := oauthtable.OpenGrants(ctx, o.Conn)
	if err != nil {
		return nil, err
	}
	ends, err := endtable.OpenBucket(ctx, o.Conn)
	if err != nil {
		return nil, err
	}
	once, err := oauthtable.OpenOnce(ctx, o.Conn)
	if err != nil {
		return nil, err
	}
	plain := &http.Client{Timeout: documentWithin, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	s := &Server{
		o: o, plain: plain, ends: ends, once: once, clientKeys: clientKeys{configured: plain, documents: o.HTTP, now: o.Now, log: o.Log}, scopes: given, ring: &keyring{rows: keys, keys: o.Keys, now: o.Now}, grants: &grants{rows: rows, keys: o.Keys, data: o.DataKeys},
	}
	s.documents = newDocuments(o.HTTP, o.Hosts, o.Now, o.Log)
	if _, err := s.ring.get(ctx); err != nil { // fail now rather than at the first request
		return nil, err
	}
	if s.metadata, err = json.Marshal(s.describe()); err != nil {
		return nil, err
	}
	s.erasures, err = s.followErasures(ctx)
	return s, err
}

// Close stops the work that Open started, and closes idle connections. It must be called before the
// connection to NATS is closed.
func (s *Server) Close() {
	if s != nil {
		s.erasures.close()
		s.o.HTTP.CloseIdleConnections()
		s.plain.CloseIdleConnections()
	}
}

// describe returns the metadata of RFC 8414.
func (s *Server) describe() map[string]any {
	methods := []string{methodNone}
	if slices.ContainsFunc(s.o.Clients, func(c Client) bool { return c.SecretHash != "" }) {
		methods = append(methods, methodBasic, methodPost)
	}
	if len(s.o.Hosts) > 0 || slices.ContainsFunc(s.o.Clients, func(c Client) bool { return c.keyed() }) {
		methods = append(methods, methodKey)
	}
	scopes := slices.Clone(s.o.Scopes)
	if len(s.o.AdminGroups) > 0 && !slices.Contains(scopes, scope.Admin) {
		scopes = append(scopes, scope.Admin)
	}
	told := map[string]any{
		"issuer":                                         s.o.Issuer,
		"authorization_endpoint":                         s.o.Issuer + AuthorizePath,
		"token_endpoint":                                 s.o.Issuer + TokenPath,
		"revocation_endpoint":                            s.o.Issuer + RevokePath,
		"jwks_uri":                                       s.o.Issuer + KeysPath,
		"scopes_supported":                               scopes,
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{grantCode, grantRefresh},
		"token_endpoint_auth_methods_supported":          methods,
		"revocation_endpoint_auth_methods_supported":     methods,
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          len(s.o.Hosts) > 0,
	}
	if slices.Contains(methods, methodKey) {
		told["token_endpoint_auth_signing_alg_values_supported"] = settings.TokenAlgorithms()
		told["revocation_endpoint_auth_signing_alg_values_supported"] = settings.TokenAlgorithms()
	}
	return told
}

// ServeMetadata writes the metadata.
func (s *Server) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	open(w, r)
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(s.metadata)
}

// ServeKeys writes the public keys that verify access tokens.
func (s *Server) ServeKeys(w http.ResponseWriter, r *http.Request) {
	open(w, r)
	ring, err := s.ring.get(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(ring.public)
}

// open allows web pages to read the response. That is safe because browsers send no credentials to
// these endpoints by themselves.
func open(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version")
		h.Set("Access-Control-Max-Age", "3600")
	}
}

// ServePreflight answers a CORS preflight request.
func (s *Server) ServePreflight(w http.ResponseWriter, r *http.Request) {
	open(w, r)
	w.WriteHeader(http.StatusNoContent)
}
