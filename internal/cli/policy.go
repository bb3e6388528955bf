package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/pkg/risk"
)

// exitUnmet is the code of `policy test` when an expectation fails.
const exitUnmet = 1

func policyCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a policy for faults and for rules that never apply",
		Args:  takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkPolicy(outOf(cmd), args[0])
		},
	}
	var file string
	test := &cobra.Command{
		Use:   "test [--policy FILE] CALLS...",
		Short: "Test a policy against example calls",
		Long: "test applies the policy to each example call as the front door and the workers would, and prints the deciding rule and the reason. " +
			"If an example states an expectation and the result differs, the exit code is 1. It does not require a running Callyard.",
		Example: "  callyard policy test --policy policy.yaml calls.yaml",
		Args:    takes(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return testPolicy(outOf(cmd), file, args)
		},
	}
	test.Flags().StringVar(&file, "policy", "", "the policy file (default: the built-in policy)")
	return group("policy", "Check and test a policy", check, test, dryRunCommand())
}

// readPolicy reads a policy with all of its faults; "" is the default one.
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
	switch len(doubts) {
	case 0:
		return out.text(fmt.Sprintf("The policy is valid: %s, version %s.\n", count(len(p.Rules()), "rule"), p.Version()))
	case 1:
		return fail(exitUsage, "The policy is valid, but has 1 probable mistake.")
	}
	return fail(exitUsage, "The policy is valid, but has %d probable mistakes.", len(doubts))
}

// reportPolicy prints what `policy check` found as one object; fault says why
// the policy cannot be read.
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

// tried is one example and how it went, in the shape of --output json.
type tried struct {
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
	var results []tried
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
			if p != nil {
				results = append(results, try(p, path, &examples[i]))
			}
		}
	}
	if len(faults) > 0 {
		return fail(exitUsage, "%w", errors.Join(faults...))
	}
	unmet := 0
	for i := range results {
		if len(results[i].Unmet) > 0 {
			unmet++
		}
	}
	if out.structured() {
		err = out.value(struct {
			Version string  `json:"policy_version"`
			Calls   []tried `json:"calls"`
		}{p.Version(), results})
	} else {
		err = showTried(out, results)
	}
	if err != nil {
		return err
	}
	if unmet > 0 {
		return fail(exitUnmet, "%d of %s did not have the expected result.", unmet, count(len(results), "call"))
	}
	return nil
}

func try(p *risk.Policy, path string, e *risk.Example) tried {
	a := p.Assess(&e.Input)
	t := tried{
		Name: e.Name, Where: path + ":" + strconv.Itoa(e.Line), Server: e.Input.Server, Tool: e.Input.Tool,
		Level: a.Level, Deny: a.Deny, Rule: a.Rule, Sandbox: a.Sandbox, Durable: a.Durable, Reasons: a.Reasons, Unmet: e.Expect.Unmet(a),
	}
	if a.Approval != nil {
		t.Approval, t.Groups, t.Needed = a.Approval.By, a.Approval.Groups, a.Approval.Needed
	}
	return t
}

// showTried prints the table, and below it what differs from the expectations.
func showTried(out screen, results []tried) error {
	rows := make([][]cell, 0, len(results))
	for i := range results {
		t := &results[i]
		state := cell{text: "ok", paint: green}
		if len(t.Unmet) > 0 {
			state = cell{text: "FAILED", paint: red}
		}
		rows = append(rows, []cell{state, {text: t.Name}, {text: strconv.Itoa(t.Level)}, {text: t.does()}, {text: t.Rule}, {text: strings.Join(t.Reasons, " ")}})
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

// does says in few words what happens to the call.
func (t *tried) does() string {
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
