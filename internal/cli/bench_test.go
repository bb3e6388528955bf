package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchTyped runs a command line below bench, with the flags of the root command.
func benchTyped(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	root := testRoot()
	root.AddCommand(benchCommand())
	return typedOn(t, root, "", append([]string{"bench"}, args...)...)
}

// fakeBench sets PATH to a directory with one program, which prints its arguments and its key.
func fakeBench(t *testing.T, end string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\nprintf '%s\\n' \"$@\" \"key $CALLYARD_KEY\"\n" + end + "\n"
	if err := os.WriteFile(filepath.Join(dir, benchProgram), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestBenchStartsItsProgramWithTheFlagsThatWereGiven(t *testing.T) {
	plainEnvironment(t)
	fakeBench(t, "exit 0")
	t.Setenv("CALLYARD_KEY", "s3cret")
	for line, want := range map[string]string{
		"":                                  "key ",
		"--quick -c 1,2 --size=200 --json":  "--concurrency=1|--concurrency=2|--quick=true|--size=200|--json|key ",
		"--endpoint a=http://x?b,c --out=":  "--endpoint=a=http://x?b,c|--out=|key ",
		"--figures batch --duration 1500ms": "--duration=1.5s|--figures=batch|key ",
		"--url http://127.0.0.1:1/ --rounds 2 demo echo {\"a\":1}": "--rounds=2|--url=http://127.0.0.1:1|--|demo|echo|{\"a\":1}|key s3cret",
	} {
		stdout, stderr, code := benchTyped(t, strings.Fields(line)...)
		if got := strings.ReplaceAll(strings.TrimSuffix(stdout, "\n"), "\n", "|"); code != exitOK || got != want {
			t.Errorf("%q started it with %q, want %q (code %d, %s)", line, got, want, code, stderr)
		}
	}
}

func TestBenchReturnsTheExitCodeOfItsProgram(t *testing.T) {
	plainEnvironment(t)
	fakeBench(t, "echo it failed >&2; exit 1")
	if _, stderr, code := benchTyped(t); code != exitToolError || stderr != "it failed\n" {
		t.Errorf("code %d, %q", code, stderr)
	}
}

func TestBenchWithoutItsProgramSaysHowToGetIt(t *testing.T) {
	plainEnvironment(t)
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	if _, stderr, code := benchTyped(t); code != exitUsage || !strings.Contains(stderr, "go build -C bench -o bin/ ./cmd/callyard-bench") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

func TestBenchProgramIsFoundFromSubdirectory(t *testing.T) {
	module, err := benchModule(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(module, "cmd", benchProgram, "main.go")); err != nil {
		t.Error(err)
	}
}

func TestInvalidBenchFlagsAreRefusedBeforeStart(t *testing.T) {
	plainEnvironment(t)
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"demo":                    "SERVER, TOOL",
		"--header A":              "Name: value",
		"--figures all --json":    "cannot be combined with --figures",
		"demo echo {} --url ftp:": "address of Callyard",
	} {
		if _, stderr, code := benchTyped(t, strings.Fields(line)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: code %d, %q", line, code, stderr)
		}
	}
}
