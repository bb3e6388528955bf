package console_test

import (
	"net/http"
	"testing"
)

func TestACallIsTestedOnThePolicyPage(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /configuration": `{"processes":[],"disagreements":[]}`,
		"GET /state":         `{"format":"callyard-state/1","policy":{"version":"v7","text":"rules: []\n"}}`,
		"POST /policy/test":  `{"decision":"held","arguments":"valid","errors":[],"policy_version":"sha256:1","risk_level":2,"rule":"large <payment>","reasons":["It is much."],"approval":{"by":"groups","groups":["finance","ops"],"needed":2,"expires_ms":5400000},"durable":true}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/policy")
	p.has(t, "Test a call", `form="policy" name="call"`, `<form id="policy" method="post"`, `form="policy" name="do" value="test" formnovalidate`)
	p.hasNot(t, "Decision on the call", "aria-invalid")

	p = k.post("/console/policy", "do", "test", "call", " bank/pay/now ", "arguments", "{\r\n \"n\": 9007199254740993}", "draft", "rules: [] # mine", "since", "1h")
	if p.status != http.StatusOK {
		t.Fatalf("%d %s", p.status, p.body)
	}
	p.has(t, "Decision on the call", "Held", "large &lt;payment&gt;", "It is much.", "2 of finance, ops, within 1h30m", "<dt>Risk</dt><dd>medium</dd>", "match the schema", "<dt>Durable</dt><dd>yes</dd>",
		`value="bank/pay/now"`, "9007199254740993}</textarea>", "rules: [] # mine</textarea>", `<option value="1h" selected>`, "Rules in force")
	p.hasNot(t, "aria-invalid", " checked")
	if got := d.last("POST /policy/test").body; got != `{"server":"bank","tool":"pay/now","arguments":{"n":9007199254740993}}` {
		t.Errorf("asked %s", got)
	}
	p = k.post("/console/policy", "do", "test", "call", "bank/pay", "arguments", "", "draft", "rules: [] # <mine>", "drafted", "on")
	p.has(t, " checked")
	if got := d.last("POST /policy/test").body; got != `{"server":"bank","tool":"pay","arguments":{},"policy":"rules: [] # <mine>"}` {
		t.Errorf("asked %s", got)
	}
	// A dry run keeps the values of the test form.
	d.set("POST /policy/dry-run", "!forbidden It requires the scope admin.")
	k.post("/console/policy", "draft", "rules: []", "since", "1d", "call", "bank/pay", "arguments", "{typed", "drafted", "on").has(t, `value="bank/pay"`, "{typed", " checked")
}

func TestFaultsOfATestedCallAreShownAtTheirFields(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /configuration": `{"processes":[],"disagreements":[]}`, "GET /state": `{"format":"callyard-state/1"}`})
	k := openDesk(t, d, nil)
	const tool, arguments = `aria-invalid="true" aria-describedby="call-fault"`, `aria-invalid="true" aria-describedby="arguments-fault"`
	for _, c := range []struct {
		name, call, arguments, answer string
		status                        int
		says, hides                   []string
	}{
		{"no tool", "bank", "{}", "", 422, []string{tool, "Name a tool as SERVER/TOOL."}, []string{arguments}},
		{"no JSON", "bank/pay", "{n", "", 422, []string{arguments, "This is not valid JSON.", "{n</textarea>"}, []string{tool}},
		{"an unknown tool", "bank/pay", "{}", "!not-found There is no tool pay.", 404, []string{tool, "There is no tool pay."}, []string{arguments}},
		{"a name twice", "bank/pay", `{"a":1,"a":2}`, "!invalid-request A name comes twice.", 400, []string{arguments, "A name comes twice."}, []string{tool}},
		{"no right", "bank/pay", "{}", "!forbidden It requires the scope admin.", 403, []string{"It requires the scope admin."}, []string{tool, arguments}},
		{"arguments that do not fit", "bank/pay", `{"n":"x"}`, `{"decision":"refused","arguments":"invalid","errors":[{"pointer":"/n","message":"expected a number"}],"error":{"kind":"invalid_arguments","detail":"They do not match."},"reasons":[],"durable":false}`, 200,
			[]string{arguments, "<code>/n</code> expected a number", "Refused", "before the policy was evaluated", "They do not match."}, []string{tool, "<dt>Risk", "<dt>Durable"}},
	} {
		d.set("POST /policy/test", c.answer)
		p := k.post("/console/policy", "do", "test", "call", c.call, "arguments", c.arguments, "draft", "")
		if p.status != c.status {
			t.Errorf("%s: %d %s", c.name, p.status, p.body)
		}
		p.has(t, append(c.says, `value="`+c.call+`"`)...)
		p.hasNot(t, c.hides...)
	}
}
