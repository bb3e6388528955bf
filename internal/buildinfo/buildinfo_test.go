package buildinfo

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

const revision = "63898f2a1b2c3d4e5f60718293a4b5c6d7e8f901"

func recorded(version string, settings ...string) *debug.BuildInfo {
	b := &debug.BuildInfo{Main: debug.Module{Version: version}}
	for i := 0; i < len(settings); i += 2 {
		b.Settings = append(b.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
	}
	return b
}

func TestLinkerValuesOverrideBuildInfo(t *testing.T) {
	const day = "2026-11-25T03:26:00Z"
	stamps := []string{"vcs.revision", revision, "vcs.time", day, "vcs.modified", "false"}
	for name, c := range map[string]struct {
		linked Info
		build  *debug.BuildInfo
		want   Info
	}{
		"a release":                     {Info{"v1.2.3", "abc", "2026-01-01T00:00:00Z"}, recorded("v0.9.0", stamps...), Info{"v1.2.3", "abc", "2026-01-01T00:00:00Z"}},
		"only a version from a linker":  {Info{Version: "v1.2.3"}, recorded("(devel)", stamps...), Info{"v1.2.3", revision, day}},
		"a build from a repository":     {Info{}, recorded("v0.1.1-0.20261125032600-63898f2a1b2c", stamps...), Info{"v0.1.1-0.20261125032600-63898f2a1b2c", revision, day}},
		"a build without a version":     {Info{}, recorded("(devel)", stamps...), Info{"dev-63898f2a1b2c", revision, day}},
		"a tree with changes":           {Info{}, recorded("", "vcs.revision", revision, "vcs.modified", "true"), Info{"dev-63898f2a1b2c", revision + "-dirty", ""}},
		"go install of a version":       {Info{}, recorded("v1.2.3"), Info{"v1.2.3", "", ""}},
		"a build outside a repository":  {Info{}, recorded("(devel)"), Info{Version: "dev"}},
		"a program without build infos": {Info{}, nil, Info{Version: "dev"}},
	} {
		if got := merge(c.linked, c.build); got != c.want {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}

func TestVersionLineOmitsUnknownValues(t *testing.T) {
	about := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for info, want := range map[Info]string{
		{"v1.2.3", revision + "-dirty", "2026-11-25T03:26:00Z"}: "v1.2.3 (commit 63898f2a1b2c-dirty, 2026-11-25T03:26:00Z, " + about,
		{Version: "dev"}:                   "dev (" + about,
		{Version: "v1.2.3", Commit: "abc"}: "v1.2.3 (commit abc, " + about,
	} {
		if got := info.String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestLinkerSetsTheVariables builds a program like a release does, because the linker silently
// ignores the name of a missing variable.
func TestLinkerSetsTheVariables(t *testing.T) {
	folder := filepath.Join(".", "testdata", "show")
	program := filepath.Join(t.TempDir(), "show")
	const here = "github.com/callyard/callyard/internal/buildinfo."
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X "+here+"version=v9.8.7 -X "+here+"commit=abcdef -X "+here+"date=2026-01-02T03:04:05Z", "-o", program, "./"+folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil || !strings.HasPrefix(string(out), "v9.8.7 (commit abcdef, 2026-01-02T03:04:05Z, go") {
		t.Errorf("%v %s", err, out)
	}
}
