package settings

import "github.com/callyard/callyard/internal/config"

// Webhooks is the section webhooks of the configuration. It configures the HTTP notifications of
// the outcome of calls and batches with a callback_url.
type Webhooks struct {
	// SecretsFile holds the secrets that sign deliveries, one whsec_… on each line. To rotate, add
	// the new one first. Without the file, callback_url is refused.
	SecretsFile string `yaml:"secrets_file"`
	// AllowPrivate allows receivers in private networks and on loopback.
	AllowPrivate bool `yaml:"allow_private"`
	// AllowedHosts are trusted receivers, whatever their address: "host", "host:port" or "*.domain".
	AllowedHosts []string `yaml:"allowed_hosts"`
}

// Notify is the section approver.notify of the configuration.
type Notify struct {
	// URLs receive approval events. Each URL receives all of them.
	URLs []string `yaml:"urls"`
	// Events are the types of events that are sent. If empty, all are sent.
	Events []string `yaml:"events"`
	// SecretsFile holds the secrets that sign deliveries, one whsec_… on each line. To rotate, add
	// the new one first.
	SecretsFile string `yaml:"secrets_file"`
	// AllowPrivate allows receivers in private networks and on loopback.
	AllowPrivate bool `yaml:"allow_private"`
	// AllowedHosts are trusted receivers, whatever their address: "host", "host:port" or "*.domain".
	AllowedHosts []string `yaml:"allowed_hosts"`
	// AdminGroups are the groups whose members list the deliveries and send them again.
	AdminGroups []string `yaml:"admin_groups"`
}

// Configured reports whether there is a receiver.
func (c Notify) Configured() bool { return len(c.URLs) > 0 }

// Validate returns the settings that are invalid; see package config.
func (c Notify) Validate() []config.Fault {
	if !c.Configured() && (len(c.Events) > 0 || c.SecretsFile != "" || c.AllowPrivate || len(c.AllowedHosts) > 0 || len(c.AdminGroups) > 0) {
		return []config.Fault{config.Faultf("urls", "is missing: set the URLs to notify, or omit the section.")}
	}
	return nil
}
