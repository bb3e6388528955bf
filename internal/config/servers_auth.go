package config

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/urls"
)

// Values of [Auth.Mode].
const (
	AuthStatic  = "static"        // a secret that the operator stores
	AuthService = "oauth_service" // access tokens of Callyard itself, by client credentials
	// AuthUser is the credential of the person behind each call. The front door holds it.
	AuthUser = "user"
)

// authModes are the valid values of "mode".
var authModes = []string{AuthStatic, AuthService, AuthUser}

// Auth selects the credential of requests to a server. Printing never shows it.
type Auth struct {
	Mode string

	// For AuthStatic: the header and its value. Scheme precedes the value.
	Header string `json:",omitempty"`
	Scheme string `json:",omitempty"`
	Value  Secret `json:",omitzero"`

	// For modes with an authorization server: its Issuer, whose metadata is read, or its TokenURL;
	// the identity of the client; and the scopes and audience to request. Resource is the resource
	// indicator (RFC 8707); if empty, none is sent.
	Issuer         string   `json:",omitempty"`
	TokenURL       string   `json:",omitempty"`
	ClientID       string   `json:",omitempty"`
	ClientSecret   Secret   `json:",omitzero"`
	ClientAuth     string   `json:",omitempty"` // client_secret_basic, client_secret_post or ""
	PrivateKeyFile string   `json:",omitempty"`
	KeyID          string   `json:",omitempty"`
	Algorithm      string   `json:",omitempty"`
	Scopes         []string `json:",omitempty"`
	Resource       string   `json:",omitempty"`
	Audience       string   `json:",omitempty"`
}

// String hides the credential.
func (Auth) String() string { return hiddenText }

// GoString hides the credential.
func (Auth) GoString() string { return hiddenText }

// Secret is a text, a file that is read each time the secret is needed, or a field in Vault.
type Secret struct {
	Text, File string
	Vault      *Vault `json:",omitempty"`
}

// Vault is a field of a secret in the KV secrets engine of HashiCorp Vault or OpenBao. Path is the
// path in the API, such as secret/data/search. TokenFile holds a Vault token, or, with
// KubernetesRole, the token of a service account (by default that of the pod). RoleID is for the
// AppRole login, whose secret id is in SecretIDFile or in the environment variable SecretIDEnv.
type Vault struct {
	Address        string `yaml:"address"`
	Path           string `yaml:"path"`
	Field          string `yaml:"field"`
	Namespace      string `yaml:"namespace"`
	TokenFile      string `yaml:"token_file"`
	KubernetesRole string `yaml:"kubernetes_role"`
	RoleID         string `yaml:"role_id"`
	SecretIDFile   string `yaml:"secret_id_file"`
	SecretIDEnv    string `yaml:"secret_id_env"`
}

// IsZero reports whether no secret is set.
func (s Secret) IsZero() bool { return s == Secret{} }

// String hides the secret.
func (Secret) String() string { return hiddenText }

// GoString hides the secret.
func (Secret) GoString() string { return hiddenText }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(hiddenText), nil }

type authShape struct {
	Bearer looseString `yaml:"bearer"`

	Mode       string      `yaml:"mode"`
	Header     string      `yaml:"header"`
	Scheme     *string     `yaml:"scheme"`
	Value      looseString `yaml:"value"`
	ValueFile  string      `yaml:"value_file"`
	ValueVault *Vault      `yaml:"value_vault"`

	Issuer           string      `yaml:"issuer"`
	TokenURL         string      `yaml:"token_url"`
	ClientID         string      `yaml:"client_id"`
	ClientSecret     looseString `yaml:"client_secret"`
	ClientSecretFile string      `yaml:"client_secret_file"`
	ClientAuth       string      `yaml:"client_auth"`
	PrivateKeyFile   string      `yaml:"private_key_file"`
	KeyID            string      `yaml:"key_id"`
	Algorithm        string      `yaml:"algorithm"`
	Scopes           []string    `yaml:"scopes"`
	Resource         *string     `yaml:"resource"`
	Audience         string      `yaml:"audience"`
	AllowHTTP        bool        `yaml:"allow_http"`
}

// hasMode reports whether the block has more than the older bearer token.
func (d *draft) hasMode() bool {
	s := d.shape.Auth
	s.Bearer = ""
	return d.has("auth") && !reflect.ValueOf(s).IsZero()
}

