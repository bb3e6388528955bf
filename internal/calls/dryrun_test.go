package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shopInput is the schema of the arguments of all tools.
const shopInput = `{"type":"object","properties":{"whole":{"type":"integer"}}}`

// testCatalog is a catalog of the servers s0, s1, … with the tools read, write and drop, and off, which
// is disabled. In s3 a container is not ready.
type testCatalog struct{ schemas *validate.Cache }

var hints = map[string]string{"read": `{"readOnlyHint":true}`, "write": `{"destructiveHint":false}`, "drop": `{"destructiveHint":true}`, "off": `{}`}

func (testCatalog) Server(id schema.ServerID) (catalog.Server, error) { return catalog.Server{}, nil }

func (testCatalog) Tool(server schema.ServerID, name string) (catalog.Tool, error) {
	if hints[name] == "" {
		return catalog.Tool{}, schema.Errorf(schema.KindNotFound, "There is no tool %q.", name)
	}
	raw := json.RawMessage(`{"name":"` + name + `","inputSchema":` + shopInput + `,"annotations":` + hints[name] + `}`)
	return catalog.Tool{
		Tool:   &schema.Tool{Server: server, Name: name, Raw: raw, Digest: "d-" + name, Input: json.RawMessage(shopInput)},
		Switch: switchtable.Switch{Enabled: name != "off"}, Risk: int(server[1]-'0') % 4,
		Sandbox: &schema.Sandbox{Isolation: schema.IsolationContainer, Ready: server != "s3", Error: "no image"},
	}, nil
}

func (s testCatalog) Schema(t catalog.Tool) (*validate.Schema, error) {
	return s.schemas.Get(t.Digest, t.Input)
}

// answers is a router whose tools answer immediately.
type answers struct{}

func (answers) Do(context.Context, *schema.Call) (*schema.Result, error) {
	return &schema.Result{Body: []byte(`{}`), Worker: "w", Took: time.Millisecond}, nil
}

func (answers) Place(*dispatch.AsyncCall) {}

// openTestCalls returns the gate of a test catalog, the chain that runs its calls, and a Calls.
func openTestCalls(t *testing.T, policy *risk.Policy) (*admission.Gate, *execution.Chain, *Calls) {
	t.Helper()
	return openTestCallsWith(t, risk.NewHolder(policy))
}

