package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/risk"
)

// policyOf returns a policy of the text.
func policyOf(t *testing.T, text string) *risk.Holder {
	t.Helper()
	p, err := risk.Parse([]byte(text), "policy")
	if err != nil {
		t.Fatal(err)
	}
	return risk.NewHolder(p)
}

func TestACallIsReplayedWithTheSameBytesThroughThePolicy(t *testing.T) {
	policy := policyOf(t, "rules: [{name: ask, level: 2}]")
	lenient := policyOf(t, "rules: [{name: all, level: 1}]").Current()
	strict := policy.Current()
	policy.Replace(lenient)
	f := openFabricWith(t, frontdoortest.Options{Policy: policy}, nil)
	const args = `{"n": 9007199254740993,  "s":"x"}`
	stored := f.do("POST", "/servers/demo/tools/echo", args, "Prefer", "respond-async")
	id := strings.TrimPrefix(stored.header.Get("Location"), "/calls/")

	state := f.do("GET", "/calls/"+id+"?include=arguments&wait=10", "")
	if state.status != http.StatusOK || !strings.Contains(string(state.body), `"arguments":`+args+`}`) {
		t.Errorf("its state is %d %s", state.status, state.body)
	}
	if state = f.do("GET", "/calls/"+id, ""); strings.Contains(string(state.body), "arguments") {
		t.Errorf("nobody asked for the arguments: %s", state.body)
	}
	again := f.do("POST", "/calls/"+id+"/replay", "")
	next := again.header.Get("Callyard-Call-Id")
	if again.status != http.StatusOK || next == "" || next == id || !strings.Contains(string(again.body), "completed") {
		t.Fatalf("the replay: %d %s %s", again.status, next, again.body)
	}
	if last := f.Worker.Last(); string(last.Payload) != args || string(last.ID) != next {
		t.Errorf("the worker got %s %s", last.ID, last.Payload)
	}
	if state = f.do("GET", "/calls/"+next, ""); !strings.Contains(string(state.body), `"replay_of":"`+id+`"`) {
		t.Errorf("the new call is %s", state.body)
	}
	// The new call was not stored, so its arguments are not kept.
	p := problemOf(t, f.do("POST", "/calls/"+next+"/replay", ""))
	if p.Status != http.StatusConflict || !strings.Contains(p.Detail, "not stored") {
		t.Errorf("replaying a plain call: %+v", p)
	}
	durable := f.do("POST", "/calls/"+id+"/replay", "", "Prefer", "respond-async", "Idempotency-Key", "k1")
	twice := f.do("POST", "/calls/"+id+"/replay", "", "Prefer", "respond-async", "Idempotency-Key", "k1")
	if one := durable.header.Get("Callyard-Call-Id"); durable.status != http.StatusAccepted || one == "" || twice.header.Get("Callyard-Call-Id") != one {
		t.Errorf("twice with one key: %d %s, %d %s", durable.status, durable.body, twice.status, twice.body)
	} else if state = f.do("GET", "/calls/"+one, ""); !strings.Contains(string(state.body), `"replay_of":"`+id+`"`) {
		t.Errorf("the durable replay is %s", state.body)
	}

	policy.Replace(strict)
	held := f.do("POST", "/calls/"+id+"/replay", "")
	var h submit.ConfirmationRequest
	if err := json.Unmarshal(held.body, &h); err != nil || held.status != http.StatusAccepted || h.Outcome != "held" {
		t.Fatalf("a policy that holds it: %d %s", held.status, held.body)
	}
	state = f.do("GET", "/calls/"+string(h.CallID)+"?include=arguments", "")
	if !strings.Contains(string(state.body), `"replay_of":"`+id+`"`) || !strings.Contains(string(state.body), `"arguments":`+args) {
		t.Errorf("the held replay is %s", state.body)
	}
	if p := problemOf(t, f.do("POST", "/calls/call_06b2t8m3c0w3v2q5n7k9a1d4fz/replay", "")); p.Status != http.StatusNotFound {
		t.Errorf("an unknown call: %+v", p)
	}
	if strings.Contains(f.Logged.String(), "9007199254740993") {
		t.Error("arguments are in the log")
	}
}

func TestDraftPolicyIsComparedWithRecordedDecisions(t *testing.T) {
	policy := policyOf(t, "rules: [{name: all, level: 1}]")
	f := openFabricWith(t, frontdoortest.Options{Policy: policy}, nil)
	call := func(args string, header ...string) string {
		a := f.do("POST", "/servers/demo/tools/echo", args, header...)
		if a.status > http.StatusAccepted {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if id := strings.TrimPrefix(a.header.Get("Location"), "/calls/"); id != "" && len(header) > 0 {
			f.do("GET", "/calls/"+id+"?wait=10", "")
		}
		return a.header.Get("Callyard-Call-Id")
	}
	call(`{"n":1}`)                                     // not kept
	small := call(`{"n":1}`, "Prefer", "respond-async") // kept by the journal
	large := call(`{"n":9}`, "Prefer", "respond-async") //
	policy.Replace(policyOf(t, "rules: [{name: ask, level: 2}]").Current())
	held := call(`{"n":9}`) // kept by the ledger
	dry := func(draft string) (d calls.DryRun) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"policy": draft})
		if err != nil {
			t.Fatal(err)
		}
		a := f.do("POST", "/policy/dry-run", string(body), "Content-Type", "application/json")
		if a.status != http.StatusOK || json.Unmarshal(a.body, &d) != nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return d
	}
	d := dry("rules:\n  - {name: large, when: args.n > 5, deny: too much}\n  - {name: rest, level: 1}\n")
	if len(d.Changes) != 2 {
		t.Fatalf("the changes are %+v", d)
	}
	was := map[string]risk.Decision{held: risk.Held, large: risk.Allowed}
	for _, got := range d.Changes {
		if got.Was != was[string(got.ID)] || got.Now != risk.Refused || got.NowRule != "large" {
			t.Errorf("a change is %+v; decided was %v", got, was)
		}
	}
	want := []calls.DryRunRule{{Rule: "large", Refused: 2, Unknown: 1, Changed: 2}, {Rule: "rest", Allowed: 1}, {}}
	for i := range want {
		if len(d.Rules) != len(want) || d.Rules[i] != want[i] {
			t.Errorf("the rules are %+v; %s is the small one", d.Rules, small)
		}
	}
	if d.Calls != 4 || d.Unknown.Arguments != 1 || d.Unknown.Total != 1 {
		t.Errorf("the sums are %+v", d)
	}
	if d = dry("rules: [{name: all, level: 1}]"); d.Changed != 1 || d.Unknown.Total != 0 || d.Rules[0].Allowed != 4 {
		t.Errorf("without arguments all is known: %+v", d)
	}
	p := problemOf(t, f.do("POST", "/policy/dry-run", `{"policy":"rules:\n  - {name: a}\n"}`, "Content-Type", "application/json"))
	if p.Status != http.StatusUnprocessableEntity || len(p.Errors) == 0 || !strings.Contains(p.Errors[0].Message, "line 2") {
		t.Errorf("a draft with a fault: %+v", p)
	}
}
