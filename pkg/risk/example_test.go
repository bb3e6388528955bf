package risk_test

import (
	"errors"
	"fmt"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const payments = `
rules:
  - name: no-drops
    match: {server: "db*", tool: "drop_*"}
    deny: tables are dropped by migrations only
  - name: large-payment
    match: {server: bank, tool: pay}
    when: args.amount > 1000
    approval: {groups: [finance], needed: 2}
  - name: small-payment
    match: {server: bank, tool: pay}
    level: 1
`

// Assess takes the arguments as the exact bytes that the tool receives.
func ExamplePolicy_Assess() {
	policy, err := risk.Parse([]byte(payments), "policy.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []risk.Input{
		{Server: "bank", Tool: "pay", Arguments: []byte(`{"amount": 20}`)},
		{Server: "bank", Tool: "pay", Arguments: []byte(`{"amount": 5000}`)},
		{Server: "db-1", Tool: "drop_table", Arguments: []byte(`{"name": "users"}`)},
	} {
		call.Principal = schema.Principal{Name: "billing-agent"}
		switch a := policy.Assess(&call); {
		case a.Deny:
			fmt.Println(a.Rule, "denies it:", a.Reasons[0])
		case a.Approval != nil:
			fmt.Println(a.Rule, "holds it for", a.Approval.Needed, "of", a.Approval.Groups)
		default:
			fmt.Println(a.Rule, "lets it run at level", a.Level)
		}
	}
	// Output:
	// small-payment lets it run at level 1
	// large-payment holds it for 2 of [finance]
	// no-drops denies it: Rule "no-drops" denies this call: tables are dropped by migrations only.
}

// Parse reports all faults of a policy at once, each with its position and a fix.
func ExampleParse() {
	_, err := risk.Parse([]byte("rules:\n  - match: {tol: pay}\n    level: 4\n"), "policy.yaml")

	faults := (*risk.Faults)(nil)
	fmt.Println(errors.As(err, &faults))
	fmt.Println(err)
	// Output:
	// true
	// policy.yaml:2:13: rules[0].match.tol: is not a known key here; did you mean "tool"?
	// policy.yaml:3:12: rules[0].level: must be a whole number from 1 to 3.
}

// An approval that was given under one requirement is valid for another only if it satisfies that
// one too.
func ExampleRequirement_Covers() {
	two := (&risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 2}).Requirement()
	one := (&risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 1}).Requirement()
	fmt.Println(two.Covers(one), one.Covers(two))
	// Output: true false
}
