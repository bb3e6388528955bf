package settings

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/listen"
)

// Approver is the section approver of the configuration.
type Approver struct {
	// Listen is the address of the pages and the API.
	Listen string `yaml:"listen"`
	// CertFile and KeyFile are the certificate and its key with which it serves TLS;
	// empty: it serves plain HTTP.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// MetricsListen is an address for /livez, /readyz and /metrics of an approver
	// process, which ask for no credential there; empty: none.
	MetricsListen string `yaml:"metrics_listen"`
	// PublicURL is where people's browsers reach the pages, for links and for the
	// session cookie; empty means the address that is listened on.
	PublicURL string `yaml:"public_url"`
	// Keys are the API keys of those who decide, or look. OIDC is the provider at
	// which people sign in. Without either the approver serves loopback only, and
	// everybody is the principal "local".
	Keys []authn.Key `yaml:"keys"`
	OIDC OIDC        `yaml:"oidc"`
	// Slack has people asked, and answers taken, there too. Notify tells receivers
	// over HTTP what happens to approvals.
	Slack  Slack  `yaml:"slack"`
	Notify Notify `yaml:"notify"`
	// Console is which front door the web console shows, and to whom.
	Console Console `yaml:"console"`
	// AuthorizationServer issues access tokens to programs, where no other server does.
	AuthorizationServer AuthorizationServer `yaml:"authorization_server"`
	// LocalGroups are the groups of the principal "local".
	LocalGroups []string `yaml:"local_groups"`
	// ObserverGroups see every approval; all others see what they may decide and
	// what they asked for.
	ObserverGroups []string `yaml:"observer_groups"`
	// SessionLifetime is how long a sign-in on the pages lasts, SessionIdle how long
	// one after which nobody asks for anything, FreshSignIn how long it counts as
	// fresh.
	SessionLifetime time.Duration `yaml:"session_lifetime"`
	SessionIdle     time.Duration `yaml:"session_idle"`
	FreshSignIn     time.Duration `yaml:"fresh_sign_in"`
	// ArgumentBytes is the most that edited arguments may take.
	ArgumentBytes config.Size `yaml:"argument_bytes"`
	// DrainDelay is how long readiness is red before the approver stops to take
	// connections; DrainGrace how long requests under way may take after that.
	DrainDelay time.Duration `yaml:"drain_delay"`
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// ApproverDefaults returns the configuration of an approver that was told nothing.
func ApproverDefaults() Approver {
	return Approver{
		Listen: "127.0.0.1:8081", OIDC: OIDCDefaults(), Slack: SlackDefaults(), AuthorizationServer: AuthorizationServerDefaults(),
		SessionLifetime: 8 * time.Hour, SessionIdle: time.Hour, FreshSignIn: 5 * time.Minute, ArgumentBytes: 1 << 20,
		DrainDelay: time.Second, DrainGrace: 10 * time.Second,
	}
}

// Validate returns the settings that cannot be honoured; see package config.
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
			faults.Addf(fmt.Sprintf("keys[%d].limits", i), "count at front doors only. Omit them.")
		}
		if k.Certificate != "" {
			faults.Addf(fmt.Sprintf("keys[%d].certificate", i), "counts at front doors only; give the key a hash.")
		}
		if k.Role != "" {
			faults.Addf(fmt.Sprintf("keys[%d].role", i), "counts at front doors only; who may approve is decided by groups. Omit it.")
		}
	}
	faults = append(faults, checkKeys(c.Keys)...)
	faults = append(faults, listen.Validate(c.CertFile, c.KeyFile)...)
	public, ok := c.Public()
	if !ok {
		faults.Addf("public_url", "must be a URL such as https://approve.example.com, without a path.")
	} else if public != nil && !guarded && !config.Loopback(net.JoinHostPort(public.Hostname(), "0")) {
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

// checkRedirect requires that sign-in redirects to the host name of the pages: the sign-in
// cookie belongs to that name.
func (c Approver) checkRedirect(public *url.URL, faults *config.Collector) {
	back, err := url.Parse(c.OIDC.RedirectURL)
	switch {
	case c.OIDC.RedirectURL == "" && public == nil && !config.Loopback(c.Listen):
		faults.Addf("public_url", "is missing: the provider redirects people to it. Set the URL at which browsers reach the approver.")
	case c.OIDC.RedirectURL != "" && err == nil && public != nil && (back.Scheme != public.Scheme || !strings.EqualFold(back.Host, public.Host)):
		faults.Addf("oidc.redirect_url", "has a different host than public_url; omit it, it is derived from public_url.")
	}
}

// Public is where people's browsers reach the pages, nil where public_url does not say.
// It is false for what is no such address.
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
