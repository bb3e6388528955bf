package calls

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// PolicyTestRequest is the body of POST /policy/test.
type PolicyTestRequest struct {
	Server    schema.ServerID      `json:"server" doc:"The id of the server."`
	Tool      string               `json:"tool" doc:"The name of the tool."`
	Arguments json.RawMessage      `json:"arguments,omitempty" doc:"The arguments. The default is an empty object."`
	Policy    string               `json:"policy,omitempty" doc:"A draft: the text of a policy file. It is used instead of the policy of the platform in force. It requires the scopes of POST /policy/dry-run."`
	Principal *PolicyTestPrincipal `json:"principal,omitempty" doc:"The principal whose call is tested; the default is the caller. It requires the scopes of POST /policy/dry-run."`
}

// PolicyTestPrincipal is the principal of the call to judge.
type PolicyTestPrincipal struct {
	Name   string          `json:"name" doc:"The name of the principal."`
	Owner  string          `json:"owner,omitempty" doc:"The person or team behind the name."`
	Groups []string        `json:"groups,omitempty" doc:"The groups of the principal."`
	Tenant schema.TenantID `json:"tenant,omitempty" doc:"The tenant of the principal; the default is the default tenant. The policy of this tenant applies too."`
}

// testPolicy serves POST /policy/test. The arguments are neither stored nor logged.
func (c *handlers) testPolicy(x *httpapi.Exchange, r *http.Request) (*calls.PolicyDecision, error) {
	limit := maxDraftBody + c.limits.ArgumentBytes + submit.EnvelopeBytes
	members, err := x.ReadMembers(r, limit, c.limits.ArgumentDepth+1, "server", "tool", "arguments", "policy", "principal")
	if err != nil {
		return nil, err
	}
	call := &schema.Call{Principal: x.Principal}
	if err := submit.ReadMembers(members, call, c.limits.MaxTimeout); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(call.Arguments, []byte("{")) {
		return nil, httpapi.BadMember("arguments", "an object")
	}
	text, drafted := "", members["policy"] != nil
	if drafted || members["principal"] != nil {
		if err := x.MayDo(operationDryRun); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(httpapi.ReadMember(members, "policy", false, "a string, the text of a policy file", &text), readPrincipal(members["principal"], call)); err != nil {
		return nil, err
	}
	var draft *risk.Policy
	if drafted {
		if draft, err = readDraft(text); err != nil {
			return nil, err
		}
	}
	return calls.TestPolicy(c.calls, call, draft)
}

// readPrincipal reads the principal of the call, if the request names one. Restrictions of that
// principal's credential are not known.
func readPrincipal(raw json.RawMessage, call *schema.Call) error {
	if raw == nil {
		return nil
	}
	members, err := httpapi.ReadObject(raw, len(raw), 2, "name", "owner", "groups", "tenant")
	if err != nil {
		return httpapi.BadMember("principal", "an object with name, owner, groups and tenant")
	}
	p := schema.Principal{}
	if err := cmp.Or(
		httpapi.ReadMember(members, "name", true, "a string", &p.Name),
		httpapi.ReadMember(members, "owner", false, "a string", &p.Owner),
		httpapi.ReadMember(members, "groups", false, "a list of strings", &p.Groups),
		httpapi.ReadMember(members, "tenant", false, "a string, the name of a tenant", &p.Tenant),
	); err != nil {
		e := schema.AsError(err)
		for i := range e.Faults {
			e.Faults[i].Pointer = "/principal" + e.Faults[i].Pointer
		}
		return e
	}
	if p.Name == "" {
		return httpapi.BadMember("principal", "an object with a name that is not empty")
	}
	if !p.Tenant.OrDefault().Valid() {
		return httpapi.BadMember("principal", "an object whose tenant is the name of a tenant")
	}
	call.Principal = p
	return nil
}

func exampleDecision() map[string]any {
	return map[string]any{
		"decision": "held", "arguments": "valid", "durable": false, "risk_level": 2, "rule": "greetings", "policy_version": "sha256:71accd489c13", "errors": []any{},
		"reasons": []any{"The rule greetings requires an approval."}, "approval": map[string]any{"by": "groups", "groups": []any{"approvers"}, "needed": 1, "expires_ms": 600000},
	}
}

func (c *handlers) opTestPolicy(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/policy/test", "test-policy", openapi.TagCalls, "Test a call against the policy",
		"Returns the decision on a call with these arguments: allowed, held or refused, and why. The checks are those of a real call: the tool, its schema, the policy and the required isolation. Nothing is run, held or recorded, and the arguments are not logged. "+
			"It is judged as a call of the caller by the policy in force. A draft of a policy, or another principal, requires what a dry run of a policy requires. Quotas are not checked, and standing permissions, by which a held call can run at once, are not looked at.", http.StatusNotFound, http.StatusUnprocessableEntity)
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[PolicyTestRequest]()), true, "The call and, optionally, another policy or principal.", map[string]any{
		"server": "everything", "tool": "echo", "arguments": map[string]any{"message": "hello"},
		"policy": "rules:\n  - name: greetings\n    match: {tool: echo}\n    when: 'args.message.startsWith(\"hello\")'\n    approval: {groups: [approvers]}\n",
	})
	return op
}