// authReader reads one auth block.
type authReader struct {
	*serverReader
	d *draft
	s *authShape
	a *Auth
}

func (r *authReader) bad(key, format string, args ...any) {
	r.faultBelow(r.d, "auth", join(join(r.d.path, "auth"), key), format, args...)
}

// auth reads the auth block of a server that is reached over HTTP. have holds the headers that the
// entry sets itself.
func (r *serverReader) auth(d *draft, e *ServerEntry, have map[string]bool) {
	s := &d.shape.Auth
	ar := &authReader{serverReader: r, d: d, s: s, a: &Auth{Mode: s.Mode, Header: "Authorization"}}
	if s.Bearer != "" {
		ar.bad("bearer", "mode is set too; write the token as \"value\", with \"mode\": \"static\".")
	}
	for _, key := range []string{"bearerTokenEnv", "apiKey"} {
		if d.has(key) {
			r.fault(d, key, "auth has a credential too; keep one of them.")
		}
	}
	switch {
	case s.Mode == "":
		ar.bad("mode", "is missing; write %s.", oneOf(authModes))
		return
	case !slices.Contains(authModes, s.Mode):
		ar.bad("mode", "%s is not a known mode; write %s.", quote(shorten(s.Mode)), oneOf(authModes))
		return
	case s.Mode == AuthStatic:
		ar.static()
	case s.Mode == AuthUser:
		ar.user(e)
	default:
		ar.service(e)
	}
	if have[ar.a.Header] {
		r.fault(d, "headers", "%s is set by auth too; keep one of them.", quote(ar.a.Header))
	}
	ar.address(e)
	e.Auth = ar.a
}

// oneOf writes values as a list of alternatives.
func oneOf[S ~string](values []S) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(string(v))
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// unusedIn reports keys that have no effect in the mode.
func (r *authReader) unusedIn(keys map[string]bool) {
	r.unused("with the mode "+quote(r.s.Mode), keys)
}

// unused reports the given keys that are set although they have no effect; when is the reason.
func (r *authReader) unused(when string, keys map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if keys[key] {
			r.bad(key, "has no effect %s; remove it.", when)
		}
	}
}

func (r *authReader) static() {
	r.noOAuth()
	r.header()
	switch s := r.s; {
	case s.ValueVault == nil:
		r.a.Value = r.secret("value", string(s.Value), s.ValueFile)
	case s.Value != "" || s.ValueFile != "":
		r.bad("value_vault", "there is a value or value_file too; keep one of them.")
	default:
		r.a.Value = Secret{Vault: r.vault(s.ValueVault)}
	}
}

// vault reads the location of a secret in Vault. It does not contact Vault, which may be down.
func (r *authReader) vault(s *Vault) *Vault {
	v := *s
	if _, ok := urls.Secure(s.Address); !ok {
		r.bad("value_vault.address", "must be the https address of Vault without user and fragment; http is for this machine only.")
	}
	for key, text := range map[string]string{"path": s.Path, "field": s.Field} {
		if text == "" {
			r.bad("value_vault."+key, "is missing; write for example \"path\": \"secret/data/search\" and \"field\": \"token\".")
		}
	}
	if slices.Contains(strings.Split(s.Path, "/"), "..") || strings.ContainsAny(s.Path, "?#% ") {
		r.bad("value_vault.path", "is not a path of the API of Vault.")
	}
	switch {
	case s.RoleID != "" || s.SecretIDFile != "" || s.SecretIDEnv != "":
		v.SecretIDFile = r.appRole(s)
	case s.TokenFile != "":
		v.TokenFile = r.file("value_vault.token_file", s.TokenFile)
	case s.KubernetesRole == "" || r.path == "":
		r.bad("value_vault.token_file", "is missing; name a file with a token for Vault, as its agent writes it, or set \"kubernetes_role\", or \"role_id\" and \"secret_id_file\". A server that is added by a request cannot use Vault.")
	}
	return &v
}

