package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run returns what is printed for the events, and the verdict.
func run(t *testing.T, strict bool, events ...string) (string, bool) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out, strict)
	if err := s.read(strings.NewReader(strings.Join(events, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	good := s.finish()
	return out.String(), good
}

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

func TestAGoodRunPrintsPackagesAndCountsOnly(t *testing.T) {
	out, good := run(t, true, startPackage, passOutput, passTest, passPackage, `{"Action":"skip","Package":"b"}`)
	want := "ok   a (0.25s)\n1 packages, 1 without tests\n1 passed, 0 failed, 0 skipped\n"
	if diff := cmp.Diff(want, out); diff != "" || !good {
		t.Errorf("good %t, output (-want +got):\n%s", good, diff)
	}
}

func TestACachedPackageIsCalledCached(t *testing.T) {
	out, _ := run(t, true, startPackage, passTest, `{"Action":"output","Package":"a","Output":"ok  \ta\t(cached)\n"}`, passPackage)
	if !strings.Contains(out, "ok   a (0.25s, cached)\n") {
		t.Errorf("got %s", out)
	}
}

func TestAFailureIsShownInFullAndFailsTheRun(t *testing.T) {
	out, good := run(t, false, startPackage, passTest, failOutput, failTest, failPackage)
	want := "FAIL a TestBad (0.10s)\nit is wrong\n\nFAIL a (0.25s)\n\n1 packages, 0 without tests\n1 passed, 1 failed, 0 skipped\n"
	if diff := cmp.Diff(want, out); diff != "" || good {
		t.Errorf("good %t, output (-want +got):\n%s", good, diff)
	}
}

func TestTheEndOfARunSaysWhyATestFailed(t *testing.T) {
	out, _ := run(t, false, startPackage,
		`{"Action":"output","Package":"a","Test":"TestBad","Output":"=== RUN   TestBad\n"}`,
		`{"Action":"output","Package":"a","Test":"TestBad","Output":"    bad_test.go:12: two effects, want one\n"}`,
		`{"Action":"output","Package":"a","Test":"TestBad","Output":"    harness_test.go:3: the log:\n        1\n        2\n        3\n        4\n"}`,
		failTest, failPackage)
	want := "FAIL a TestBad\n    bad_test.go:12: two effects, want one\n    harness_test.go:3: the log:\n        1\n        2\n        3\n" +
		"1 packages, 0 without tests\n0 passed, 1 failed, 0 skipped\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("got:\n%s\nwhich does not end with:\n%s", out, want)
	}
}

func TestASkipFailsTheRunInCIOnly(t *testing.T) {
	for _, strict := range []bool{true, false} {
		out, good := run(t, strict, startPackage, passTest, skipOutput, skipTest, passPackage)
		if good == strict {
			t.Errorf("strict %t: good %t", strict, good)
		}
		if !strings.Contains(out, "SKIP a TestSkip\nno engine\n") || !strings.HasSuffix(out, "\n1 passed, 0 failed, 1 skipped\n") {
			t.Errorf("strict %t: got %s", strict, out)
		}
	}
}

func TestARunWithoutTestsFails(t *testing.T) {
	out, good := run(t, false, `{"Action":"skip","Package":"a"}`)
	if good || !strings.HasSuffix(out, "\n0 passed, 0 failed, 0 skipped\n") {
		t.Errorf("good %t, output %s", good, out)
	}
}

func TestABuildFailureCountsOnceAndShowsTheCompiler(t *testing.T) {
	out, good := run(t, false,
		`{"ImportPath":"a [a.test]","Action":"build-output","Output":"a.go:1:1: undefined: x\n"}`,
		`{"ImportPath":"a [a.test]","Action":"build-fail"}`,
		startPackage,
		`{"Action":"fail","Package":"a","Elapsed":0,"FailedBuild":"a [a.test]"}`)
	if good || !strings.Contains(out, "FAIL a (0.00s)\na.go:1:1: undefined: x\n") || !strings.HasSuffix(out, "\n0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("good %t, output %s", good, out)
	}
}

func TestATestThatNeverEndedIsShown(t *testing.T) {
	out, good := run(t, false, startPackage, passTest, failOutput, failPackage)
	if good || !strings.Contains(out, "TestBad did not end:\nit is wrong\n") || !strings.HasSuffix(out, "\n1 passed, 1 failed, 0 skipped\n") {
		t.Errorf("good %t, output %s", good, out)
	}
}

func TestEventsThatStopInTheMiddleFailTheRun(t *testing.T) {
	out, good := run(t, false, startPackage, passTest, failOutput)
	if good || !strings.Contains(out, "FAIL a never ended\nit is wrong\n") || !strings.HasSuffix(out, "\n1 passed, 1 failed, 0 skipped\n") {
		t.Errorf("good %t, output %s", good, out)
	}
}

func TestAFailingTestMainFailsTheRun(t *testing.T) {
	out, good := run(t, false, startPackage, passTest, `{"Action":"output","Package":"a","Output":"found unexpected goroutines\n"}`, failPackage)
	if good || !strings.Contains(out, "found unexpected goroutines\n") || !strings.HasSuffix(out, "\n1 passed, 1 failed, 0 skipped\n") {
		t.Errorf("good %t, output %s", good, out)
	}
}

func TestWhatIsNotAnEventIsPrintedAsItIs(t *testing.T) {
	out, _ := run(t, false, "go: warning", startPackage, passTest, passPackage)
	if !strings.HasPrefix(out, "go: warning\n") {
		t.Errorf("got %s", out)
	}
}

func FuzzAnyInputEndsWithTheCounts(f *testing.F) {
	f.Add(strings.Join([]string{startPackage, passTest, failOutput, failTest, skipTest, failPackage}, "\n"))
	f.Add(`{"Action":"pass"}` + "\nnoise\x00")
	f.Fuzz(func(t *testing.T, events string) {
		out, good := run(t, true, events)
		last := out[strings.LastIndex(strings.TrimSuffix(out, "\n"), "\n")+1:]
		if !strings.HasSuffix(last, " skipped\n") {
			t.Errorf("the last line is %q", last)
		}
		if good && !strings.Contains(last, " 0 failed, 0 skipped") {
			t.Errorf("a good run says %q", last)
		}
	})
}
