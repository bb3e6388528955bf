package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/config"
)

// exampleSecrets creates the secrets that the examples name.
func exampleSecrets(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"frontdoor", "approver"} {
		if out, err := exec.Command(built(t, "callyard"), "keys", "warrant", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("keys warrant: %v\n%s", err, out)
		}
	}
	ca, cert, key := certificates(t)
	for name, from := range map[string]string{"ca.pem": ca, "tls.pem": cert, "tls-key.pem": key} {
		write(t, filepath.Join(dir, name), read(t, from))
	}
	write(t, filepath.Join(dir, "redis-password"), "secret\n")
	return dir
}

func TestEveryExampleConfigPassesCheck(t *testing.T) {
	examples, err := filepath.Abs("examples")
	if err != nil {
		t.Fatal(err)
	}
	env := environment(
		"CONFIG_DIR="+examples, "SECRETS_DIR="+exampleSecrets(t), "DATA_DIR="+t.TempDir(),
		"AGENT_KEY_HASH="+hash(agentKey), "ANN_KEY_HASH="+hash(annKey), "DEMO_SERVER="+built(t, "demo"),
	)
	check := func(t *testing.T, args ...string) string {
		t.Helper()
		cmd := exec.Command(built(t, "callyard"), append([]string{"config", "check"}, args...)...)
		cmd.Env, cmd.Dir = env, ".."
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "The configuration is valid") {
			t.Errorf("config check %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	files, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			path := filepath.Join(examples, f.Name())
			switch {
			case f.Name() == "policy.yaml":
				if out := check(t, "--policy", path, "--config", filepath.Join(examples, "up.yaml")); strings.Contains(out, "# policy:") {
					t.Errorf("there are doubts about it:\n%s", out)
				}
			case f.Name() == "rest.json":
				// Checking it requires its service to run, which e2e tests.
				if found, err := config.LoadServers(path, nil); err != nil || len(found.Entries) != 1 {
					t.Errorf("%v: %+v", err, found)
				}
			case filepath.Ext(path) == ".yaml":
				check(t, "--config", path)
			case filepath.Ext(path) == ".json":
				check(t, "--servers", path)
			default:
				t.Errorf("nothing is known of this example: give it a case here")
			}
		})
	}
}
