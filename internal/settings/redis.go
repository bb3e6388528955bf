package settings

import "github.com/callyard/callyard/internal/config"

// Redis is the section redis. Redis stores confirmation tokens, shared limits and cached results.
// Without it, tokens are stored in JetStream, and each front door enforces its share of the limits
// and has a cache of its own.
type Redis struct {
	URL string `yaml:"url"` // redis://host:6379/0, rediss://…, unix:///path
	// Addresses are Sentinels if Master is set, or cluster nodes if Cluster is set.
	Addresses            []string `yaml:"addresses"`
	Master               string   `yaml:"master"`
	Cluster              bool     `yaml:"cluster"`
	Username             string   `yaml:"username"`
	PasswordFile         string   `yaml:"password_file"`
	SentinelUsername     string   `yaml:"sentinel_username"`
	SentinelPasswordFile string   `yaml:"sentinel_password_file"`
	TLS                  bool     `yaml:"tls"`
	CAFile               string   `yaml:"ca_file"`
	CertFile             string   `yaml:"cert_file"`
	KeyFile              string   `yaml:"key_file"`
}

// Validate returns the settings that are invalid; see package config.
func (r Redis) Validate() []config.Fault {
	if r.URL != "" && len(r.Addresses) > 0 {
		return []config.Fault{config.Faultf("addresses", "and url are both set; keep one.")}
	}
	return nil
}
