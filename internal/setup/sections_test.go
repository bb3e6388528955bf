package setup_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/approverrole"
	"github.com/callyard/callyard/internal/setup/frontdoorrole"
	"github.com/callyard/callyard/internal/setup/workerrole"
)

func TestEachRoleChecksItsOwnSections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "callyard.yaml")
	if err := os.WriteFile(file, []byte(`redis: {url: "redis://:word@host"}
webhooks: {secrets_file: /nowhere}
front_door: {origins: ["*"]}
approver: {notify: {urls: ["ftp://x"], events: [nothing], secrets_file: /nowhere}}
worker: {api_servers: true}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CALLYARD_CONFIG", file)
	door := []string{file + ":1:14: redis.url: the address of Redis contains a password", file + ":2:26: webhooks.secrets_file: cannot be read", file + ":3:24: front_door.origins[0]: "}
	people := []string{file + ":1:14: redis.url: ", file + ":4:28: approver.notify.urls[0]: ", file + ":4:49: approver.notify.events[0]: must be one of", file + ":4:73: approver.notify.secrets_file: cannot be read"}
	var d frontdoorrole.Setup
	var a approverrole.Setup
	var w workerrole.Setup
	for name, c := range map[string]struct {
		roles []setup.RoleSetup
		want  []string
	}{
		"front door": {[]setup.RoleSetup{d.Role()}, door}, "approver": {[]setup.RoleSetup{a.Role()}, people}, "worker": {[]setup.RoleSetup{w.Role()}, nil},
		"all": {[]setup.RoleSetup{d.Role(), a.Role(), w.Role()}, append(door, people[1:]...)},
	} {
		var got []string
		var faults *config.Faults
		if _, err := setup.Prepare(pflag.NewFlagSet("x", pflag.ContinueOnError), io.Discard, nil, c.roles...); errors.As(err, &faults) {
			for _, f := range faults.List {
				got = append(got, f.String())
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for _, want := range c.want {
			if all := strings.Join(got, "\n"); !strings.Contains(all, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, all)
			}
		}
	}
}

func TestAWorkerWithoutItsFileIsNotAskedForServers(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("worker: {servers: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(dir, "missing.yaml"), broken} {
		t.Setenv("CALLYARD_CONFIG", file)
		var w workerrole.Setup
		_, err := setup.Prepare(pflag.NewFlagSet("x", pflag.ContinueOnError), io.Discard, nil, w.Role())
		faults, ok := errors.AsType[*config.Faults](err)
		if !ok || len(faults.List) != 1 || !strings.HasPrefix(faults.List[0].String(), file+":") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
