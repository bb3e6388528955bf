package settings

import (
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/telemetry"
)

// NATS is the section nats.
type NATS struct {
	URL             string           `yaml:"url"`
	CredentialsFile string           `yaml:"credentials_file"`
	NKeySeedFile    string           `yaml:"nkey_seed_file"`
	User            string           `yaml:"user"`
	Password        telemetry.Secret `yaml:"password"`
	Token           telemetry.Secret `yaml:"token"`
	CAFile          string           `yaml:"ca_file"`
	CertFile        string           `yaml:"cert_file"`
	KeyFile         string           `yaml:"key_file"`
	// Replicas is the number of servers of a cluster that keep each table (1 to 5).
	Replicas int `yaml:"replicas"`
	// Listen opens the embedded server of `callyard up` to other local processes. If empty, no other
	// process can connect.
	Listen string `yaml:"listen"`
}

// Validate returns the settings that are invalid; see package config.
func (n NATS) Validate() []config.Fault {
	var faults config.Collector
	if n.Replicas < 1 || n.Replicas > 5 {
		faults.Addf("replicas", "must be from 1 to 5.")
	}
	for address := range strings.SplitSeq(n.URL, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		if u, err := url.Parse(address); err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			// The value may hold a password, so it is not repeated.
			faults.Addf("url", "has an entry that is not a NATS URL; write nats://host:4222, or tls://, ws:// and wss://, separated by commas.")
			break
		}
	}
	if n.Listen != "" {
		faults.Address("listen", n.Listen)
	}
	return faults
}
