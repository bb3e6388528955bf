package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// Credentials is the section credentials: what people connect to MCP servers with, at the
// pages of the approver. Front doors and approvers go by it.
type Credentials struct {
	// KeyFile has the keys that the stored credentials are encrypted with: 32 bytes in base64
	// on each line, the newest first.
	KeyFile string `yaml:"key_file"`
	// ConnectURL is where people's browsers reach the approver; empty: approver.public_url, or
	// the address that it listens on.
	ConnectURL string `yaml:"connect_url"`
	// Servers are those to which each person has a credential of their own. Their entries in
	// the servers file have "auth": {"mode": "user"}.
	Servers []CredentialServer `yaml:"servers"`
}

// Kinds of [CredentialServer].
const (
	CredentialOAuth = "oauth"  // a grant of an authorization server
	CredentialKey   = "header" // a secret that the person enters
	// CredentialExchange is a token that is exchanged for the caller's access token (RFC 8693).
	CredentialExchange = "exchange"
)

// CredentialServer is one entry of credentials.servers.
type CredentialServer struct {
	// Name and URL are those of the entry in the servers file. A credential is sent to the
	// origin of URL only.
	Name string `yaml:"name"`
	URL  string `yaml:"url"`
	// Kind is CredentialOAuth, CredentialKey or CredentialExchange.
	Kind string `yaml:"kind"`
	// Header carries a secret of kind CredentialKey, after Scheme; empty: Authorization.
	Header string `yaml:"header"`
	Scheme string `yaml:"scheme"`
	// Issuer is the authorization server; empty: what the MCP server names. ClientID and
	// ClientSecretFile are our registration there; empty: the metadata document of this
	// installation, or dynamic registration.
	Issuer           string   `yaml:"issuer"`
	ClientID         string   `yaml:"client_id"`
	ClientSecretFile string   `yaml:"client_secret_file"`
	Scopes           []string `yaml:"scopes"`
	// Audience is asked for in an exchange; empty: URL, as the resource. ConsentURL is where
	// people agree where Issuer wants that before an exchange.
	Audience   string `yaml:"audience"`
	ConsentURL string `yaml:"consent_url"`
}

// Validate returns the settings that cannot be honoured; see package config.
func (c Credentials) Validate() []config.Fault {
	var faults config.Collector
	if len(c.Servers) > 0 && c.KeyFile == "" {
		faults.Addf("key_file", "is missing: create it with `openssl rand -base64 32`, and keep it outside of NATS.")
	}
	if _, ok := SafeAddress(c.ConnectURL); c.ConnectURL != "" && !ok {
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
	if _, ok := SafeAddress(s.URL); !ok && !strings.HasPrefix(s.URL, "wss://") {
		add("url", "must be an https URL, the same as in the servers file; http is allowed for loopback only.")
	}
	oauth, exchange := s.Kind == CredentialOAuth, s.Kind == CredentialExchange
	if !exchange && (s.Audience != "" || s.ConsentURL != "") {
		add("kind", "%q has no audience and consent_url; remove them.", s.Kind)
	}
	if _, ok := SafeAddress(s.ConsentURL); s.ConsentURL != "" && !ok {
		add("consent_url", "must be an https URL; http is allowed for loopback only.")
	}
	switch {
	case exchange && (s.Issuer == "" || s.ClientID == ""):
		add("issuer", "and client_id are required by the kind %q: the authorization server that exchanges tokens, and who Callyard is there.", s.Kind)
	case exchange && (s.Header != "" || s.Scheme != ""):
		add("kind", "%q has no header and scheme: tokens are sent in Authorization; remove them.", s.Kind)
	case exchange: // what follows is for the other kinds
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
		// What the server names could be anybody's, who would get the client's secret.
		add("issuer", "is missing: client_id is registered with one issuer.")
	}
	if _, ok := SafeAddress(s.Issuer); s.Issuer != "" && !ok {
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