// openTestCallsWith is openTestCalls with a policy that can be replaced.
func openTestCallsWith(t *testing.T, policy *risk.Holder) (*admission.Gate, *execution.Chain, *Calls) {
	t.Helper()
	r, err := records.Open(t.Context(), bustest.Start(t).Connect(t, "frontdoor"), records.Options{FrontDoor: "frontdoor-1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	gate := admission.NewGate(admission.Options{Catalog: testCatalog{validate.NewCache(8)}, Policy: policy})
	chain := execution.New(execution.Options{Gate: gate, Router: answers{}, Metrics: telemetry.NewMetrics(), Records: r})
	return gate, chain, New(Options{Gate: gate, Chain: chain, Records: r})
}

// randomPolicy makes a policy of n rules.
func randomPolicy(t *testing.T, rnd *rand.Rand, n int) *risk.Policy {
	t.Helper()
	conditions := []string{"", "", `args.n > 3`, `has(args.n) && args.n == 1`, `"ops" in principal.groups`, `principal.name == "ada"`, `principal.owner == "team"`}
	outcomes := []string{"deny: no", "level: 1", "level: 2", "level: 3", "approval: {groups: [ops]}", "sandbox: container"}
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: r%d\n    match: {server: %q, tool: %q}\n    %s\n", i, fmt.Sprintf("s%d", rnd.IntN(10)), []string{"*", "read", "write", "d*"}[rnd.IntN(4)], outcomes[rnd.IntN(len(outcomes))])
		if when := conditions[rnd.IntN(len(conditions))]; when != "" {
			fmt.Fprintf(&b, "    when: '%s'\n", when)
		}
	}
	p, err := risk.Parse([]byte(b.String()), "policy")
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return p
}

func randomCall(rnd *rand.Rand) *schema.Call {
	return &schema.Call{
		ID: schema.NewCallID(), Server: schema.ServerID(fmt.Sprintf("s%d", rnd.IntN(10))), Tool: []string{"read", "write", "drop"}[rnd.IntN(3)],
		Arguments: []byte([]string{`{}`, `{}`, `{"n":1}`, `{"n":9}`, `{"n":"x"}`}[rnd.IntN(5)]),
		Principal: schema.Principal{Name: []string{"ada", "bob"}[rnd.IntN(2)], Owner: "team", Groups: [][]string{nil, {"ops"}, {"dev", "ops"}}[rnd.IntN(3)]},
	}
}

// decidedBy is a decision with its rule.
type decidedBy struct {
	decision risk.Decision
	rule     string
}

func TestADryRunDecidesAsTheGateWould(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	gate, chain, c := openTestCalls(t, randomPolicy(t, rnd, 12))
	made := make([]*schema.Call, 600)
	for i := range made {
		made[i] = randomCall(rnd)
		_, _ = chain.Submit(t.Context(), made[i]) // refused calls are recorded too
	}
	_, _ = chain.Submit(t.Context(), &schema.Call{Server: "s1", Tool: "none", Arguments: []byte(`{}`)})
	for range 25 {
		draft := randomPolicy(t, rnd, 1+rnd.IntN(20))
		d, err := c.DryRun(t.Context(), DryRunQuery{Policy: draft, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), MaxChanges: 1000})
		if err != nil {
			t.Fatal(err)
		}
		was, now, all := map[schema.CallID]risk.Decision{}, map[schema.CallID]decidedBy{}, map[decidedBy]int{}
		withArguments := 0
		for _, call := range made {
			v, err := gate.Check(call)
			was[call.ID], _ = v.Decision(err)
			v, err = gate.With(draft).Check(call)
			var by decidedBy
			by.decision, by.rule = v.Decision(err)
			now[call.ID] = by
			all[by]++
			if string(call.Arguments) != "{}" {
				withArguments++
			}
		}
		for _, change := range d.Changes {
			if got := (decidedBy{change.Now, change.NowRule}); got != now[change.ID] || change.Was != was[change.ID] || change.Was == change.Now {
				t.Errorf("%s changes from %s to %+v; the gates decide %s and %+v", change.ID, change.Was, got, was[change.ID], now[change.ID])
			}
		}
		known := 0
		for _, r := range d.Rules {
			for decision, n := range map[risk.Decision]int{risk.Allowed: r.Allowed, risk.Held: r.Held, risk.Refused: r.Refused} {
				known += n
				if most := all[decidedBy{decision, r.Rule}]; n > most {
					t.Errorf("rule %q: %d are %s, and the gate decides so on %d", r.Rule, n, decision, most)
				}
			}
		}
		if d.Calls != len(made) || d.NotJudged != 1 || known+d.Unknown.Total != len(made) || d.Unknown.Total != d.Unknown.Arguments || d.Unknown.Total > withArguments || len(d.Changes) != d.Changed {
			t.Errorf("of %d calls, %d with arguments: %d known, %+v", len(made), withArguments, known, d)
		}
	}
}

// dryRunCalls is the number of calls for the measurement. The variable sets it to the documented
// number.
func dryRunCalls() int {
	if n, err := strconv.Atoi(os.Getenv("CALLYARD_TEST_DRYRUN_CALLS")); err == nil {
		return n
	}
	return 5000
}

func TestADryRunOverManyCallsTakesSeconds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	_, _, c := openTestCalls(t, risk.Default())
	n := dryRunCalls()
	for i := range n {
		call := randomCall(rnd)
		rec := records.Record{
			ID: call.ID, Server: call.Server, Tool: call.Tool, Principal: call.Principal.Name, Owner: call.Principal.Owner, State: schema.StateSucceeded, Worker: "w",
			Arguments: records.DigestOf(call.Arguments), ArgumentBytes: int64(len(call.Arguments)),
			PolicyDecision: records.PolicyDecision{Decision: risk.Allowed, Groups: records.JoinGroups(call.Principal.Groups)},
		}
		c.o.Records.Add(&rec)
		if i%2000 == 0 {
			if err := c.o.Records.Sync(t.Context()); err != nil { // the recorder's queue is bounded
				t.Fatal(err)
			}
		}
	}
	if err := c.o.Records.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	d, err := c.DryRun(t.Context(), DryRunQuery{Policy: randomPolicy(t, rnd, 50), From: began.Add(-time.Hour), To: began.Add(time.Hour), MaxChanges: 100})
	took := time.Since(began)
	if err != nil || d.Calls != n {
		t.Fatalf("%+v, %v", d, err)
	}
	t.Logf("a dry run of 50 rules over %d calls took %s: %d changed, %d unknown", n, took, d.Changed, d.Unknown.Total)
	if took > 5*time.Second && os.Getenv("CALLYARD_TEST_DRYRUN_CALLS") != "" {
		t.Errorf("it took %s", took)
	}
}
