package cli

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Faults of a command line are found before a request is sent, and are reported with the fix.
func TestUnknownArgumentsAreReportedBeforeARequest(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, nil)
	t.Setenv("CALLYARD_URL", d.URL)
	t.Setenv("CALLYARD_APPROVER_URL", d.URL)
	for line, says := range map[string]string{
		"hub nope":                           `callyard hub has no command "nope".`,
		"hub shwo x":                         "Did you mean show?",
		"hub show calculatorr":               `no built-in server "calculatorr"`,
		"eval scor x":                        "Did you mean score?",
		"completion nosh":                    `callyard completion has no command "nosh".`,
		"help nope":                          `callyard has no command "nope".`,
		"help calls nope":                    `callyard calls has no command "nope".`,
		"help btach":                         "Did you mean batch?",
		"env nope":                           `callyard env has no command "nope".`,
		"env check":                          "Usage: callyard env check FILE",
		"up nope":                            "Usage: callyard up",
		"config check nope":                  "Usage: callyard config check",
		"demo-server nope":                   "Usage: callyard demo-server",
		"bench demo":                         "Pass SERVER, TOOL and the ARGUMENTS",
		"batches --state runningg":           `--state cannot be "runningg": use one of receiving, running, canceling, ended. Did you mean running?`,
		"approvals --state pending,dnied":    "Did you mean denied?",
		"tools --format opnai":               "Did you mean openai?",
		"tools --strict":                     "--strict needs --format",
		"tools --set a":                      "--set needs --format",
		"tools --format mcp --max-tools -1":  "must not be negative",
		"tools search x --limit 0":           "--limit must be from 1 to 100",
		"tools demo echo":                    "Did you mean `callyard tools show demo echo`?",
		"audit list --limit -1":              "--limit must not be negative",
		"keys update ci":                     "Name what to change with flags",
		"sets put a no-such-file":            "The set cannot be read: open no-such-file",
		"state import no-such-file":          "The state cannot be read: open no-such-file",
		"calls --limit x":                    `--limit must be a whole number, not "x".`,
		"calls --limit 99999999999999999999": "that is not so large",
		"keys create a --rate x":             `--rate must be a number, not "x".`,
		"batch f --follow=x":                 `--follow must be true or false, not "x".`,
		"calls show":                         "Usage: callyard calls show ID",
	} {
		root := rootCommand()
		knowCompletion(root)
		stdout, stderr, code := typedOn(t, root, "", strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%s: code %d, %q, %q", line, code, stdout, stderr)
		}
	}
	if asked := d.requests(); len(asked) > 0 {
		t.Errorf("it asked for %v", asked[0].line)
	}
}

func TestHelpWorksForEveryCommand(t *testing.T) {
	for _, line := range []string{"help", "help calls", "help calls settle", "help hub", "completion", "hub --help", "eval"} {
		root := rootCommand()
		knowCompletion(root)
		if stdout, stderr, code := typedOn(t, root, "", strings.Fields(line)...); code != exitOK || !strings.Contains(stdout, "Usage:") || !strings.Contains(stdout, "--help") {
			t.Errorf("%s: code %d, %q, %q", line, code, stdout, stderr)
		}
	}
}

func TestNoHelpIsOfferedForAFullDisk(t *testing.T) {
	var b strings.Builder
	showError(&b, fail(exitUsage, "writing the output: %w", &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.ENOSPC}))
	if got := b.String(); !strings.Contains(got, "no space left") || strings.Contains(got, "--help") {
		t.Errorf("%q", got)
	}
}

func TestTheBuiltInServersAreListedWithoutTheWordList(t *testing.T) {
	want, _, code := typedOn(t, rootCommand(), "", "hub", "list", "--json")
	if code != exitOK || !strings.HasPrefix(want, "[") {
		t.Fatalf("code %d, %q", code, want)
	}
	if got, _, code := typedOn(t, rootCommand(), "", "hub", "--json"); code != exitOK || got != want {
		t.Errorf("code %d, %q", code, got)
	}
}
