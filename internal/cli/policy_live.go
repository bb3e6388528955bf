package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// livePolicyTest is the body of POST /policy/test. Arguments keep the bytes of the file.
type livePolicyTest struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Policy    *string         `json:"policy,omitempty"`
	Principal *livePrincipal  `json:"principal,omitempty"`
}

type livePrincipal struct {
	Name   string   `json:"name"`
	Owner  string   `json:"owner,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// testLive tests the examples at a running Callyard. If policy names a file, that policy replaces
// the one of the Callyard.
func testLive(ctx context.Context, c *client, policy string, files []string) error {
	var draft *string
	var faults []error
	if policy != "" {
		source, err := os.ReadFile(policy)
		if err != nil {
			return fail(exitUsage, "The policy cannot be read: %w.", err)
		}
		if _, err := risk.Parse(source, policy); err != nil {
			faults = append(faults, err)
		}
		draft = new(string(source))
	}
	examples, faults := readExamples(files, faults)
	for i := range examples {
		if e := &examples[i]; e.Input.ServerRisk != 0 || e.Input.TrustAnnotations || e.Input.Definition != nil {
			faults = append(faults, fail(exitUsage, "%s: risk_level, trust_annotations and definition cannot be tested with --live: the running servers have them.", e.where()))
		}
	}
	if len(faults) > 0 {
		return fail(exitUsage, "%w", errors.Join(faults...))
	}
	report := testReport{Calls: make([]exampleResult, 0, len(examples))}
	for i := range examples {
		t, version, err := askLive(ctx, c, &examples[i], draft)
		if err != nil {
			return err
		}
		if version != "" {
			report.Version = version
		}
		report.Calls = append(report.Calls, t)
	}
	return report.show(c.out)
}

// askLive tests one example. version is the version of the policy, or "" if the policy was not
// evaluated.
func askLive(ctx context.Context, c *client, e *fileExample, draft *string) (t exampleResult, version string, err error) {
	asked := livePolicyTest{Server: e.Input.Server, Tool: e.Input.Tool, Arguments: e.Input.Arguments, Policy: draft}
	// The default principal of an example is named local.
	if p := &e.Input.Principal; !reflect.DeepEqual(*p, schema.Principal{Name: "local"}) {
		asked.Principal = &livePrincipal{p.Name, p.Owner, p.Groups}
	}
	body, err := plainjson.Marshal(asked)
	if err != nil {
		return t, "", fail(exitUsage, "%s: the arguments are not valid JSON.", e.where())
	}
	var d callyard.PolicyDecision
	if _, err := c.report(ctx, with2(c.api.TestPolicyWithBody, mediaJSON, content(body)), &d); err != nil {
		return t, "", err
	}
	a := assessed(&d)
	return e.tried(&a), deref(d.PolicyVersion), nil
}

// assessed converts the response to an assessment, so that it is compared and printed like a local
// one.
func assessed(d *callyard.PolicyDecision) risk.Assessment {
	a := risk.Assessment{Deny: d.Decision == "refused", Rule: deref(d.Rule), Durable: d.Durable, Reasons: d.Reasons}
	if d.RiskLevel != nil {
		a.Level = int(*d.RiskLevel)
	}
	if d.Sandbox != nil {
		a.Sandbox = string(*d.Sandbox)
	}
	if p := d.Approval; p != nil {
		a.Approval = &risk.Approval{By: string(p.By), Groups: p.Groups, Needed: int(p.Needed), Expires: time.Duration(p.ExpiresMs) * time.Millisecond}
	}
	if d.Error != nil && len(a.Reasons) == 0 {
		a.Reasons = []string{d.Error.Detail}
		for _, f := range d.Errors {
			a.Reasons = append(a.Reasons, strconv.Quote(f.Pointer)+": "+f.Message)
		}
	}
	return a
}
