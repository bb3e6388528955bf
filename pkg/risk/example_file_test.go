package risk

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

func TestExamplesAreReadFromYAMLAndJSON(t *testing.T) {
	fromYAML, err := ParseExamples([]byte(`
- name: a payment
  server: bank
  tool: pay
  risk_level: 2
  trust_annotations: true
  definition: {name: pay, annotations: {readOnlyHint: true}}
  arguments: {amount: 18446744073709551616, to: "x\ny", list: [1, 2.50, null, true], hex: 0x10}
  principal: {name: ci, owner: team, groups: [dev]}
  expect: {level: 2, deny: false, rule: big, approval: groups, sandbox: none}
- {server: s, tool: t, arguments: '{"n":1.0}', principal: ann, expect: {rule: null, approval: false}}
`), "calls.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []Example{
		{Name: "a payment", Line: 2, Input: Input{
			Server: "bank", Tool: "pay", ServerRisk: 2, TrustAnnotations: true,
			Definition: []byte(`{"name":"pay","annotations":{"readOnlyHint":true}}`),
			Arguments:  []byte(`{"amount":18446744073709551616,"to":"x\ny","list":[1,2.50,null,true],"hex":16}`),
			Principal:  schema.Principal{Name: "ci", Owner: "team", Groups: []string{"dev"}},
		}, Expect: Expect{Level: new(2), Deny: new(false), Rule: new("big"), Approval: new("groups"), Sandbox: new("none")}},
		{Name: "s t", Line: 11, Input: Input{Server: "s", Tool: "t", Arguments: []byte(`{"n":1.0}`), Principal: schema.Principal{Name: "ann"}},
			Expect: Expect{Rule: new("none"), Approval: new("none")}},
	}
	if diff := cmp.Diff(want, fromYAML); diff != "" {
		t.Error(diff)
	}
	fromJSON, err := ParseExamples([]byte(`[{"server":"s","tool":"t","arguments":{"n":1.0,"s":"a\/b\u0041"},"expect":{"approval":true}}]`), "calls.json")
	if err != nil || len(fromJSON) != 1 || string(fromJSON[0].Input.Arguments) != `{"n":1.0,"s":"a/bA"}` || *fromJSON[0].Expect.Approval != "any" {
		t.Errorf("%v %+v", err, fromJSON)
	}
}

func TestFaultsOfExamplesAreReportedAtOnce(t *testing.T) {
	_, err := ParseExamples([]byte("- {server: s}\n- {server: s, tool: t, argumets: {}}\n- {server: s, tool: t, expect: {level: low}}\n- {server: s, tool: t, arguments: [1]}\n"), "calls.yaml")
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{"calls.yaml:1:4: [0]: a call must have a server and a tool", `calls.yaml:2:24: [1].argumets: is not a known key here; did you mean "arguments"?`, "calls.yaml:3:", "calls.yaml:4:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if _, err := ParseExamples(nil, "calls.yaml"); err == nil || !strings.Contains(err.Error(), "contains no calls") {
		t.Error(err)
	}
}

func TestUnmetExpectationListsDifferences(t *testing.T) {
	e := Expect{Level: new(1), Deny: new(true), Rule: new("x"), Sandbox: new("none"), Approval: new("any")}
	got := e.Unmet(Assessment{Level: 3, Rule: "y", Sandbox: "container"})
	want := []string{"The level should be 1 but is 3.", "deny should be true but is false.", "The rule should be x but is y.", "The sandbox should be none but is container.", "The approval should be any but is none."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := (&Expect{Level: new(2), Approval: new("any")}).Unmet(Assessment{Level: 2, Approval: &Approval{By: ByCaller}}); got != nil {
		t.Error(got)
	}
}
