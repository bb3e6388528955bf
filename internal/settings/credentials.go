package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
)

// Credentials is the section credentials: the credentials with which people connect to MCP servers
// on the pages of the approver. Front doors and approvers read it.
type Credentials struct {
	// KeyFile holds the keys that encrypt stored credentials, one on each line: 32 bytes in base64,
	// newest first.
	KeyFile string `yaml:"key_file"`
	// ConnectURL is the address of the approver for browsers. If empty, it is approver.public_url or
	// the listen address of the approver.
	ConnectURL string `yaml:"connect_url"`
	// Servers are the servers to which each person has a credential. Their entries in the servers file
	// have "auth": {"mode": "user"}.
	Servers []CredentialServer `yaml:"servers"`
}

// Values of [CredentialServer.Kind].
const (
	CredentialOAuth = "oauth"  // a grant of an authorization server
	CredentialKey   = "header" // a secret that the person enters
	// CredentialExchange is a token obtained by exchange for the caller's access token (RFC 8693).
	CredentialExchange = "exchange"
)

// CredentialServer is one entry of credentials.servers.
type CredentialServer struct {
	// Name and URL are those of the entry in the servers file. A credential is sent only to the
	// origin of URL.
	Name string `yaml:"name"`
	URL  string `yaml:"url"`
	// Kind is CredentialOAuth, CredentialKey or CredentialExchange.
	Kind string `yaml:"kind"`
	// Header is the header for a secret of kind CredentialKey, whose value starts with Scheme. If
	// empty, it is Authorization.
	Header string `yaml:"header"`
	Scheme string `yaml:"scheme"`
	// Issuer is the authorization server. If empty, the MCP server names it. ClientID and
	// ClientSecretFile are the registration of Callyard there. If empty, Callyard uses the client id
	// metadata document of this installation or dynamic registration.
	Issuer           string   `yaml:"issuer"`
	ClientID         string   `yaml:"client_id"`
	ClientSecretFile string   `yaml:"client_secret_file"`
	Scopes           []string `yaml:"scopes"`
	// Audience is requested in an exchange. If empty, URL is requested as the resource. ConsentURL is
	// the address at which people consent, if Issuer requires consent before an exchange.
	Audience   string `yaml:"audience"`
	ConsentURL string `yaml:"consent_url"`
}

// Validate returns the settings that are invalid; see package config.
func (c Credentials) Validate() []config.Fault {
	var faults config.Collector
	if len(c.Servers) > 0 && c.KeyFile == "" {
		faults.Addf("key_file", "is missing: create it with `openssl rand -base64 32`, and keep it outside of NATS.")
	}
	if _, ok := urls.Secure(c.ConnectURL); c.ConnectURL != "" && !ok {
		faults.Addf("connect_url", "must be an https URL; http is allowed for loopback only.")
	}
	names := map[string]bool{}
	for i := range c.Servers {
		s := &c.Servers[i]
		path := fmt.Sprintf("servers[%d]", i)
		s.check(path, &faults)
		if names[s.Name] {
			faults.Addf(path+".name", "%q occurs twice; remove one entry.", s.Name)
		}
		names[s.Name] = true
	}
	return faults
}

func (s *CredentialServer) check(path string, faults *config.Collector) {
	add := func(key, format string, args ...any) { faults.Addf(path+"."+key, format, args...) }
	if fault := config.ServerNameFault(s.Name); fault != "" {
		add("name", "%s", fault)
	}
	if _, ok := urls.Secure(s.URL); !ok && !strings.HasPrefix(s.URL, "wss://") {
		add("url", "must be an https URL, the same as in the servers file; http is allowed for loopback only.")
	}
	oauth, exchange := s.Kind == CredentialOAuth, s.Kind == CredentialExchange
	if !exchange && (s.Audience != "" || s.ConsentURL != "") {
		add("kind", "%q has no audience and consent_url; remove them.", s.Kind)
	}
	if _, ok := urls.Secure(s.ConsentURL); s.ConsentURL != "" && !ok {
		add("consent_url", "must be an https URL; http is allowed for loopback only.")
	}
	switch {
	case exchange && (s.Issuer == "" || s.ClientID == ""):
		add("issuer", "and client_id are required by the kind %q: the authorization server that exchanges tokens, and who Callyard is there.", s.Kind)
	case exchange && (s.Header != "" || s.Scheme != ""):
		add("kind", "%q has no header and scheme: tokens are sent in Authorization; remove them.", s.Kind)
	case exchange: // the following checks are for other kinds
	case oauth && strings.HasPrefix(s.URL, "wss://"):
		add("kind", "%q needs an https URL: what a server publishes of its authorization server is read there.", s.Kind)
	case !oauth && s.Kind != CredentialKey:
		add("kind", "must be %q, %q or %q.", CredentialOAuth, CredentialKey, CredentialExchange)
	case !oauth && (s.Issuer != "" || s.ClientID != "" || s.ClientSecretFile != "" || len(s.Scopes) > 0):
		add("kind", "%q has no issuer, client_id, client_secret_file and scopes; remove them.", s.Kind)
	case oauth && (s.Header != "" || s.Scheme != ""):
		add("kind", "%q has no header and scheme: tokens are sent in Authorization; remove them.", s.Kind)
	case oauth && s.ClientSecretFile != "" && s.ClientID == "":
		add("client_id", "is missing: client_secret_file belongs to one.")
	case oauth && s.ClientID != "" && s.Issuer == "":
		// Do not trust the MCP server to name an issuer: that issuer would get the client secret.
		add("issuer", "is missing: client_id is registered with one issuer.")
	}
	if _, ok := urls.Secure(s.Issuer); s.Issuer != "" && !ok {
		add("issuer", "must be an https URL; http is allowed for loopback only.")
	}
	token := func(text string) bool {
		return !strings.ContainsFunc(text, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
		})
	}
	if !token(s.Header) || strings.EqualFold(s.Header, "Host") || strings.HasPrefix(strings.ToLower(s.Header), "mcp-") {
		add("header", "%q cannot carry a credential; use a header such as X-API-Key.", s.Header)
	}
	if !token(s.Scheme) {
		add("scheme", "must be one word, such as Bearer.")
	}
	if slices.ContainsFunc(s.Scopes, func(scope string) bool { return scope == "" || strings.ContainsAny(scope, " \"\\") }) {
		add("scopes", "has an entry that is not a scope; write each as a string of its own.")
	}
}