// appRole reads an AppRole login and returns the file of the secret id. The secret id is never
// part of the text.
func (r *authReader) appRole(s *Vault) (file string) {
	switch {
	case r.path == "":
		r.bad("value_vault.role_id", "a server that is added by a request cannot use Vault.")
	case s.RoleID == "":
		r.bad("value_vault.role_id", "is missing; write the role id of the AppRole.")
	case s.TokenFile != "" || s.KubernetesRole != "":
		r.bad("value_vault.role_id", "there is a token_file or kubernetes_role too; keep one way to sign in.")
	case (s.SecretIDFile == "") == (s.SecretIDEnv == ""):
		r.bad("value_vault.secret_id_file", "name a file with the secret id, or with \"secret_id_env\" the environment variable that holds it, and not both.")
	case s.SecretIDFile != "":
		return r.file("value_vault.secret_id_file", s.SecretIDFile)
	case os.Getenv(s.SecretIDEnv) == "":
		r.bad("value_vault.secret_id_env", "the environment variable %s is not set.", s.SecretIDEnv)
	}
	return s.SecretIDFile
}

// noOAuth reports keys of modes with an authorization server.
func (r *authReader) noOAuth() {
	s := r.s
	r.unusedIn(map[string]bool{
		"issuer": s.Issuer != "", "token_url": s.TokenURL != "", "client_id": s.ClientID != "", "client_secret": s.ClientSecret != "",
		"client_secret_file": s.ClientSecretFile != "", "client_auth": s.ClientAuth != "", "private_key_file": s.PrivateKeyFile != "", "key_id": s.KeyID != "",
		"algorithm": s.Algorithm != "", "scopes": s.Scopes != nil, "resource": s.Resource != nil, "audience": s.Audience != "",
	})
}

// user reads the optional credential for listing tools. Calls never use it.
func (r *authReader) user(e *ServerEntry) {
	s, d := r.s, r.d
	if s.Value != "" || s.ValueFile != "" || s.ValueVault != nil {
		r.static()
	} else {
		r.noOAuth()
		r.header()
	}
	if e.Type != TypeHTTP && e.Type != TypeSSE && e.Type != TypeWebSocket {
		r.bad("mode", "\"user\" is for MCP servers that are reached by url; remove it.")
	}
	if d.shape.Asks {
		r.fault(d, "asks", "does not work with a credential of each person; remove it.")
	}
}

// header reads the header of modes that send a stored secret.
func (r *authReader) header() {
	s, a := r.s, r.a
	if s.Header != "" {
		a.Header = http.CanonicalHeaderKey(s.Header)
	}
	switch {
	case !mcpwire.IsToken(a.Header):
		r.bad("header", "%s is not a valid name of a header; use letters, digits and \"-\".", quote(shorten(s.Header)))
	case slices.Contains([]string{"Host", "Content-Type", "Content-Length", "Accept", "Connection", "Transfer-Encoding"}, a.Header) || strings.HasPrefix(a.Header, "Mcp-"):
		r.bad("header", "%s belongs to the protocol and cannot carry a credential; choose another.", quote(a.Header))
	}
	if s.Scheme != nil {
		a.Scheme = *s.Scheme
		if a.Scheme != "" && !mcpwire.IsToken(a.Scheme) {
			r.bad("scheme", "must be one word, such as \"Bearer\", or \"\" for none.")
		}
	} else if a.Header == "Authorization" {
		a.Scheme = "Bearer"
	}
}

// secret reads a secret from its text or its file.
func (r *authReader) secret(key, text, file string) Secret {
	switch {
	case text != "" && file != "":
		r.bad(key+"_file", "%s is set too; keep one of them.", key)
	case text == "" && file == "":
		r.bad(key, "is missing; write \"${NAME}\" with the name of a variable, or set %q to a file that holds it.", key+"_file")
	case file != "":
		return Secret{File: r.file(key+"_file", file)}
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c >= 0x7f }):
		r.bad(key, "holds a line break or another character that is not allowed in headers; remove it.")
	}
	return Secret{Text: text}
}

// file returns the path of a secret file, which must be readable now.
func (r *authReader) file(key, file string) string {
	if r.path == "" {
		r.bad(key, "a server that is added by a request cannot read files here; give the secret itself.")
		return file
	}
	file = r.relativeTo(file)
	if text, err := readText(file, maxSecretFile); err != nil {
		r.bad(key, "%v", err)
	} else if strings.TrimSpace(string(text)) == "" {
		r.bad(key, "the file is empty; write the secret into it.")
	}
	return file
}

