package settings

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/listen"
)

// Approver is the section approver of the configuration.
type Approver struct {
	// Listen is the address of the pages and the API.
	Listen string `yaml:"listen"`
	// CertFile and KeyFile are the certificate and key for TLS. If empty, the approver serves plain
	// HTTP.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// MetricsListen is the address on which an approver process serves /livez, /readyz and /metrics
	// without credentials. If empty, it does not serve them.
	MetricsListen string `yaml:"metrics_listen"`
	// PublicURL is the address of the pages for browsers. Links and the session cookie use it. If
	// empty, it is the listen address.
	PublicURL string `yaml:"public_url"`
	// Keys are the API keys of people who decide or observe. OIDC is the provider for sign-in.
	// Without either, the approver listens on loopback only, and every user is the principal
	// "local".
	Keys []authn.Key `yaml:"keys"`
	OIDC OIDC        `yaml:"oidc"`
	// Slack sends approval requests to Slack and accepts decisions there. Notify sends approval
	// events to HTTP receivers.
	Slack  Slack  `yaml:"slack"`
	Notify Notify `yaml:"notify"`
	// Console selects the front door of the web console, and its users.
	Console Console `yaml:"console"`
	// AuthorizationServer issues access tokens to programs if no other authorization server does.
	AuthorizationServer AuthorizationServer `yaml:"authorization_server"`
	// LocalGroups are the groups of the principal "local".
	LocalGroups []string `yaml:"local_groups"`
	// ObserverGroups see every approval. All others see approvals that they may decide and those that
	// they requested.
	ObserverGroups []string `yaml:"observer_groups"`
	// SessionLifetime limits a sign-in on the pages, SessionIdle the time without requests, and
	// FreshSignIn the time for which a sign-in counts as fresh.
	SessionLifetime time.Duration `yaml:"session_lifetime"`
	SessionIdle     time.Duration `yaml:"session_idle"`
	FreshSignIn     time.Duration `yaml:"fresh_sign_in"`
	// ArgumentBytes limits the size of edited arguments.
	ArgumentBytes config.Size `yaml:"argument_bytes"`
	// DrainDelay is the time for which the approver reports not ready before it stops accepting
	// connections. DrainGrace limits the time for requests in progress after that.
	DrainDelay time.Duration `yaml:"drain_delay"`
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// ApproverDefaults returns the default configuration of an approver.
func ApproverDefaults() Approver {
	return Approver{
		Listen: "127.0.0.1:8081", OIDC: OIDCDefaults(), Slack: SlackDefaults(), AuthorizationServer: AuthorizationServerDefaults(),
		SessionLifetime: 8 * time.Hour, SessionIdle: time.Hour, FreshSignIn: 5 * time.Minute, ArgumentBytes: 1 << 20,
		DrainDelay: time.Second, DrainGrace: 10 * time.Second,
	}
}

// Validate returns the settings that are invalid; see package config.
func (c Approver) Validate() []config.Fault {
	var faults config.Collector
	guarded := len(c.Keys) > 0 || c.OIDC.Configured()
	if faults.Address("listen", c.Listen) && !guarded && !config.Loopback(c.Listen) {
		faults.Addf("listen", "is %s, which others can reach, and no sign-in is required: add approver.oidc or approver.keys (callyard keys new creates one), or listen on 127.0.0.1.", c.Listen)
	}
	if guarded && len(c.LocalGroups) > 0 {
		faults.Addf("local_groups", "can be used only without sign-in; set the groups of each key, or of the people at the provider, and omit this.")
	}
	for i, k := range c.Keys {
		if strings.HasPrefix(k.Name, NamePrefix) {
			faults.Addf(fmt.Sprintf("keys[%d].name", i), "begins with %s, which is reserved for people from a provider; choose another name.", NamePrefix)
		}
		if !k.Limits.None() {
			faults.Addf(fmt.Sprintf("keys[%d].limits", i), "work at front doors only; omit them.")
		}
		if k.Certificate != "" {
			faults.Addf(fmt.Sprintf("keys[%d].certificate", i), "works at front doors only; set the hash of a key instead.")
		}
		if k.Role != "" {
			faults.Addf(fmt.Sprintf("keys[%d].role", i), "works at front doors only, and groups decide who may approve; omit it.")
		}
	}
	faults = append(faults, checkKeys(c.Keys)...)
	faults = append(faults, listen.Validate(c.CertFile, c.KeyFile)...)
	public, ok := c.Public()
	if !ok {
		faults.Addf("public_url", "must be a URL such as https://approve.example.com, without a path.")
	} else if public != nil && !guarded && !urls.Loopback(public.Hostname()) {
		faults.Addf("public_url", "makes an approver without sign-in reachable for others: add approver.oidc or approver.keys, or omit public_url.")
	}
	if c.CertFile != "" && public != nil && public.Scheme != "https" {
		faults.Addf("public_url", "is an http URL, but with cert_file the pages are served over TLS: write https.")
	}
	if c.Slack.Configured() && !guarded {
		faults.Addf("slack", "requires sign-in to identify people: add approver.oidc or approver.keys.")
	}
	if c.OIDC.Configured() {
		c.checkRedirect(public, &faults)
	}
	faults.Positive("session_lifetime", c.SessionLifetime > 0)
	faults.Positive("session_idle", c.SessionIdle > 0)
	faults.Positive("fresh_sign_in", c.FreshSignIn > 0)
	faults.Positive("argument_bytes", c.ArgumentBytes > 0)
	return faults
}

// checkRedirect requires that sign-in redirects to the host name of the pages, because the sign-in
// cookie is bound to that name.
func (c Approver) checkRedirect(public *url.URL, faults *config.Collector) {
	back, err := url.Parse(c.OIDC.RedirectURL)
	switch {
	case c.OIDC.RedirectURL == "" && public == nil && !config.Loopback(c.Listen):
		faults.Addf("public_url", "is missing: the provider redirects people to it. Set the URL at which browsers reach the approver.")
	case c.OIDC.RedirectURL != "" && err == nil && public != nil && (back.Scheme != public.Scheme || !strings.EqualFold(back.Host, public.Host)):
		faults.Addf("oidc.redirect_url", "has a different host than public_url; omit it, it is derived from public_url.")
	}
}

// Public returns the address of the pages for browsers, or nil if public_url is empty. The bool
// is false if public_url is invalid.
func (c Approver) Public() (*url.URL, bool) {
	if c.PublicURL == "" {
		return nil, true
	}
	u, err := url.Parse(strings.TrimSuffix(c.PublicURL, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "" || u.Path != "" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, false
	}
	u.Host = strings.ToLower(u.Host)
	return u, true
}
