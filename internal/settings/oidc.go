package settings

import (
	"os"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/telemetry"
)

// OIDC is the section approver.oidc of the configuration.
type OIDC struct {
	// Issuer is the address of the provider. If empty, there is none.
	Issuer string `yaml:"issuer"`
	// ClientID and the secret are the registration of this approver at the provider. A client without
	// a secret is public and uses PKCE only.
	ClientID         string           `yaml:"client_id"`
	ClientSecret     telemetry.Secret `yaml:"client_secret"`
	ClientSecretFile string           `yaml:"client_secret_file"`
	// RedirectURL is the address to which the provider redirects people. If empty, it is
	// approver.public_url and [CallbackPath].
	RedirectURL string `yaml:"redirect_url"`
	// Scopes are requested in addition to openid.
	Scopes []string `yaml:"scopes"`
	// NameClaim identifies a person: "email", which counts only if the provider verified it, "sub", or
	// another claim that is unique for each person.
	NameClaim string `yaml:"name_claim"`
	// GroupsClaim holds the groups, as a string or a list. A dot leads into an object.
	GroupsClaim string `yaml:"groups_claim"`
	// GroupMap maps a group of the provider to groups of the policy. Without it, groups keep their
	// names; with it, groups that it does not name are ignored.
	GroupMap map[string][]string `yaml:"group_map"`
	// TenantClaim holds the tenant whose approvals the person sees and decides. If empty, it is the
	// default tenant.
	TenantClaim string `yaml:"tenant_claim"`
	// EmailDomains admits only people with a verified address in these domains. If empty, all are
	// admitted.
	EmailDomains []string `yaml:"email_domains"`
}

// CallbackPath is the path to which the provider redirects people.
const CallbackPath = "/sign-in/callback"

// NamePrefix starts the name of every person who signed in at a provider. No API key may have such
// a name.
const NamePrefix = "oidc:"

// EmailClaim is the claim that must be marked as verified.
const EmailClaim = "email"

// OIDCDefaults returns the default section.
func OIDCDefaults() OIDC {
	return OIDC{Scopes: []string{"openid", "email", "profile"}, NameClaim: EmailClaim, GroupsClaim: "groups"}
}

// Configured reports whether a provider is set.
func (c OIDC) Configured() bool { return c.Issuer != "" }

// Validate returns the settings that are invalid; see package config.
func (c OIDC) Validate() []config.Fault {
	if !c.Configured() {
		if c.ClientID != "" || c.ClientSecret != "" || c.ClientSecretFile != "" || c.RedirectURL != "" || len(c.GroupMap) > 0 || len(c.EmailDomains) > 0 {
			return []config.Fault{config.Faultf("issuer", "is missing: set the issuer as in the provider's discovery document, or omit the section.")}
		}
		return nil
	}
	var faults config.Collector
	if u, ok := urls.Secure(c.Issuer); !ok || u.RawQuery != "" {
		faults.Addf("issuer", "must be an https URL, as in the provider's discovery document; http is allowed for loopback only.")
	}
	if c.ClientID == "" {
		faults.Addf("client_id", "is missing: register the approver at the provider, and set its client id here.")
	}
	if c.ClientSecret != "" && c.ClientSecretFile != "" {
		faults.Addf("client_secret_file", "and client_secret are both set; keep one.")
	}
	if u, ok := urls.Secure(c.RedirectURL); c.RedirectURL != "" && (!ok || u.Path != CallbackPath || u.RawQuery != "") {
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

// Secret reads the client secret. It is read at each use, so that it can change.
func (c OIDC) Secret() (string, error) {
	if c.ClientSecretFile == "" {
		return c.ClientSecret.Reveal(), nil
	}
	b, err := os.ReadFile(c.ClientSecretFile)
	return strings.TrimRight(string(b), "\r\n"), err
}
