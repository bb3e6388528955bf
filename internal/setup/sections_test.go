package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestWhatOnlyARoleCanTellOfItsSectionsIsCheckedThere(t *testing.T) {
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
	door := []string{file + ":1:14: redis.url: the address of Redis holds a password", file + ":2:26: webhooks.secrets_file: cannot be read", file + ":3:24: front_door.origins[0]: "}
	people := []string{file + ":1:14: redis.url: ", file + ":4:28: approver.notify.urls[0]: ", file + ":4:49: approver.notify.events[0]: is none of", file + ":4:73: approver.notify.secrets_file: cannot be read"}
	for name, c := range map[string]struct {
		role Role
		want []string
	}{"front door": {FrontDoor, door}, "approver": {Approver, people}, "worker": {Worker, nil}, "all": {All, append(door, people[1:]...)}} {
		_, faults := inspect(sources{pflag.NewFlagSet("x", pflag.ContinueOnError), c.role, nil})
		var got []string
		for _, f := range faults {
			got = append(got, f.String())
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
