package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/urls"
)

// SandboxScope names the fabric whose workers can reach each other. A worker removes containers that
// a dead worker of the same scope left on a container engine. Two names for one fabric only leave
// containers behind, but one name for two fabrics would remove running containers. So the name
// includes everything that can tell two fabrics apart.
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

// isOurs reports whether the address refers to a different server on each machine.
func isOurs(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err != nil || u.Hostname() == "" || urls.Loopback(u.Hostname())
}
