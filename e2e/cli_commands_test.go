package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryProgramPrintsVersionAndRefusesUnknownArguments(t *testing.T) {
	for _, name := range []string{"callyard", "frontdoor", "worker", "approver"} {
		for _, args := range [][]string{{"version"}, {"--version"}, {"version", "--json"}, {"nonsense"}} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), name), args...)
			cmd.Env, cmd.Dir = cleanEnviron(), t.TempDir()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			switch {
			case args[0] == "nonsense":
				if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(stderr.String(), `"nonsense"`) {
					t.Errorf("%s %q: %v %s", name, args, err, stderr.String())
				}
			case len(args) == 2:
				var build struct{ Program, Version string }
				if err != nil || json.Unmarshal(stdout.Bytes(), &build) != nil || build.Program != name || build.Version == "" {
					t.Errorf("%s %q: %v %s%s", name, args, err, stdout.String(), stderr.String())
				}
			case err != nil || !strings.HasPrefix(stdout.String(), name+" "):
				t.Errorf("%s %q: %v %s%s", name, args, err, stdout.String(), stderr.String())
			}
		}
	}
}

// demoApprovals starts `up --demo-approvals`, and returns the environments of its
// requester and of its approver.
func demoApprovals(t *testing.T) (up *door, asks, decides []string) {
	t.Helper()
	up = startUp(t, setup{flags: []string{"--demo-approvals"}, env: []string{quickStop}})
	requester, approver := up.says(t, `requester\s+\S+\s+key (\S+)`)[1], up.says(t, `approver\s+\S+\s+key (\S+)`)[1]
	pages := up.says(t, `sign in\s+(http://\S+)`)[1]
	up.says(t, `held call\s+(call_\w+)`)
	return up, []string{"CALLYARD_URL=" + up.url, "CALLYARD_KEY=" + requester}, []string{"CALLYARD_APPROVER_URL=" + pages, "CALLYARD_KEY=" + approver}
}

func TestShellCompletesServersToolsAndArguments(t *testing.T) {
	_, asks, decides := demoApprovals(t)
	for _, c := range []struct {
		env  []string
		args string // separated by "|", after __complete
		want string // the beginning of a line
		not  string
	}{
		{asks, "call|", "demo\t", ""},
		{asks, "call|demo|", "echo\t", ""},
		{asks, "call|demo|a", "add\t", "echo"},
		{asks, "call|demo|add|", "a=\t", ""},
		{asks, "tools|show|demo|", "echo\t", ""},
		{asks, "tools|disable|de", "demo\t", ""},
		{asks, "servers|show|", "demo\t", ""},
		{asks, "tenants|show|", "default\n", ""},
		{asks, "calls|", "call_", ""},
		{asks, "calls|--server|", "demo\t", ""},
		{asks, "calls|--state|", "held", ""},
		{asks, "calls|cancel|", "call_", ""},
		{decides, "approve|", "appr_", ""},
		{decides, "approvals|show|", "appr_", ""},
		{decides, "deny|nothing", ":4", "appr_"},
		{[]string{"CALLYARD_URL=http://127.0.0.1:1"}, "call|", ":4", "refused"},
	} {
		code, stdout, _ := command(t, c.env, append([]string{"__complete"}, strings.Split(c.args, "|")...)...)
		if code != 0 || !strings.Contains("\n"+stdout, "\n"+c.want) || c.not != "" && strings.Contains(stdout, c.not) {
			t.Errorf("%s: code %d\n%s", c.args, code, stdout)
		}
	}
	if code, stdout, _ := command(t, nil, "completion", "bash"); code != 0 || !strings.Contains(stdout, "__complete") {
		t.Errorf("%d %.200s", code, stdout)
	}
}

