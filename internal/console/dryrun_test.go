package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/console"
)

func TestPolicyPageDryRunsADraft(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /configuration":   `{"processes":[],"disagreements":[]}`,
		"GET /state":           `{"format":"callyard-state/1","policy":{"version":"v7","text":"rules:\n  - {name: <now>, level: 1}\n"}}`,
		"POST /policy/dry-run": `{"policy_version":"sha256:1","since":"2026-11-19T02:00:00Z","until":"2026-11-26T02:00:00Z","calls":1200,"changed":1,"not_judged":4,"unknown":{"total":7,"arguments":7,"groups":0,"tools":0},"rules":[{"rule":"large","allowed":0,"held":3,"refused":0,"unknown":7,"changed":1},{"rule":"","allowed":0,"held":0,"refused":0,"unknown":0,"changed":0}],"changes":[{"id":"call_1","server":"bank","tool":"pay","principal":"ada","created":"2026-11-26T01:00:00Z","was":"allowed","now":"held","now_rule":"large"}]}`,
	})
	k := openDesk(t, d, func(o *console.Options) {
		o.Now = func() time.Time { return time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC) }
	})
	p := k.get("/console/policy")
	p.has(t, "Try a draft", `<option value="7d" selected>`, "Rules in force", "spellcheck=\"false\" autocapitalize=\"off\" autocomplete=\"off\" required>\nrules:\n  - {name: &lt;now&gt;, level: 1}\n</textarea>")
	p.hasNot(t, "Decisions by rule")
	p = k.post("/console/policy", "draft", "rules:\r\n  - {name: large, level: 2}\r\n", "since", "1d")
	p.has(t, "1,200 calls, 1 decided differently.", "7 cannot be determined", "arguments that are not stored", "4 more were refused", "<strong>large</strong>", `href="/console/call?at=2026-11-26T01%3A00%3A00Z&amp;id=call_1"`, "Rules in force", "Allowed", "Held", `<option value="1d" selected>`, "- {name: large, level: 2}")
	p.hasNot(t, "no rule</span></td><td data-label=\"Allowed\"")
	if got := d.last("POST /policy/dry-run").body; got != `{"policy":"rules:\n  - {name: large, level: 2}\n","since":"2026-11-25T02:00:00Z"}` {
		t.Errorf("asked %s", got)
	}
	d.set("POST /policy/dry-run", "!forbidden It requires the scope admin.")
	if p = k.post("/console/policy", "draft", "rules: []", "since", "never"); p.status != http.StatusForbidden {
		t.Errorf("without the scope: %d", p.status)
	}
	p.has(t, "It requires the scope admin.", "rules: []", `<option value="7d" selected>`)
}

func TestACallWhoseArgumentsAreStoredIsReplayed(t *testing.T) {
	const call = `"state":"succeeded","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z"`
	d := openDoor(t, map[string]string{
		"GET /calls":                `{"calls":[]}`,
		"GET /calls/call_1":         `{"id":"call_1",` + call + `,"replay_of":"call_0","arguments":{"message":"<hi>",  "n":9007199254740993}}`,
		"GET /calls/call_2":         `{"id":"call_2",` + call + `}`,
		"POST /calls/call_1/replay": `{"outcome":"accepted","id":"call_3",` + call + `}`,
		"POST /calls/call_2/replay": "!conflict The arguments of call call_2 are not stored.",
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/call?id=call_1")
	p.has(t, `&#34;message&#34;:`, "&lt;hi&gt;", "9007199254740993", `value="replay"`, `href="/console/call?id=call_0"`)
	if got := d.last("GET /calls/call_1").query; got != "include=arguments" {
		t.Errorf("asked %q", got)
	}
	_, once, _ := strings.Cut(p.body, `name="once" value="`)
	once, _, _ = strings.Cut(once, `"`)
	if p = k.post("/console/call", "id", "call_1", "do", "replay", "once", once); p.status != http.StatusSeeOther {
		t.Errorf("replaying: %d %s", p.status, p.body)
	}
	sent := d.last("POST /calls/call_1/replay").header
	if sent.Get("Prefer") != "respond-async" || !strings.HasPrefix(sent.Get("Idempotency-Key"), once+"-") {
		t.Errorf("the replay was sent with %v", sent)
	}
	k.get("/console/call?id=call_2").hasNot(t, `value="replay"`)
	if p = k.post("/console/call", "id", "call_2", "do", "replay"); p.status != http.StatusConflict {
		t.Errorf("without arguments: %d", p.status)
	}
}
