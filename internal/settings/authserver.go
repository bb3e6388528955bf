package settings

import (
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
)

// AuthorizationServer is the section approver.authorization_server. The approver issues access
// tokens to programs to which people grant access on its pages.
type AuthorizationServer struct {
	Enabled bool `yaml:"enabled"`
	// Resources are the addresses of front doors that tokens are for. If empty, it is
	// front_door.public_url.
	Resources []string `yaml:"resources"`
	// Clients are registered programs. ClientHosts are hosts whose client id metadata documents are
	// accepted as well; "*" means every host with a public address.
	Clients     []OAuthClient `yaml:"clients"`
	ClientHosts []string      `yaml:"client_hosts"`
	// Scopes can be granted by every user who signs in. Only members of AdminGroups can grant the
	// scope admin.
	Scopes      []string `yaml:"scopes"`
	AdminGroups []string `yaml:"admin_groups"`
	// TokenLifetime limits an access token. After GrantLifetime a person must grant access again.
	TokenLifetime time.Duration `yaml:"token_lifetime"`
	GrantLifetime time.Duration `yaml:"grant_lifetime"`
}

// OAuthClient is one entry of approver.authorization_server.clients.
type OAuthClient struct {
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	// RedirectURIs are the allowed redirect addresses. On loopback, the port may differ.
	RedirectURIs []string `yaml:"redirect_uris"`
	// SecretHash is the hash of the client secret, as `callyard keys new` prints it. If empty, the
	// client is public and uses PKCE only.
	SecretHash string `yaml:"secret_hash"`
	// JWKSFile is a file with the client's public keys, and JWKSURL is their address. With either,
	// the client authenticates with a signed JWT (private_key_jwt).
	JWKSFile string `yaml:"jwks_file"`
	JWKSURL  string `yaml:"jwks_url"`
}

// Limits of lifetimes.
const (
	maxTokenLifetime = time.Hour
	maxGrantLifetime = 90 * 24 * time.Hour
)

// AuthorizationServerDefaults returns the default section.
func AuthorizationServerDefaults() AuthorizationServer {
	return AuthorizationServer{
		ClientHosts: []string{"*"}, Scopes: []string{scope.ReadTools, scope.CallTools, scope.ReadCalls},
		TokenLifetime: 10 * time.Minute, GrantLifetime: 7 * 24 * time.Hour,
	}
}

// Validate returns the settings that are invalid; see package config.
func (c AuthorizationServer) Validate() []config.Fault {
	var faults config.Collector
	for i, r := range c.Resources {
		if u, ok := urls.Secure(r); !ok || u.RawQuery != "" || u.ForceQuery || strings.HasSuffix(r, "/") {
			faults.Addf(fmt.Sprintf("resources[%d]", i), "must be the front_door.public_url of a front door: an https URL without a query and without a slash at its end; http is allowed for loopback only.")
		}
	}
	ids := map[string]bool{}
	for i := range c.Clients {
		o, path := &c.Clients[i], fmt.Sprintf("clients[%d]", i)
		switch {
		case o.ID == "" || len(o.ID) > 200 || strings.ContainsFunc(o.ID, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
			faults.Addf(path+".id", "must have 1 to 200 visible ASCII characters.")
		case ids[o.ID]:
			faults.Addf(path+".id", "%q occurs twice; remove one entry.", o.ID)
		}
		ids[o.ID] = true
		if len(o.RedirectURIs) == 0 {
			faults.Addf(path+".redirect_uris", "is missing: after the sign-in, browsers return to registered addresses only.")
		}
		o.checkKeys(path, &faults)
		if hash, ok := strings.CutPrefix(o.SecretHash, "sha256:"); o.SecretHash != "" && (!ok || len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "") {
			faults.Addf(path+".secret_hash", "must be sha256: and 64 hex digits; callyard keys new prints a secret and its hash.")
		}
	}
	for i, h := range c.ClientHosts {
		if h == "" || strings.ContainsAny(h, ":/@ ") || h != "*" && strings.Contains(h, "*") || h != strings.ToLower(h) {
			faults.Addf(fmt.Sprintf("client_hosts[%d]", i), "must be the name of a host in small letters, without a port, or \"*\" for every host with a public address.")
		}
	}
	if _, err := scope.Parse(c.Scopes); err != nil {
		faults.Addf("scopes", "%s", err)
	} else if len(c.Scopes) == 0 {
		faults.Addf("scopes", "is empty: tokens would allow nothing. Omit it for the default.")
	}
	if c.TokenLifetime < time.Minute || c.TokenLifetime > maxTokenLifetime {
		faults.Addf("token_lifetime", "must be between 1m and 1h.")
	}
	if c.GrantLifetime < c.TokenLifetime || c.GrantLifetime > maxGrantLifetime {
		faults.Addf("grant_lifetime", "must be between token_lifetime and 2160h (90 days).")
	}
	return faults
}

// checkKeys adds the faults of the keys of a client.
func (o *OAuthClient) checkKeys(path string, faults *config.Collector) {
	given := 0
	for _, one := range []string{o.SecretHash, o.JWKSFile, o.JWKSURL} {
		if one != "" {
			given++
		}
	}
	if given > 1 {
		faults.Addf(path+".jwks_file", "cannot be combined with jwks_url or secret_hash, nor these with each other; keep one.")
	}
	if _, ok := urls.Secure(o.JWKSURL); o.JWKSURL != "" && !ok {
		faults.Addf(path+".jwks_url", "must be an https URL; http is allowed for loopback only.")
	}
}
