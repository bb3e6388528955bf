package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/clients/go/batchfile"
	"github.com/callyard/callyard/clients/go/batchfile/batchfiletest"
)

func callsFile(t *testing.T, text string) (path, out string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "calls.ndjson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, filepath.Join(dir, "results.ndjson")
}

func TestABatchThatStoppedSaysHowToContinue(t *testing.T) {
	plainEnvironment(t)
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(20))
	command := []string{"batch", in, "--out", out, "--url", d.URL}
	wants := func(code int, texts ...string) {
		t.Helper()
		_, stderr, got := typed(t, "", command...)
		for _, text := range texts {
			if !strings.Contains(stderr, text) {
				t.Errorf("it does not say %q: %s", text, stderr)
			}
		}
		if got != code {
			t.Errorf("code %d, want %d: %s", got, code, stderr)
		}
	}

	d.Faults(func(what string) batchfiletest.Fault {
		if strings.Contains(what, "/calls") {
			return batchfiletest.Busy
		}
		return batchfiletest.None
	})
	command = append(command, "--give-up", "0s")
	wants(exitUnreachable, "No room", "Retried for 0s without success", "Repeat the command to send the rest, or add --cancel")
	command = append(command[:len(command)-1], "300ms")
	wants(exitUnreachable, "Callyard returned status 503: No room at the moment; retrying in 0.", "Retried for 300ms")
	d.Faults(batchfiletest.NoFaults)
	command = append(command, "--follow=false") // the batch is sealed
	wants(exitOK, "Continuing batch batch_1.")
	command = command[:len(command)-1]
	d.Faults(func(what string) batchfiletest.Fault {
		if strings.Contains(what, "/results") {
			return batchfiletest.HangsUp
		}
		return batchfiletest.None
	})
	wants(exitUnreachable, "Continuing batch batch_1.", "The connection to "+d.URL+" failed", "Batch batch_1 continues to run")
	d.Faults(batchfiletest.NoFaults)
	wants(exitOK, "Continuing batch batch_1.")
	d.WantResults(t, out, "batch_1", 20)
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	wants(exitOK, "its results are read again from the start, because "+out)

	command = append(command, "--priority", "3")
	wants(exitUsage, "Batch batch_1 was created with other values of --priority, --expires or --label")
	command = command[:len(command)-2]
	if err := os.WriteFile(in, []byte(batchfiletest.CallLines(21)), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(exitUsage, in+" has changed since batch batch_1 was created from it. Use another file for its results with --out")
	if err := os.WriteFile(out+".state", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(exitUsage, "cannot be read: unexpected end of JSON input. Start a new batch with --new")
	if err := os.Remove(out + ".state"); err != nil {
		t.Fatal(err)
	}
	wants(exitUsage, "is not empty", "replace it with --new")
	d.WantResults(t, out, "batch_1", 20)
}

func TestAnInterruptedBatchSaysHowToContinue(t *testing.T) {
	plainEnvironment(t)
	d := batchfiletest.Open(t)
	in, out := callsFile(t, batchfiletest.CallLines(100))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.Faults(func(what string) batchfiletest.Fault {
		if what == "result" {
			cancel()
		}
		return batchfiletest.None
	})
	root := testRoot()
	root.SetArgs([]string{"batch", in, "--out", out, "--url", d.URL})
	var said strings.Builder
	root.SetOut(&said)
	root.SetErr(&said)
	err := root.ExecuteContext(ctx)
	if exitCode(err) != exitInterrupted || !strings.Contains(err.Error(), "Interrupted.\nBatch batch_1") || !strings.Contains(err.Error(), "Repeat the command") {
		t.Fatalf("interrupted: %v", err)
	}
}

func TestABatchEndsWithTheCodeOfItsWorstCall(t *testing.T) {
	plainEnvironment(t)
	for fails, want := range map[string]int{"": exitOK, "failed": exitToolError, "unknown": exitToolError, "denied": exitRefused, "canceled": exitToolError} {
		d := batchfiletest.Open(t)
		d.Fails(fails)
		id := "x"
		if fails != "" {
			id = fails
		}
		in, _ := callsFile(t, batchfiletest.CallLines(3)+fmt.Sprintf("\n"+`{"custom_id":%q,"server":"s","tool":"t"}`+"\n", id))
		stdout, stderr, code := typed(t, "", "batch", in, "--url", d.URL)
		if code != want || !strings.Contains(stdout, "succeeded") || !strings.Contains(stdout, "calls.results.ndjson, 4 lines") || fails != "" && !strings.Contains(stdout, fails) {
			t.Errorf("%q: code %d, want %d\n%s%s", fails, code, want, stdout, stderr)
		}
		if strings.Contains(stdout, "calls settle") != (fails == "unknown") {
			t.Errorf("%q: %s", fails, stdout)
		}
		stdout, _, _ = typed(t, "", "batch", in, "--url", d.URL, "--json")
		if !json.Valid([]byte(stdout)) || !strings.Contains(stdout, `"batch_1"`) {
			t.Errorf("with --json: %s", stdout)
		}
	}
}

func TestABatchThatCannotStartReportsTheReason(t *testing.T) {
	plainEnvironment(t)
	d := batchfiletest.Open(t)
	in, _ := callsFile(t, batchfiletest.CallLines(3))
	empty, _ := callsFile(t, "\n \n")
	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	for _, c := range []struct {
		args string
		code int
		said string
	}{
		{empty, exitUsage, "no calls"},
		{in + ".gone", exitUsage, "cannot be read"},
		{filepath.Dir(in), exitUsage, "folder"},
		{in + "|--priority|11", exitUsage, "--priority"},
		{in + "|--label|x", exitUsage, "KEY=VALUE"},
		{in + "|--expires|1ms", exitUsage, "--expires"},
		{in + "|--out|-", exitUsage, "--out"},
		{in + "|--cancel", exitUsage, "no batch to cancel"},
		{in + "|--cancel|--new", exitUsage, "--cancel and --new cannot be combined"},
		{in + "|--new|--out|" + in, exitUsage, "is the file with the calls"},
		{in + "|--url|" + nowhere.URL, exitUnreachable, "callyard up"},
	} {
		_, stderr, code := typed(t, "", append([]string{"batch", "--url", d.URL}, strings.Split(c.args, "|")...)...)
		if code != c.code || !strings.Contains(stderr, c.said) {
			t.Errorf("%s: code %d, want %d and %q: %s", c.args, code, c.code, c.said, stderr)
		}
	}
	if d.Batches() != 0 {
		t.Errorf("%d batches were made", d.Batches())
	}
}

func TestCanceledBatchReportsCallsNotTaken(t *testing.T) {
	plainEnvironment(t)
	d := batchfiletest.Open(t)
	in, _ := callsFile(t, batchfiletest.CallLines(30))
	n := 0
	d.Faults(func(what string) batchfiletest.Fault {
		if what == "line" {
			if n++; n == 10 {
				return batchfiletest.Cancels
			}
		}
		return batchfiletest.None
	})
	stdout, stderr, code := typed(t, "", "batch", in, "--url", d.URL)
	if code != exitToolError || !strings.Contains(stdout, "canceled") || !strings.Contains(stdout, "21  not taken") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := typed(t, "", "batch", in, "--url", d.URL, "--cancel"); code == exitUsage {
		t.Errorf("cancel: code %d, %s", code, stderr)
	}
}

func TestNarrowProgressLineKeepsTheMainFigures(t *testing.T) {
	f := figures{tally: batchfile.Tally{Lines: 12_500, Succeeded: 12_400, ToolErrors: 30, Failed: 60, Unknown: 40}, total: 50_000, sealed: true, rate: 1500}
	for width, want := range map[int]string{
		0:  " 25%  12,500/50,000  1,500/s  ok 12,370  25s left  unknown 40  failed 60  tool errors 30",
		50: " 25%  12,500/50,000  1,500/s  ok 12,370  25s left",
		10: " 25%  12,500/50,000",
	} {
		if got := f.line(width); got != want {
			t.Errorf("in %d columns it is %q, want %q", width, got, want)
		}
	}
	if got, want := (screen{width: 80}).bar(f.tally.Lines, f.total, 8), "##......"; got != want {
		t.Errorf("the bar is %q, want %q", got, want)
	}
	f.sealed = false
	if got := f.line(0); !strings.HasPrefix(got, "12,500/50,000+  1,500/s") {
		t.Errorf("while it is sent: %q", got)
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := number(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}
