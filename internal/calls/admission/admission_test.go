package admission

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// oneTool is a catalog of one server, bank, with one tool, pay.
type oneTool struct {
	server  catalog.Server
	tool    catalog.Tool
	schemas *validate.Cache
}

func (c *oneTool) Server(id schema.ServerID) (catalog.Server, error) {
	if id != "bank" {
		return catalog.Server{}, schema.Errorf(schema.KindNotFound, "There is no server %q.", id)
	}
	return c.server, nil
}

func (c *oneTool) Tool(server schema.ServerID, name string) (catalog.Tool, error) {
	if server != "bank" || name != "pay" {
		return catalog.Tool{}, schema.Errorf(schema.KindNotFound, "There is no tool %q.", name)
	}
	return c.tool, nil
}

func (c *oneTool) Schema(t catalog.Tool) (*validate.Schema, error) {
	return c.schemas.Get(t.Digest, t.Input)
}

// gate returns a gate before bank/pay, whose amount is a number, and the catalog, which a
// test may change. policy is its text, "" for none.
func gate(t *testing.T, policy string) (*Gate, *oneTool) {
	t.Helper()
	raw := json.RawMessage(`{"name":"pay","inputSchema":{"type":"object","properties":{"amount":{"type":"number"}}}}`)
	c := &oneTool{
		schemas: validate.NewCache(8),
		tool: catalog.Tool{
			Tool:    &schema.Tool{Server: "bank", Name: "pay", Raw: raw, Digest: schema.Digest(raw), Input: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"}}}`)},
			Switch:  switchtable.Switch{Server: "bank", Tool: "pay", Enabled: true},
			Timeout: 20 * time.Second, Safe: true, Retry: &schema.Retry{Attempts: 2}, Risk: 1,
		},
	}
	c.server.ID = "bank"
	o := Options{Catalog: c, Limits: Limits{ArgumentBytes: 64, ArgumentDepth: 3, MaxTimeout: time.Minute}}
	if policy != "" {
		p, err := risk.Parse([]byte(policy), "policy")
		if err != nil {
			t.Fatal(err)
		}
		o.Policy = risk.NewHolder(p)
	}
	return NewGate(o), c
}

func payment(arguments string) *schema.Call {
	return &schema.Call{Server: "bank", Tool: "pay", Arguments: []byte(arguments), Principal: schema.Principal{Name: "ada"}}
}

func TestARefusalSaysWhichCheckFailed(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		change func(*oneTool)
		call   func(*schema.Call)
		kind   schema.Kind
		detail string
	}{
		"a negative timeout":       {call: func(c *schema.Call) { c.Timeout = -1 }, kind: schema.KindInvalidRequest, detail: "between 1 and 60000"},
		"a timeout over the limit": {call: func(c *schema.Call) { c.Timeout = time.Minute + 1 }, kind: schema.KindInvalidRequest},
		"an unknown tool":          {call: func(c *schema.Call) { c.Tool = "steal" }, kind: schema.KindNotFound},
		"a disabled tool": {change: func(c *oneTool) { c.tool.Switch.Enabled, c.tool.Switch.Reason = false, "closed for today" },
			kind: schema.KindDisabled, detail: "closed for today"},
		"an offline server":        {change: func(c *oneTool) { c.tool.Offline = "it does not start." }, kind: schema.KindUnavailable, detail: "it does not start."},
		"arguments that are large": {call: func(c *schema.Call) { c.Arguments = []byte(`{"x":"` + strings.Repeat("y", 64) + `"}`) }, kind: schema.KindTooLarge},
		"arguments that are deep":  {call: func(c *schema.Call) { c.Arguments = []byte(`{"x":[[[1]]]}`) }, kind: schema.KindInvalidRequest},
		"arguments cut short":      {call: func(c *schema.Call) { c.Arguments = []byte(`{"x":`) }, kind: schema.KindInvalidRequest},
		"arguments of a wrong type": {call: func(c *schema.Call) { c.Arguments = []byte(`{"amount":"much"}`) },
			kind: schema.KindInvalidArguments, detail: "schema of tool"},
		"a denial of the policy": {policy: "rules:\n  - {name: d, match: {tool: pay}, deny: no payments}\n", kind: schema.KindForbidden, detail: "no payments"},
		"no sandbox":             {policy: "rules:\n  - {name: s, match: {tool: pay}, sandbox: container}\n", kind: schema.KindForbidden, detail: "has none"},
		"a weaker sandbox than the policy names": {policy: "rules:\n  - {name: s, match: {tool: pay}, sandbox: container}\n",
			change: func(c *oneTool) {
				c.tool.Sandbox = &schema.Sandbox{Isolation: schema.IsolationBubblewrap, Ready: true}
			}, kind: schema.KindForbidden, detail: "weaker"},
		"a container that is not ready": {policy: "rules:\n  - {name: s, match: {tool: pay}, sandbox: container}\n",
			change: func(c *oneTool) {
				c.tool.Sandbox = &schema.Sandbox{Isolation: schema.IsolationContainer, Error: "no engine."}
			}, kind: schema.KindUnavailable, detail: "no engine."},
	} {
		t.Run(name, func(t *testing.T) {
			g, cat := gate(t, c.policy)
			if c.change != nil {
				c.change(cat)
			}
			call := payment(`{"amount":1}`)
			if c.call != nil {
				c.call(call)
			}
			_, err := g.Admit(call)
			if schema.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.detail) {
				t.Fatalf("%s: %v, want %s with %q", schema.KindOf(err), err, c.kind, c.detail)
			}
		})
	}
}

