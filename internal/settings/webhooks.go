package settings

import "github.com/callyard/callyard/internal/config"

// Webhooks is the section webhooks of the configuration: who is told over HTTP how
// a call or batch with a callback_url ended.
type Webhooks struct {
	// SecretsFile holds the secrets that sign deliveries, one whsec_… on each line;
	// to rotate, add the new one first. Without it callback_url is refused.
	SecretsFile string `yaml:"secrets_file"`
	// AllowPrivate lets receivers be in private networks and on loopback.
	AllowPrivate bool `yaml:"allow_private"`
	// AllowedHosts are receivers that the operator vouches for, whatever address
	// they have: "host", "host:port" or "*.domain".
	AllowedHosts []string `yaml:"allowed_hosts"`
}

// Notify is the section approver.notify of the configuration.
type Notify struct {
	// URLs are told of approval events, each of all of them. Empty: nobody is.
	URLs []string `yaml:"urls"`
	// Events are the types that are told; empty: all.
	Events []string `yaml:"events"`
	// SecretsFile holds the secrets that sign, one whsec_… on each line; to rotate,
	// add the new one first.
	SecretsFile string `yaml:"secrets_file"`
	// AllowPrivate lets receivers be in private networks and on loopback.
	AllowPrivate bool `yaml:"allow_private"`
	// AllowedHosts are receivers that the operator vouches for, whatever address
	// they have: "host", "host:port" or "*.domain".
	AllowedHosts []string `yaml:"allowed_hosts"`
}

// Configured says whether anybody is told.
func (c Notify) Configured() bool { return len(c.URLs) > 0 }

// Validate returns the settings that cannot be honoured; see package config.
func (c Notify) Validate() []config.Fault {
	if !c.Configured() && (len(c.Events) > 0 || c.SecretsFile != "" || c.AllowPrivate || len(c.AllowedHosts) > 0) {
		return []config.Fault{config.Faultf("urls", "is missing: set the URLs to notify, or omit the section.")}
	}
	return nil
}
