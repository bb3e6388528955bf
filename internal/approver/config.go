package approver

import (
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
)

// Config is the section approver of the configuration.
type Config struct {
	// Listen is the address of the pages and the API.
	Listen string `yaml:"listen"`
	// PublicURL is where people's browsers reach the pages, for links and for the
	// session cookie; empty means the address that is listened on.
	PublicURL string `yaml:"public_url"`
	// Keys are the API keys of those who decide, or look; without any the approver
	// serves loopback only, and everybody is the principal "local".
	Keys []authn.Key `yaml:"keys"`
	// LocalGroups are the groups of the principal "local".
	LocalGroups []string `yaml:"local_groups"`
	// ObserverGroups see every approval; all others see what they may decide and
	// what they asked for.
	ObserverGroups []string `yaml:"observer_groups"`
	// SessionLifetime is how long a sign-in on the pages lasts, FreshSignIn how
	// long it counts as fresh.
	SessionLifetime time.Duration `yaml:"session_lifetime"`
	FreshSignIn     time.Duration `yaml:"fresh_sign_in"`
	// ArgumentBytes is the most that edited arguments may take.
	ArgumentBytes config.Size `yaml:"argument_bytes"`
	// DrainDelay is how long readiness is red before the approver stops to take
	// connections; DrainGrace how long requests under way may take after that.
	DrainDelay time.Duration `yaml:"drain_delay"`
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// Defaults returns the configuration of an approver that was told nothing.
func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:8081", SessionLifetime: 8 * time.Hour, FreshSignIn: 5 * time.Minute, ArgumentBytes: 1 << 20,
		DrainDelay: time.Second, DrainGrace: 10 * time.Second,
	}
}

// Validate says what of the section cannot be honoured; see package config.
func (c Config) Validate() []config.Fault {
	var faults []config.Fault
	fault := func(key, format string, args ...any) {
		faults = append(faults, config.Faultf(key, format, args...))
	}
	if len(c.Keys) == 0 && !config.Loopback(c.Listen) {
		fault("listen", "is %s, which others can reach, and there are no API keys: add approver.keys (callyard keys new makes one), or listen on 127.0.0.1.", c.Listen)
	}
	if len(c.Keys) > 0 && len(c.LocalGroups) > 0 {
		fault("local_groups", "are for an approver without API keys; give each of the keys its groups and leave this out.")
	}
	public, ok := publicURL(c.PublicURL)
	if !ok {
		fault("public_url", "must be an address like https://approve.example.com, without a path.")
	} else if public != nil && len(c.Keys) == 0 && !config.Loopback(net.JoinHostPort(public.Hostname(), "0")) {
		fault("public_url", "lets others reach an approver without API keys: add approver.keys, or leave public_url out.")
	}
	for _, d := range []struct {
		key string
		ok  bool
	}{
		{"session_lifetime", c.SessionLifetime > 0}, {"fresh_sign_in", c.FreshSignIn > 0}, {"argument_bytes", c.ArgumentBytes > 0},
	} {
		if !d.ok {
			fault(d.key, "must be more than zero; leave the key out for the default.")
		}
	}
	return faults
}

// publicURL is nil where there is none.
func publicURL(text string) (*url.URL, bool) {
	if text == "" {
		return nil, true
	}
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "" || u.Path != "" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, false
	}
	u.Host = strings.ToLower(u.Host)
	return u, true
}
