package housetest

import (
	"os/exec"
	"strings"
	"testing"
)

// makes is what make prints without running a command.
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
		t.Errorf("the programs keep their symbols: %s", build)
	}
	// With other compile flags than go run and go test, it would compile everything again.
	for _, flag := range []string{"-trimpath", "-gcflags", "-race", "-tags"} {
		if strings.Contains(build, flag) {
			t.Errorf("make build compiles everything a second time, because of %s: %s", flag, build)
		}
	}
}

func TestMakeUnitNeedsNoEngineAndNoRaceDetector(t *testing.T) {
	unit := makes(t, "-n", "unit")
	if !strings.Contains(unit, "grep -vE '/internal/launch/(sandbox|bwrap)$'") {
		t.Errorf("packages that start containers are among the unit tests: %s", unit)
	}
	if strings.Contains(unit, "-race") || strings.Contains(unit, "scripts/test.sh") {
		t.Errorf("the unit tests take the time of a detector or of a set-up: %s", unit)
	}
}

func TestMakeAloneListsTheTargets(t *testing.T) {
	if text := makes(t); !strings.Contains(text, "build") || !strings.Contains(text, "chaos") || strings.Contains(text, "go build") {
		t.Errorf("make alone prints:\n%s", text)
	}
}
