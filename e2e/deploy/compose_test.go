package deploy_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	engine "github.com/callyard/callyard/e2e/fabric"
)

// composeFile is the part of a compose file that the tests read.
type composeFile = engine.Compose

func composed(t testing.TB, path string) composeFile {
	t.Helper()
	c, err := engine.ReadCompose(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var composeFiles = []string{"compose.yaml", "compose.cluster.yaml"}

// reach lists the networks of each role. Workers do not reach Redis, and callers do not reach
// NATS and Redis.
var reach = map[string][]string{
	"nats": {"bus"}, "init": {"bus"}, "redis": {"store"}, "sentinel": {"store"}, "worker": {"bus", "tools"},
	"frontdoor": {"bus", "store", "front"}, "approver": {"bus", "store", "front"},
}

// restartOf returns the restart policy of a service: init and nats-cli run once.
func restartOf(name string) string {
	if name == "init" || name == "nats-cli" {
		return "no"
	}
	return "unless-stopped"
}

func TestEveryServiceOfTheComposeFilesIsHardened(t *testing.T) {
	for _, path := range composeFiles {
		c := composed(t, path)
		if len(c.Services) < 8 {
			t.Fatalf("%s: only %d services", path, len(c.Services))
		}
		for name, s := range c.Services {
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.Security, "no-new-privileges:true") || s.Restart != restartOf(name) || s.Privileged || s.NetworkMode != "" {
				t.Errorf("%s: %s is not hardened: %+v", path, name, s)
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s: %s is published to everybody: %s", path, name, port)
				}
			}
			if (s.Health == nil) != (restartOf(name) == "no") {
				t.Errorf("%s: %s has the health check %v", path, name, s.Health)
			}
			role, _, _ := strings.Cut(name, "-")
			// The networks of each role.
			if want := engine.On(reach[role]...); !slices.EqualFunc(s.Networks, want, func(a, b engine.Attachment) bool { return a.Name == b.Name }) {
				t.Errorf("%s: %s is on the networks %v, want %v", path, name, s.Networks, want)
			}
			for _, v := range s.Volumes {
				if strings.Contains(v, "docker.sock") {
					t.Errorf("%s: %s holds the engine of its host", path, name)
				}
			}
		}
		if !c.Networks["bus"].Internal || !c.Networks["store"].Internal {
			t.Errorf("%s: the bus and the store are to be internal", path)
		}
	}
}

func TestNoServiceOfTheComposeFilesGetsTheSecretsOfAnother(t *testing.T) {
	may := map[string][]string{
		"frontdoor": {"NATS_FRONTDOOR_PASSWORD", "frontdoor.pem"},
		"approver":  {"NATS_APPROVER_PASSWORD", "approver.pem"},
		"worker":    {"NATS_WORKER_PASSWORD", "frontdoor.pub.pem", "approver.pub.pem"},
		"init":      {"NATS_OPERATOR_PASSWORD"},
	}
	secret := regexp.MustCompile(`NATS_[A-Z]+_PASSWORD|[a-z]+(?:\.pub)?\.pem`)
	for _, path := range composeFiles {
		for name, s := range composed(t, path).Services {
			role, _, _ := strings.Cut(name, "-")
			if may[role] == nil {
				continue
			}
			seen := map[string]bool{}
			for _, text := range append(slices.Collect(valuesOf(s.Environment)), s.Volumes...) {
				text, _, _ = strings.Cut(text, ":/")
				for _, found := range secret.FindAllString(text, -1) {
					if seen[found] = true; !slices.Contains(may[role], found) {
						t.Errorf("%s: %s gets %s", path, name, found)
					}
				}
			}
			for _, want := range may[role] {
				if !seen[want] {
					t.Errorf("%s: %s does not get %s", path, name, want)
				}
			}
		}
	}
}

func valuesOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// Engines assign these to networks without a subnet, one after the other, so it depends on all
// networks ever created which of them is taken.
func TestComposeSubnetsAvoidDockerEngineDefaults(t *testing.T) {
	var given []netip.Prefix
	for second := 17; second <= 31; second++ {
		given = append(given, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(second)}), 16))
	}
	given = append(given, netip.MustParsePrefix("192.168.0.0/16"))
	named := 0
	for _, path := range composeFiles {
		for name, n := range composed(t, path).Networks {
			for _, config := range n.IPAM.Config {
				named++
				subnet, err := netip.ParsePrefix(config.Subnet)
				if err != nil || !subnet.Addr().IsPrivate() || slices.ContainsFunc(given, subnet.Overlaps) {
					t.Errorf("%s: the network %s has the subnet %q: engines may have given it away (%v)", path, name, config.Subnet, err)
				}
			}
		}
	}
	if named == 0 {
		t.Fatal("no network names a subnet: the test reads nothing")
	}
}

func TestComposeFilesReferToExistingVariablesAndImages(t *testing.T) {
	script := read(t, "secrets.sh")
	variable := regexp.MustCompile(`\$\{([A-Z_]+)`)
	images := read(t, "images/build.sh")
	for _, path := range composeFiles {
		for _, m := range variable.FindAllStringSubmatch(read(t, path), -1) {
			user := strings.TrimSuffix(strings.TrimPrefix(m[1], "NATS_"), "_PASSWORD")
			if !strings.Contains(script, m[1]+"=") && !strings.Contains(script, " "+user) {
				t.Errorf("%s: secrets.sh does not make %s", path, m[1])
			}
		}
		for name, s := range composed(t, path).Services {
			local, ours := strings.CutPrefix(s.Image, "callyard/")
			local, tagged := strings.CutSuffix(local, ":local")
			if ours != tagged || !strings.Contains(images, local) {
				t.Errorf("%s: build.sh does not make the image %s of %s", path, s.Image, name)
			}
			for _, v := range s.Volumes {
				from, _, _ := strings.Cut(v, ":")
				if !strings.HasPrefix(from, "./") || strings.HasPrefix(from, "./secrets/") || from == "./backup" {
					continue
				}
				if _, err := os.Stat(filepath.FromSlash(from)); err != nil {
					t.Errorf("%s: %s mounts %s: %v", path, name, from, err)
				}
			}
		}
	}
}
