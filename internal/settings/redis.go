package settings

import "github.com/callyard/callyard/internal/config"

// Redis is the section redis: where confirmation tokens are kept, limits are shared
// and results are kept. Without it tokens are kept in JetStream, each front door
// takes its share of the limits and keeps results of its own.
type Redis struct {
	URL string `yaml:"url"` // redis://host:6379/0, rediss://…, unix:///path
	// Addresses with Master are those of Sentinels, with Cluster those of a cluster.
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

// Validate returns the settings that cannot be honoured; see package config.
func (r Redis) Validate() []config.Fault {
	if r.URL != "" && len(r.Addresses) > 0 {
		return []config.Fault{config.Faultf("addresses", "and url are both set; keep one.")}
	}
	return nil
}
