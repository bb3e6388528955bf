package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/pkg/risk"
)

// exitUnmet is the exit code of `policy test` if an expectation is not met.
const exitUnmet = 1

func policyCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a policy for faults and for rules that never apply",
		Args:  takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkPolicy(screenFor(cmd), args[0])
		},
	}
	return group("policy", "Check and test a policy", check, testCommand(), dryRunCommand())
}

func testCommand() *cobra.Command {
	var file string
	var live bool
	cmd := &cobra.Command{
		Use:   "test [--policy FILE] [--live] CALLS...",
		Short: "Test a policy against example calls",
		Long: "test applies the policy to each example call as the front door and the workers would, and prints the deciding rule and the reason. " +
			"If an example states an expectation and the result differs, the exit code is 1. It does not require a running Callyard.\n\n" +
			"With --live, the running Callyard at --url decides, with its tools, their schemas and its policy, or with the policy in --policy in place of it. Nothing is run, held or recorded. " +
			"The calls are tested as calls of yours, unless an example names a principal. --policy and a principal require a key that may do a dry run.",
		Example: "  callyard policy test --policy policy.yaml calls.yaml\n  callyard policy test --live calls.yaml",
		Args:    takes(1, -1),
	}
	cmd.Flags().StringVar(&file, "policy", "", "the policy file (default: the built-in policy, or with --live the policy in force)")
	cmd.Flags().BoolVar(&live, "live", false, "have the running Callyard at --url decide")
	onLive := withClient(func(ctx context.Context, c *client, args []string) error { return testLive(ctx, c, file, args) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if live {
			return onLive(cmd, args)
		}
		return testPolicy(screenFor(cmd), file, args)
	}
	return cmd
}

// readPolicy reads and parses a policy and reports all of its faults. If path is "", it returns the
// default policy.
func readPolicy(path string) (*risk.Policy, error) {
	if path == "" {
		return risk.Default(), nil
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fail(exitUsage, "The policy cannot be read: %w.", err)
	}
	p, err := risk.Parse(source, path)
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return p, nil
}

func checkPolicy(out screen, path string) error {
	p, err := readPolicy(path)
	if out.structured() {
		return reportPolicy(out, p, err)
	}
	if err != nil {
		return err
	}
	doubts := p.Check(risk.Known{})
	for _, doubt := range doubts {
		if err := out.text(oneLine(doubt) + "\n"); err != nil {
			return err
		}
	}
	if len(doubts) > 0 {
		return fail(exitUsage, "The policy is valid, but has %s.", count(len(doubts), "probable mistake"))
	}
	return out.text(fmt.Sprintf("The policy is valid: %s, version %s.\n", count(len(p.Rules()), "rule"), p.Version()))
}

// reportPolicy prints the result of `policy check` as one object. fault is the parse error, if any.
func reportPolicy(out screen, p *risk.Policy, fault error) error {
	report := struct {
		Good    bool     `json:"good"`
		Faults  []string `json:"faults"`
		Doubts  []string `json:"doubts"`
		Rules   int      `json:"rules"`
		Version string   `json:"policy_version,omitempty"`
	}{Faults: []string{}, Doubts: []string{}}
	if fault != nil {
		for line := range strings.Lines(fault.Error()) {
			report.Faults = append(report.Faults, strings.TrimSpace(line))
		}
	} else {
		report.Doubts = append(report.Doubts, p.Check(risk.Known{})...)
		report.Rules, report.Version = len(p.Rules()), p.Version()
	}
	report.Good = len(report.Faults)+len(report.Doubts) == 0
	if err := out.value(report); err != nil || report.Good {
		return err
	}
	return ended(exitUsage)
}

// exampleResult is the result of one example, in the format of --output json.
type exampleResult struct {
	Name     string   `json:"name"`
	Where    string   `json:"where"`
	Server   string   `json:"server"`
	Tool     string   `json:"tool"`
	Level    int      `json:"level"`
	Deny     bool     `json:"deny"`
	Rule     string   `json:"rule,omitempty"`
	Approval string   `json:"approval,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	Needed   int      `json:"needed,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"`
	Durable  bool     `json:"durable,omitempty"`
	Reasons  []string `json:"reasons"`
	Unmet    []string `json:"unmet,omitempty"`
}

func testPolicy(out screen, policy string, files []string) error {
	p, err := readPolicy(policy)
	var faults []error
	if err != nil {
		faults = append(faults, err)
	}
	examples, faults := readExamples(files, faults)
	if len(faults) > 0 {
		return fail(exitUsage, "%w", errors.Join(faults...))
	}
	report := testReport{Version: p.Version(), Calls: make([]exampleResult, 0, len(examples))}
	for i := range examples {
		a := p.Assess(&examples[i].Input)
		report.Calls = append(report.Calls, examples[i].tried(&a))
	}
	return report.show(out)
}

// fileExample is an example call and the file that contains it.
type fileExample struct {
	risk.Example
	path string
}

// readExamples reads the examples of all files and appends their faults to faults.
func readExamples(files []string, faults []error) ([]fileExample, []error) {
	var all []fileExample
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			faults = append(faults, fmt.Errorf("The calls cannot be read: %w.", err))
			continue
		}
		examples, err := risk.ParseExamples(source, path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for i := range examples {
			all = append(all, fileExample{examples[i], path})
		}
	}
	return all, faults
}

func (e *fileExample) where() string { return e.path + ":" + strconv.Itoa(e.Line) }

// tried returns the result of the example for an assessment.
func (e *fileExample) tried(a *risk.Assessment) exampleResult {
	t := exampleResult{
		Name: e.Name, Where: e.where(), Server: e.Input.Server, Tool: e.Input.Tool,
		Level: a.Level, Deny: a.Deny, Rule: a.Rule, Sandbox: a.Sandbox, Durable: a.Durable, Reasons: a.Reasons, Unmet: e.Expect.Unmet(*a),
	}
	if a.Approval != nil {
		t.Approval, t.Groups, t.Needed = a.Approval.By, a.Approval.Groups, a.Approval.Needed
	}
	return t
}

// testReport is the output of `policy test`, in the format of --output json.
type testReport struct {
	Version string          `json:"policy_version"`
	Calls   []exampleResult `json:"calls"`
}

// show prints the report. If expectations are not met, it returns an error with their number.
func (r *testReport) show(out screen) error {
	unmet := 0
	for i := range r.Calls {
		if len(r.Calls[i].Unmet) > 0 {
			unmet++
		}
	}
	var err error
	if out.structured() {
		err = out.value(r)
	} else {
		err = showTried(out, r.Calls)
	}
	if err != nil {
		return err
	}
	if unmet > 0 {
		return fail(exitUnmet, "%d of %s did not have the expected result.", unmet, count(len(r.Calls), "call"))
	}
	return nil
}

// showTried prints the table, and below it the differences from the expectations.
func showTried(out screen, results []exampleResult) error {
	rows := make([][]cell, 0, len(results))
	for i := range results {
		t := &results[i]
		state := cell{text: "ok", paint: green}
		if len(t.Unmet) > 0 {
			state = cell{text: "FAILED", paint: red}
		}
		rows = append(rows, []cell{state, {text: t.Name}, {text: strconv.Itoa(t.Level)}, {text: t.does()}, {text: t.Rule}, {text: risk.JoinReasons(t.Reasons)}})
	}
	if err := out.table([]string{"", "CALL", "LEVEL", "OUTCOME", "RULE", "WHY"}, rows); err != nil {
		return err
	}
	var b strings.Builder
	for i := range results {
		for _, u := range results[i].Unmet {
			fmt.Fprintf(&b, "%s: %s: %s\n", oneLine(results[i].Where), oneLine(results[i].Name), oneLine(u))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return out.text("\n" + b.String())
}

// does summarizes the effect of the policy on the call.
func (t *exampleResult) does() string {
	if t.Deny {
		return "denied"
	}
	var parts []string
	switch t.Approval {
	case "":
		parts = append(parts, "runs")
	case risk.ByGroups:
		parts = append(parts, fmt.Sprintf("held for %d of %s", t.Needed, strings.Join(t.Groups, ", ")))
	default:
		parts = append(parts, "held for the "+t.Approval)
	}
	if t.Sandbox != "" {
		parts = append(parts, "in a "+t.Sandbox)
	}
	return strings.Join(parts, ", ")
}
