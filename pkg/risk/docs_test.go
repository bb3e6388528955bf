package risk

import (
	"os"
	"regexp"
	"testing"
)

// TestDocumentedPolicyExamplesAreValid parses every YAML block of the manual and runs its example
// calls against its first policy.
func TestDocumentedPolicyExamplesAreValid(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var policies []*Policy
	tried := 0
	for _, block := range regexp.MustCompile("(?s)```yaml( examples)?\n(.*?)```").FindAllSubmatch(text, -1) {
		if len(block[1]) == 0 {
			p := mustParse(t, string(block[2]))
			if found := p.Check(Known{}); found != nil {
				t.Error(found)
			}
			policies = append(policies, p)
			continue
		}
		examples, err := ParseExamples(block[2], "policy.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range examples {
			tried++
			if unmet := e.Expect.Unmet(policies[0].Assess(&e.Input)); unmet != nil {
				t.Errorf("%s: %v", e.Name, unmet)
			}
		}
	}
	if len(policies) != 2 || tried != 3 {
		t.Errorf("%d policies and %d calls in the manual", len(policies), tried)
	}
	outside := policies[1]
	for arguments, want := range map[string]bool{`{"path":"/home/a"}`: false, `{"path":"/home/../etc"}`: true, `{}`: true, `{"path":1}`: true} {
		if a := outside.Assess(&Input{Server: "files", Tool: "write_file", Arguments: []byte(arguments)}); a.Deny != want {
			t.Errorf("%s: %+v", arguments, a)
		}
	}
}