func TestAnAdmittedCallIsCompletedAndKeepsItsBytes(t *testing.T) {
	g, cat := gate(t, "")
	text := `{ "amount" : 1.0 }`
	call := payment(text)
	v, err := g.Admit(call)
	if err != nil {
		t.Fatal(err)
	}
	if string(call.Arguments) != text || call.ToolDigest != cat.tool.Digest || !call.Safe || call.Retry != cat.tool.Retry || call.Timeout != 20*time.Second {
		t.Errorf("%+v", call)
	}
	if v.Tool.Name != "pay" || v.Assessment.Level != risk.Low || v.Assessment.Approval != nil || v.Assessment.Durable {
		t.Errorf("%+v", v)
	}
	own := payment(text)
	own.Timeout = time.Second
	if _, err := g.Admit(own); err != nil || own.Timeout != time.Second {
		t.Errorf("%v, %s: the caller's own timeout counts", err, own.Timeout)
	}
}

func TestFaultHasAPointerIntoTheArguments(t *testing.T) {
	g, _ := gate(t, "")
	_, err := g.Check(payment(`{"amount":"much"}`))
	e := schema.AsError(err)
	if len(e.Faults) != 1 || e.Faults[0].Pointer != "/amount" || strings.Contains(e.Detail, "much") {
		t.Errorf("%+v", e)
	}
}

func TestVerdictHasTheRequirementsOfThePolicy(t *testing.T) {
	g, _ := gate(t, "rules:\n  - {name: a, match: {tool: pay}, when: args.amount > 100, approval: {groups: [ops]}}\n  - {name: b, match: {tool: pay}, level: 1, durable: true}\n")
	large, err := g.Check(payment(`{"amount":1000}`))
	if err != nil || large.Assessment.Approval == nil {
		t.Fatalf("%+v, %v: want an approval", large.Assessment, err)
	}
	small, err := g.Check(payment(`{"amount":1}`))
	if err != nil || small.Assessment.Approval != nil || !small.Assessment.Durable {
		t.Errorf("%+v, %v: want a durable call", small.Assessment, err)
	}
	if g.PolicyVersion() != large.Assessment.Version {
		t.Errorf("the policy is %q, the verdict is of %q", g.PolicyVersion(), large.Assessment.Version)
	}
}

func TestHighRiskCallNeedsAReadySandbox(t *testing.T) {
	g, cat := gate(t, "")
	cat.tool.Risk = risk.High
	if _, err := g.Check(payment(`{}`)); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("without a sandbox: %v", err)
	}
	cat.tool.Sandbox = &schema.Sandbox{Isolation: schema.IsolationBubblewrap, Ready: true}
	if _, err := g.Check(payment(`{}`)); err != nil {
		t.Errorf("with one: %v", err)
	}
	cat.tool.Sandbox.Ready, cat.tool.Sandbox.Error = false, "bwrap is missing."
	_, err := g.Check(payment(`{}`))
	if e := schema.AsError(err); e == nil || e.Kind != schema.KindUnavailable || !e.Retryable || e.RetryAfter == 0 || !strings.Contains(e.Detail, "must run in a sandbox") {
		t.Errorf("with one that is not ready: %+v", e)
	}
}

func TestNonToolRequestIsCheckedByServer(t *testing.T) {
	read := func() *schema.Call {
		return &schema.Call{Method: schema.MethodReadResource, Server: "bank", Arguments: []byte(`{"uri":"x:1"}`)}
	}
	g, cat := gate(t, "")
	if v, err := g.Admit(read()); err != nil || v.Tool.Tool != nil {
		t.Errorf("%+v, %v", v, err)
	}
	long := read()
	long.Arguments = []byte(`{"uri":"` + strings.Repeat("x", 64) + `"}`)
	if _, err := g.Admit(long); schema.KindOf(err) != schema.KindTooLarge {
		t.Errorf("large params: %v", err)
	}
	elsewhere := read()
	elsewhere.Server = "shop"
	if _, err := g.Admit(elsewhere); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("an unknown server: %v", err)
	}
	cat.server.HighestRisk = risk.Medium
	if _, err := g.Admit(read()); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("what would wait for an approval: %v", err)
	}
	cat.server.HighestRisk = risk.High
	if err := g.CheckMethod(read()); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("high risk without a sandbox: %v", err)
	}
	cat.server.BestSandbox = &schema.Sandbox{Isolation: schema.IsolationContainer, Ready: true}
	if err := g.CheckMethod(read()); err != nil {
		t.Errorf("high risk in a sandbox: %v", err)
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	if got := NewGate(Options{}).Limits(); got != (Limits{1 << 20, 64, time.Hour}) {
		t.Errorf("%+v", got)
	}
}
