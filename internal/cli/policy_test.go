package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runPolicy runs the policy command like root, and returns its output and error.
func runPolicy(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := policyCommand()
	addOutputFlags(cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func policyFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const testedPolicy = `
rules:
  - name: no-drop
    match: {tool: "drop_*"}
    deny: tables stay
  - name: pay
    match: {tool: pay}
    when: args.amount > 100
    approval: {groups: [finance], needed: 2}
`

func TestPolicyTestReportsTheMatchingRuleAndReason(t *testing.T) {
	policy := policyFile(t, "policy.yaml", testedPolicy)
	calls := policyFile(t, "calls.yaml", `
- {server: db, tool: drop_table, expect: {deny: true, rule: no-drop}}
- {server: bank, tool: pay, arguments: {amount: 500}, expect: {level: 2, approval: groups}}
- {server: bank, tool: pay, arguments: {amount: 5}, risk_level: 1, expect: {level: 1, rule: none, approval: none}}
- {server: lab, tool: run, risk_level: 3, expect: {sandbox: container}}
`)
	out, err := runPolicy(t, "test", "--policy", policy, calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"db drop_table", "denied", "no-drop", "tables stay.", "held for 2 of finance", "runs", "runs, in a container", "The operator set the risk"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "FAILED") {
		t.Error(out)
	}
}

func TestPolicyTestFailsIfAnExpectationIsNotMet(t *testing.T) {
	policy := policyFile(t, "policy.yaml", testedPolicy)
	calls := policyFile(t, "calls.json", `[{"server":"db","tool":"drop_x","expect":{"deny":false}},{"server":"bank","tool":"pay","arguments":{"amount":18446744073709551616},"expect":{"rule":"pay"}}]`)
	out, err := runPolicy(t, "test", "--policy", policy, calls)
	if exitCode(err) != exitUnmet || !strings.Contains(err.Error(), "1 of 2 calls") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out, "FAILED") || !strings.Contains(out, "calls.json:1: db drop_x: deny should be false but is true.") {
		t.Error(out)
	}
	out, err = runPolicy(t, "test", "--json", "--policy", policy, calls)
	if exitCode(err) != exitUnmet {
		t.Error(err)
	}
	var got struct {
		Version string          `json:"policy_version"`
		Calls   []exampleResult `json:"calls"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || !strings.HasPrefix(got.Version, "sha256:") || len(got.Calls) != 2 || len(got.Calls[0].Unmet) != 1 || got.Calls[1].Needed != 2 {
		t.Errorf("%v %s", err, out)
	}
}

func TestPolicyTestReportsTheFaultsOfAllFiles(t *testing.T) {
	policy := policyFile(t, "policy.yaml", "rules: [{level: 9}]")
	calls := policyFile(t, "calls.yaml", "- {server: s}")
	out, err := runPolicy(t, "test", "--policy", policy, calls, filepath.Join(t.TempDir(), "gone.yaml"))
	if exitCode(err) != exitUsage || out != "" {
		t.Fatalf("%v %s", err, out)
	}
	for _, want := range []string{"policy.yaml:1:17: rules[0].level", "calls.yaml:1:4:", "gone.yaml"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestPolicyTestWithoutAPolicyTriesTheDefault(t *testing.T) {
	out, err := runPolicy(t, "test", policyFile(t, "calls.yaml", "- {server: s, tool: t, expect: {level: 2, approval: caller}}"))
	if err != nil || !strings.Contains(out, "held for the caller") {
		t.Errorf("%v %s", err, out)
	}
}

func TestPolicyCheckReportsErrorsAndWarnings(t *testing.T) {
	out, err := runPolicy(t, "check", policyFile(t, "policy.yaml", testedPolicy))
	if err != nil || !strings.Contains(out, "The policy is valid: 2 rules, version sha256:") {
		t.Errorf("%v %s", err, out)
	}
	out, err = runPolicy(t, "check", policyFile(t, "policy.yaml", "rules: [{name: a, deny: no}, {name: b, level: 1}]"))
	if exitCode(err) != exitUsage || !strings.Contains(out, `rule "b" (line 1): it can never apply`) {
		t.Errorf("%v %s", err, out)
	}
	_, err = runPolicy(t, "check", policyFile(t, "policy.yaml", "rule: []"))
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), `did you mean "rules"?`) {
		t.Errorf("%v", err)
	}
	_, err = runPolicy(t, "check", filepath.Join(t.TempDir(), "gone"))
	if exitCode(err) != exitUsage || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestPolicyTestLiveAsksTheRunningCallyard(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"POST /policy/test": jsonAnswer(`{"decision":"held","arguments":"valid","errors":[],"policy_version":"sha256:1","risk_level":2,"rule":"pay","reasons":["It is much."],"approval":{"by":"groups","groups":["finance"],"needed":2,"expires_ms":600000},"durable":false}`),
	})
	refused := openDoor(t, map[string]answer{
		"POST /policy/test": jsonAnswer(`{"decision":"refused","arguments":"invalid","errors":[{"pointer":"/amount","message":"expected a number"}],"error":{"kind":"invalid_arguments","detail":"They do not fit."},"reasons":[],"durable":false}`),
	})
	policy := policyFile(t, "policy.yaml", testedPolicy)
	good := policyFile(t, "calls.yaml", "- {server: bank, tool: pay, arguments: {amount: 9007199254740993}, expect: {level: 2, rule: pay, approval: groups}}\n")
	bad := policyFile(t, "bad.yaml", "- {server: bank, tool: pay, principal: {name: ci, groups: [dev]}, expect: {deny: true}}\n")
	stated := policyFile(t, "stated.yaml", "- {server: bank, tool: pay, risk_level: 1}\n")
	for _, c := range []struct {
		url      string
		args     []string
		code     int
		out, err string
	}{
		{d.URL, []string{good}, exitOK, "held for 2 of finance", ""},
		{d.URL, []string{good, "--json"}, exitOK, `"policy_version":"sha256:1"`, ""},
		{d.URL, []string{bad, "--policy", policy}, exitUnmet, "deny should be true but is false.", "1 of 1 call"},
		{refused.URL, []string{good}, exitUnmet, `They do not fit. "/amount": expected a number`, "1 of 1 call"},
		{d.URL, []string{stated}, exitUsage, "", "stated.yaml:1: risk_level"},
		{d.URL, []string{good, "--policy", filepath.Join(t.TempDir(), "gone")}, exitUsage, "", "cannot be read"},
	} {
		root := testRoot()
		root.AddCommand(policyCommand())
		stdout, stderr, code := typedOn(t, root, "", append([]string{"policy", "test", "--live", "--url", c.url}, c.args...)...)
		if code != c.code || !strings.Contains(strings.ReplaceAll(stdout, `": "`, `":"`), c.out) || !strings.Contains(stderr, c.err) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}
