package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SandboxScope names the fabric whose workers hear each other, and nobody else: they
// remove what a dead one of them left on a container engine. Two names for one
// fabric cost only that; one name for two would cost running containers, so
// everything that could keep two apart goes in.
func (c *Config) SandboxScope() string {
	var parts []string
	host, _ := os.Hostname()
	if c.whole {
		data, err := filepath.Abs(c.Data)
		if err != nil {
			data = c.Data
		}
		parts = []string{"up", host, data}
	} else {
		n := &c.NATS
		parts = []string{"nats", n.User, n.CredentialsFile, n.NKeySeedFile}
		addresses := strings.Split(n.URL, ",")
		slices.Sort(addresses)
		for _, address := range addresses {
			parts = append(parts, address)
			if isOurs(address) {
				parts = append(parts, host)
			}
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "fabric-" + hex.EncodeToString(sum[:8])
}

// isOurs says whether the address means another server on each machine.
func isOurs(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
