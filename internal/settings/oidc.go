package settings

import (
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/telemetry"
)

// OIDC is the section approver.oidc of the configuration.
type OIDC struct {
	// Issuer is the address of the provider; empty means that there is none.
	Issuer string `yaml:"issuer"`
	// ClientID and the secret are what the provider gave this approver. A client
	// without a secret is a public one, and has PKCE only.
	ClientID         string           `yaml:"client_id"`
	ClientSecret     telemetry.Secret `yaml:"client_secret"`
	ClientSecretFile string           `yaml:"client_secret_file"`
	// RedirectURL is where the provider sends people back to; empty means
	// approver.public_url and [CallbackPath].
	RedirectURL string `yaml:"redirect_url"`
	// Scopes are asked for; openid always is.
	Scopes []string `yaml:"scopes"`
	// NameClaim says who somebody is: "email", which counts only when the provider
	// has verified it, "sub", or another claim that no two people share.
	NameClaim string `yaml:"name_claim"`
	// GroupsClaim holds the groups, as a text or a list; a dot leads into an object.
	GroupsClaim string `yaml:"groups_claim"`
	// GroupMap turns a group of the provider into groups of the policy. Without it
	// groups keep their names; with it those that it does not name count nothing.
	GroupMap map[string][]string `yaml:"group_map"`
	// TenantClaim holds the tenant, whose approvals the person sees and decides; empty: the
	// default tenant.
	TenantClaim string `yaml:"tenant_claim"`
	// EmailDomains lets only people with a verified address there in; empty: all.
	EmailDomains []string `yaml:"email_domains"`
}

// CallbackPath is where the provider sends people back to.
const CallbackPath = "/sign-in/callback"

// NamePrefix begins the name of everybody who signed in at a provider. No API key
// may have such a name.
const NamePrefix = "oidc:"

// EmailClaim is the claim that needs a word that it is verified.
const EmailClaim = "email"

// OIDCDefaults returns the section of an approver that was told nothing.
func OIDCDefaults() OIDC {
	return OIDC{Scopes: []string{"openid", "email", "profile"}, NameClaim: EmailClaim, GroupsClaim: "groups"}
}

// Configured says whether there is a provider.
func (c OIDC) Configured() bool { return c.Issuer != "" }

// Validate returns the settings that cannot be honoured; see package config.
func (c OIDC) Validate() []config.Fault {
	if !c.Configured() {
		if c.ClientID != "" || c.ClientSecret != "" || c.ClientSecretFile != "" || c.RedirectURL != "" || len(c.GroupMap) > 0 || len(c.EmailDomains) > 0 {
			return []config.Fault{config.Faultf("issuer", "is missing: set the issuer as in the provider's discovery document, or omit the section.")}
		}
		return nil
	}
	var faults config.Collector
	if u, ok := SafeAddress(c.Issuer); !ok || u.RawQuery != "" {
		faults.Addf("issuer", "must be an https URL, as in the provider's discovery document; http is allowed for loopback only.")
	}
	if c.ClientID == "" {
		faults.Addf("client_id", "is missing: register the approver at the provider, and set its client id here.")
	}
	if c.ClientSecret != "" && c.ClientSecretFile != "" {
		faults.Addf("client_secret_file", "and client_secret are both set; keep one.")
	}
	if u, ok := SafeAddress(c.RedirectURL); c.RedirectURL != "" && (!ok || u.Path != CallbackPath || u.RawQuery != "") {
		faults.Addf("redirect_url", "must be the URL at which browsers reach the approver, with the path %s; omit it if public_url is set.", CallbackPath)
	}
	for key, value := range map[string]string{"name_claim": c.NameClaim, "groups_claim": c.GroupsClaim} {
		if value == "" {
			faults.Addf(key, "must name a claim; omit the key for the default.")
		}
	}
	if i := slices.IndexFunc(c.EmailDomains, func(d string) bool { return d == "" || strings.ContainsAny(d, "@*/ ") }); i >= 0 {
		faults.Addf("email_domains", "contains %q; write only full domain names, such as example.com.", c.EmailDomains[i])
	}
	return faults
}

// SafeAddress reads an address that may carry secrets: https, or http on loopback.
func SafeAddress(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, false
	}
	local := u.Scheme == "http" && config.Loopback(net.JoinHostPort(u.Hostname(), "0"))
	return u, u.Scheme == "https" || local
}

// Secret reads the client secret, at each use, so that it can be changed.
func (c OIDC) Secret() (string, error) {
	if c.ClientSecretFile == "" {
		return c.ClientSecret.Reveal(), nil
	}
	b, err := os.ReadFile(c.ClientSecretFile)
	return strings.TrimRight(string(b), "\r\n"), err
}
