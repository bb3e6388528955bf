package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToolsAreSearchedAndChecked(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"GET /tools/search?limit=10&q=read+klingon":          jsonAnswer(`{"tools":[{"server":"files","tool":"read","signature":"read(path: string)","summary":"Reads a file.","risk":"low","decision":"hold"}],"unmatched":["klingon"],"searched":3}`),
		"GET /preflight?tool=files%2Fread&tool=files%2Fgone": jsonAnswer(`{"ready":false,"tools":[{"server":"files","tool":"read","ready":true,"state":"ready","risk":"low","decision":"run"},{"server":"files","tool":"gone","ready":false,"state":"missing","reason":"There is none."}]}`),
	})
	none := openDoor(t, map[string]answer{
		"GET /tools/search?limit=10&q=zebra": jsonAnswer(`{"tools":[],"unmatched":["zebra"],"searched":3}`),
		"GET /preflight?tool=files%2Fread":   jsonAnswer(`{"ready":true,"tools":[{"server":"files","tool":"read","ready":true,"state":"ready"}]}`),
	})
	file := filepath.Join(t.TempDir(), "tools.txt")
	if err := os.WriteFile(file, []byte("# needed\nfiles/read # always\n\nfiles/gone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url   string
		args  []string
		stdin string
		code  int
		out   string
		err   string
	}{
		{d.URL, []string{"tools", "search", "read", "klingon"}, "", exitOK, "read(path: string)", "klingon"},
		{none.URL, []string{"tools", "search", "zebra"}, "", exitToolError, "", "No tool fits"},
		{d.URL, []string{"check", "--require", file}, "", exitToolError, "missing", "1 of 2 tools are not ready"},
		{none.URL, []string{"check", "--require", "-"}, "files/read\n", exitOK, "ready", ""},
		{none.URL, []string{"check", "--require", "-", "--pinned"}, "files/read\n", exitToolError, "unpinned", "1 of 1"},
		{none.URL, []string{"check", "--require", "-", "--json"}, "files/read\n", exitOK, `"ready":`, ""},
		{none.URL, []string{"check"}, "", exitUsage, "", "--require FILE"},
		{none.URL, []string{"check", "--require", "-"}, "files\n", exitUsage, "", "Line 1"},
		{none.URL, []string{"check", "--require", "-"}, "# none\n", exitUsage, "", "names no tools"},
		{none.URL, []string{"check", "--require", filepath.Join(t.TempDir(), "gone")}, "", exitUsage, "", "cannot be read"},
	} {
		stdout, stderr, code := typed(t, c.stdin, append(c.args, "--url", c.url)...)
		if code != c.code || !strings.Contains(stdout, c.out) || !strings.Contains(stderr, c.err) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}
