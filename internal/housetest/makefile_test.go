package housetest

import (
	"os/exec"
	"strings"
	"testing"
)

// makes returns the output of make. Pass -n so that make runs no command.
func makes(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("make", append([]string{"--no-print-directory", "-C", moduleRoot}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("make %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestMakeBuildSharesTheBuildCacheAndStripsSymbols(t *testing.T) {
	build := makes(t, "-n", "build")
	if !strings.Contains(build, "-ldflags='-s -w'") {
		t.Errorf("make build does not strip symbols with -ldflags='-s -w': %s", build)
	}
	// With compile flags other than those of go run and go test, everything would be compiled again.
	for _, flag := range []string{"-trimpath", "-gcflags", "-race", "-tags"} {
		if strings.Contains(build, flag) {
			t.Errorf("make build must not use %s, which would compile everything again: %s", flag, build)
		}
	}
}

func TestMakeUnitNeedsNoDockerEngineOrRaceDetector(t *testing.T) {
	unit := makes(t, "-n", "unit")
	if !strings.Contains(unit, "grep -vE '/internal/launch/(sandbox|bwrap)$'") {
		t.Errorf("make unit does not exclude the packages that start containers: %s", unit)
	}
	if strings.Contains(unit, "-race") || strings.Contains(unit, "scripts/test.sh") {
		t.Errorf("make unit must use neither the race detector nor scripts/test.sh: %s", unit)
	}
}

func TestMakeAloneListsTheTargets(t *testing.T) {
	if text := makes(t); !strings.Contains(text, "build") || !strings.Contains(text, "chaos") || strings.Contains(text, "go build") {
		t.Errorf("make without a target must only list the targets, but prints:\n%s", text)
	}
}
