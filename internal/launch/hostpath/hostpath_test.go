package hostpath

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSymlinkIsCheckedByItsTarget(t *testing.T) {
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
	for _, good := range []string{"/home/me/papers", "/Users/me/papers", "/srv/home"} {
		if At(good).Sensitive {
			t.Errorf("%s is refused", good)
		}
	}
	for _, bad := range []string{"/", "/var", "/home", "/home/me", "/home/me/", "/Users/me", "/home/me/.ssh/id", "/srv/../etc", "/usr/share"} {
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

func TestHostPathIsCheckedAgainAtEachMount(t *testing.T) {
	dir := t.TempDir()
	one, two, link := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "link")
	for _, d := range []string{one, two} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	leads := func(name, to string) {
		t.Helper()
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	leads(link, one)
	linked, _ := Keep(link, false)
	accepted, _ := Keep(link, true)
	folder, look := Keep(one, false)
	if got, err := folder.Now(); err != nil || got != one || look.Real != one {
		t.Errorf("a folder leads to %s, %v", got, err)
	}
	leads(link, two)
	if got, err := linked.Now(); err != nil || got != two {
		t.Errorf("a link that was moved leads to %s, %v", got, err)
	}
	leads(link, "/etc")
	if got, err := linked.Now(); err == nil {
		t.Errorf("a link may lead to %s", got)
	}
	if got, err := accepted.Now(); err != nil || got != "/etc" {
		t.Errorf("what was accepted leads to %s, %v", got, err)
	}
	leads(one, two)
	if got, err := folder.Now(); err == nil {
		t.Errorf("a folder that was replaced by a link leads to %s", got)
	}
}
