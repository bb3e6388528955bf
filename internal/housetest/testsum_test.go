package housetest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	startPackage = `{"Action":"start","Package":"a"}`
	passTest     = `{"Action":"pass","Package":"a","Test":"TestGood","Elapsed":0.1}`
	passOutput   = `{"Action":"output","Package":"a","Test":"TestGood","Output":"quiet\n"}`
	passPackage  = `{"Action":"pass","Package":"a","Elapsed":0.25}`
	failOutput   = `{"Action":"output","Package":"a","Test":"TestBad","Output":"it is wrong\n"}`
	failTest     = `{"Action":"fail","Package":"a","Test":"TestBad","Elapsed":0.1}`
	failPackage  = `{"Action":"fail","Package":"a","Elapsed":0.25}`
	skipOutput   = `{"Action":"output","Package":"a","Test":"TestSkip","Output":"no engine\n"}`
	skipTest     = `{"Action":"skip","Package":"a","Test":"TestSkip"}`
)

func TestTestRunIsSummarised(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		ci     bool
		good   bool
		shows  []string // in this order
		hides  string
	}{
		"all tests pass": {
			events: []string{startPackage, passOutput, passTest, passPackage, `{"Action":"skip","Package":"b"}`}, ci: true, good: true,
			shows: []string{"PASS  a (250ms)\n"}, hides: "quiet",
		},
		"a cached package": {
			events: []string{startPackage, passTest, `{"Action":"output","Package":"a","Output":"ok  \ta\t(cached)\n"}`, passPackage}, good: true,
			shows: []string{"PASS  a (cached)\n"},
		},
		"a failure, at once and at the end": {
			events: []string{startPackage, passTest, failOutput, failTest, failPackage},
			shows:  []string{"it is wrong\n", "FAIL  a (250ms)\n", "=== FAIL: a TestBad (0.10s)\nit is wrong\n", "1 passed, 1 failed, 0 skipped\n"},
		},
		"a skip in CI": {
			events: []string{startPackage, passTest, skipOutput, skipTest, passPackage}, ci: true,
			shows: []string{"=== SKIP: a TestSkip (0.00s)\nno engine\n", "skipped tests fail this run", "1 passed, 0 failed, 1 skipped\n"},
		},
		"a skip elsewhere": {
			events: []string{startPackage, passTest, skipOutput, skipTest, passPackage}, good: true,
			shows: []string{"=== SKIP: a TestSkip (0.00s)\nno engine\n", "1 passed, 0 failed, 1 skipped\n"},
		},
		"no tests": {
			events: []string{`{"Action":"skip","Package":"a"}`},
			shows:  []string{"no test passed\n", "0 passed, 0 failed, 0 skipped\n"},
		},
		"a package that does not build": {
			events: []string{
				`{"ImportPath":"a [a.test]","Action":"build-output","Output":"a.go:1:1: undefined: x\n"}`,
				`{"ImportPath":"a [a.test]","Action":"build-fail"}`,
				startPackage, `{"Action":"fail","Package":"a","Elapsed":0,"FailedBuild":"a [a.test]"}`,
			},
			shows: []string{"FAIL  a\n", "a.go:1:1: undefined: x\n", "0 passed, 1 failed, 0 skipped\n"},
		},
		"a test that did not end": {
			events: []string{startPackage, passTest, failOutput, failPackage},
			shows:  []string{"=== FAIL: a TestBad (unknown)\nit is wrong\n", "1 failed, 0 skipped\n"},
		},
		"events that stop in a test": {
			events: []string{startPackage, passTest, failOutput},
			shows:  []string{"=== FAIL: a TestBad (unknown)\nit is wrong\n", "1 passed, 1 failed, 0 skipped\n"},
		},
		"a TestMain that fails": {
			events: []string{startPackage, passTest, `{"Action":"output","Package":"a","Output":"found unexpected goroutines\n"}`, failPackage},
			shows:  []string{"FAIL  a (250ms)\n", "found unexpected goroutines\n", "1 failed, 0 skipped\n"},
		},
		"lines that are not events": {
			events: []string{"go: warning", startPackage, passTest, passPackage}, good: true,
			shows: []string{"go: warning\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(filepath.Join(moduleRoot, "scripts", "testsum.sh"))
			cmd.Stdin = strings.NewReader(strings.Join(c.events, "\n") + "\n")
			cmd.Env = append(cmd.Environ(), "CI=")
			if c.ci {
				cmd.Env = append(cmd.Environ(), "CI=true")
			}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			out := stdout.String()
			if good := err == nil; good != c.good {
				t.Errorf("good %t (%v), want %t", good, err, c.good)
			}
			if !strings.HasSuffix(out, " skipped\n") {
				t.Error("the last line does not show the counts")
			}
			all := stderr.String() + out
			rest := all
			for _, want := range c.shows {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("%q is missing or in the wrong order", want)
				}
				rest = after
			}
			if c.hides != "" && strings.Contains(all, c.hides) {
				t.Errorf("%q must not be shown", c.hides)
			}
			if t.Failed() {
				t.Log(all)
			}
		})
	}
}
