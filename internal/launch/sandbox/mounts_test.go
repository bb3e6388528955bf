package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVolumeReplacedByASymlinkIsNotMounted(t *testing.T) {
	e := engine(t)
	dir := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := spec(t, e, func(c *Config) { c.Volumes = []string{dir + ":/data:ro"} })
	start(t, e, s)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir); err != nil {
		t.Fatal(err)
	}
	c, err := e.Start(t.Context(), s)
	if err == nil {
		c.Stop(0)
		t.Fatal("a container has what the link leads to")
	}
	if !strings.Contains(err.Error(), dir+" was replaced with a link to /etc") {
		t.Errorf("the error is: %v", err)
	}
}
