package hostpath

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALinkIsJudgedByWhereItLeads(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	if got := At(link); !got.Sensitive || got.Socket {
		t.Errorf("a link to /etc is %+v", got)
	}
	if got := At("/srv/data"); got.Sensitive || got.Socket || got.Real != "/srv/data" {
		t.Errorf("/srv/data is %+v", got)
	}
	for _, bad := range []string{"/", "/var", "/home/me/.ssh/id", "/srv/../etc", "/usr/share"} {
		if !At(bad).Sensitive {
			t.Errorf("%s passes", bad)
		}
	}
	for _, bad := range []string{"/srv/podman.sock", "/dev/null"} {
		if !At(bad).Socket {
			t.Errorf("%s passes for a file", bad)
		}
	}
}