func (r *authReader) service(e *ServerEntry) {
	s, a := r.s, r.a
	r.unusedIn(map[string]bool{"header": s.Header != "", "scheme": s.Scheme != nil, "value": s.Value != "", "value_file": s.ValueFile != "", "value_vault": s.ValueVault != nil})
	r.issuer()
	if a.ClientID = s.ClientID; s.ClientID == "" {
		r.bad("client_id", "is missing; write the id under which Callyard is registered with the authorization server.")
	}
	r.client()
	r.asks(e)
}

// issuer reads the authorization server.
func (r *authReader) issuer() {
	s, a := r.s, r.a
	a.Issuer, a.TokenURL = s.Issuer, s.TokenURL
	for key, address := range map[string]string{"issuer": s.Issuer, "token_url": s.TokenURL} {
		if _, ok := urls.Secure(address); address != "" && !ok {
			r.bad(key, "must be an https address without user and fragment; http is for this machine only.")
		}
	}
	if s.Issuer == "" && s.TokenURL == "" {
		// Do not trust the server to name one: it could name any, which would get the secret.
		r.bad("issuer", "is missing; write the issuer of the authorization server, or its \"token_url\".")
	}
}

// client reads how the client authenticates.
func (r *authReader) client() {
	s, a := r.s, r.a
	if s.PrivateKeyFile == "" {
		a.ClientSecret = r.secret("client_secret", string(s.ClientSecret), s.ClientSecretFile)
		r.unused(`without "private_key_file"`, map[string]bool{"key_id": s.KeyID != "", "algorithm": s.Algorithm != ""})
	} else {
		if s.ClientSecret != "" || s.ClientSecretFile != "" {
			r.bad("private_key_file", "the client has a secret too; keep one of them.")
		}
		r.unused(`without "client_secret"`, map[string]bool{"client_auth": s.ClientAuth != ""})
		a.PrivateKeyFile, a.KeyID, a.Algorithm = r.file("private_key_file", s.PrivateKeyFile), s.KeyID, s.Algorithm
	}
	algorithms := []string{"", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"}
	if !slices.Contains(algorithms, s.Algorithm) {
		r.bad("algorithm", "%s is not a known algorithm; write %s.", quote(shorten(s.Algorithm)), oneOf(algorithms[1:]))
	}
	a.ClientAuth = s.ClientAuth
	if methods := []string{"", "client_secret_basic", "client_secret_post"}; !slices.Contains(methods, s.ClientAuth) {
		r.bad("client_auth", "%s is not a known method; write %s.", quote(shorten(s.ClientAuth)), oneOf(methods[1:]))
	}
}

// asks reads the scopes and audience to request.
func (r *authReader) asks(e *ServerEntry) {
	s, a := r.s, r.a
	a.Scopes, a.Audience = s.Scopes, s.Audience
	for i, scope := range s.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '\\' }) {
			r.bad("scopes", "entry %d is not a scope; write each as a string of its own.", i+1)
		}
	}
	switch {
	case s.Resource != nil:
		a.Resource = *s.Resource
	case e.Type == TypeHTTP || e.Type == TypeSSE:
		a.Resource = resourceOf(e.URL)
	}
}

// resourceOf returns the resource indicator of an MCP server, which is its address.
func resourceOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.Fragment = nil, ""
	return u.String()
}

// address requires an encrypted connection for the credential.
func (r *authReader) address(e *ServerEntry) {
	d := r.d
	key, address := "url", d.shape.URL
	switch {
	case e.Type == TypeOpenAPI:
		key, address = "base_url", d.shape.BaseURL
		if address == "" {
			r.fault(d, "auth", "requires \"base_url\": the credential is for that address alone, and not for what a document names.")
			return
		}
	case e.Type == TypeToolEndpoint && d.shape.ToolEndpoint != nil:
		key, address = "tool_endpoint", d.shape.ToolEndpoint.URL
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || r.s.AllowHTTP || u.Scheme == "https" || u.Scheme == "wss" || urls.Loopback(u.Hostname()) {
		return
	}
	r.faults.add(d.place(key), join(d.path, key), "would carry the credential of auth unencrypted; use https, or set \"allow_http\" in auth if the network is encrypted by other means.")
}