func TestCallIsEditedAndApprovedFromTheCommandLine(t *testing.T) {
	_, asks, decides := demoApprovals(t)
	var pending struct {
		Approvals []struct {
			ID     string `json:"id"`
			CallID string `json:"call_id"`
		} `json:"approvals"`
	}
	_, stdout, _ := command(t, decides, "approvals", "--json")
	if err := json.Unmarshal([]byte(stdout), &pending); err != nil || len(pending.Approvals) != 1 {
		t.Fatalf("%v %s", err, stdout)
	}
	file := filepath.Join(t.TempDir(), "edited.json")
	write(t, file, `{"a":2,"b":40}`)
	held := pending.Approvals[0]
	code, stdout, stderr := command(t, decides, "approve", held.ID, "--arguments", file, "--yes", "--reason", "a larger one")
	if code != 0 || !strings.Contains(stderr, `{"a":2,"b":40}`) {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	eventually(t, soon, "the edited call has run", func() error {
		var call struct{ State string }
		_, stdout, stderr = command(t, asks, "calls", held.CallID, "--json")
		if json.Unmarshal([]byte(stdout), &call) != nil || call.State != "succeeded" {
			return fmt.Errorf("%s%s", stdout, stderr)
		}
		return nil
	})
	if !strings.Contains(stdout, `"42"`) {
		t.Errorf("it did not run with the edited arguments: %s%s", stdout, stderr)
	}
	if code, stdout, stderr := command(t, decides, "permissions", "--json"); code != 0 || stdout != `{"permissions":[]}`+"\n" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if code, _, stderr := command(t, decides, "permissions", "remove", "perm_none"); code != 3 || !strings.Contains(stderr, "does not exist") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestBatchesAreListedShownAndCanceled(t *testing.T) {
	up := startUp(t, setup{env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	env := []string{"CALLYARD_URL=" + up.url}
	dir := t.TempDir()
	table, calls := filepath.Join(dir, "table.csv"), filepath.Join(dir, "calls.ndjson")
	write(t, table, "server,tool\ndemo,echo\n")
	for _, file := range []string{table, filepath.Join(dir, "missing")} {
		if code, stdout, stderr := command(t, env, "batch", file, "--out", filepath.Join(dir, "out")); code != 2 || stdout != "" || stderr == "" {
			t.Errorf("%s: %d %s%s", file, code, stdout, stderr)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("a refused batch left %v", left)
	}
	if _, stdout, _ := command(t, env, "batches", "--json"); stdout != `{"batches":[]}`+"\n" {
		t.Errorf("a refused batch was made: %s", stdout)
	}

	write(t, calls, strings.Repeat(`{"server":"demo","tool":"sleep","arguments":{"seconds":5}}`+"\n", 3))
	if code, _, stderr := command(t, env, "batch", calls, "--follow=false"); code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	var list struct{ Batches []struct{ ID, State string } }
	_, stdout, _ := command(t, env, "batches", "--state", "running", "--json")
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Batches) != 1 {
		t.Fatalf("%v %s", err, stdout)
	}
	id := list.Batches[0].ID
	if code, stdout, _ := command(t, env, "batches"); code != 0 || !strings.Contains(stdout, id) || !strings.Contains(stdout, "NO RESULT") {
		t.Errorf("%d %s", code, stdout)
	}
	if code, stdout, _ := command(t, env, "batches", "show", id); code != 0 || !strings.Contains(stdout, "calls") || !strings.Contains(stdout, id) {
		t.Errorf("%d %s", code, stdout)
	}
	if code, stdout, stderr := command(t, env, "batches", "cancel", id); code != 0 || !strings.Contains(stdout, "cancel") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	eventually(t, soon, "the batch is canceled", func() error {
		if _, stdout, _ := command(t, env, "batches", "show", id, "--json"); !strings.Contains(stdout, `"state":"canceled"`) {
			return errors.New(stdout)
		}
		return nil
	})
	if code, stdout, _ := command(t, env, "__complete", "batches", "show", ""); code != 0 || !strings.Contains(stdout, id) {
		t.Errorf("%d %s", code, stdout)
	}
}
