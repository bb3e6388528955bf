package setup

import (
	"testing"

	"github.com/callyard/callyard/internal/settings"
)

func TestOnlyWorkersOfOneClusterShareASandboxScope(t *testing.T) {
	scope := func(change func(*Config)) string {
		c := Config{File: settings.Defaults()}
		c.NATS.URL = "nats://a.example:4222,nats://b.example:4222"
		change(&c)
		return c.SandboxScope()
	}
	same := scope(func(*Config) {})
	if got := scope(func(c *Config) { c.NATS.URL = "nats://b.example:4222,nats://a.example:4222" }); got != same {
		t.Errorf("the order of the addresses matters: %s and %s", same, got)
	}
	seen := map[string]string{same: "the cluster"}
	for name, change := range map[string]func(*Config){
		"another cluster":        func(c *Config) { c.NATS.URL = "nats://c.example:4222" },
		"another account":        func(c *Config) { c.NATS.User = "other" },
		"other credentials":      func(c *Config) { c.NATS.CredentialsFile = "/x.creds" },
		"all in one":             func(c *Config) { c.whole = true },
		"all in one, other data": func(c *Config) { c.whole, c.Data = true, "elsewhere" },
	} {
		got := scope(change)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the scope of %s", name, other)
		}
		seen[got] = name
	}
	for address, want := range map[string]bool{"nats://127.0.0.1:4222": true, "nats://localhost": true, "nats://[::1]:4222": true, "nats://n.example": false, "n": true} {
		if isOurs(address) != want {
			t.Errorf("%s: %t", address, !want)
		}
	}
}
