package deploy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// chartConfigs writes the configurations of the rendered chart in testdata of package
// checks into a folder for each role, with local addresses and paths.
func chartConfigs(t testing.TB, rendered string, around fabricValues) string {
	t.Helper()
	folder, found := t.TempDir(), 0
	d := yaml.NewDecoder(strings.NewReader(read(t, rendered)))
	for {
		var o struct {
			Kind     string
			Metadata struct{ Labels map[string]string }
			Data     map[string]string
		}
		if err := d.Decode(&o); err != nil {
			break
		}
		role := o.Metadata.Labels["app.kubernetes.io/component"]
		if o.Kind != "ConfigMap" || o.Data[role+".yaml"] == "" {
			continue
		}
		found++
		for name, text := range o.Data {
			text = strings.NewReplacer(
				"/etc/callyard/", filepath.Join(folder, role+"-"), "/run/secrets/warrants/key.pem", filepath.Join(around.secrets, role+".pem"), "/run/secrets/warrants/", around.secrets+"/", "/run/secrets/", around.secrets+"/", "https://approve.example.com", around.approver,
				"nats://nats:4222", around.nats, "redis://redis:6379/0", around.redis, "replicas: 3", "replicas: 1", "/demo\"", built(t, "demo")+"\"",
				"sha256:"+strings.Repeat("0", 64), hash(agentKey), "sha256:"+strings.Repeat("1", 64), hash(annKey),
			).Replace(text)
			if name != role+".yaml" {
				name = role + "-" + name
			}
			write(t, filepath.Join(folder, name), text)
		}
	}
	if found != 3 {
		t.Fatalf("the chart renders %d configurations of roles", found)
	}
	return folder
}

func TestFabricRunsWithConfigsOfTheChart(t *testing.T) {
	f := openConfigured(t, func(around fabricValues) string { return chartConfigs(t, "checks/testdata/rendered.yaml", around) }, natsFile(t, "nats-server.conf"), "nats", nil)
	f.works(t)
	f.stop(t)
	f.clean(t)
}
