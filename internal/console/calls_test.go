package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/console"
)

const aRecord = `{"id":"call_1","state":"succeeded","server":"demo","tool":"echo","method":"tools/call","principal":"ada","owner":"team","arguments_digest":"sha256:a","arguments_bytes":16,"result_bytes":183,"created":"2026-11-26T02:00:00Z","started":"2026-11-26T02:00:01Z","ended":"2026-11-26T02:00:03Z","took_ms":2000,"worker":"worker_1","front_door":"frontdoor_1","attempt":2}`

func TestCallsAreListedWithFilters(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /calls": `{"calls":[` + aRecord + `]}`})
	k := openDesk(t, d, nil)
	p := k.get("/console/calls?state=failed&server=demo&tool=echo&since=2026-11-26T01%3A00&until=")
	p.has(t, `href="/console/call?id=call_1"`, "2 s", "Succeeded", `<option value="failed" selected>`, `data-live="parts"`)
	if got := d.last("GET /calls").query; got != "server=demo&tool=echo&state=failed&since=2026-11-26T01%3A00%3A00Z&limit=50" {
		t.Errorf("the list is %q", got)
	}
	k.get("/console/calls?since=yesterday").has(t, "Write a time as")
	if p = k.get("/console/calls?id=call_7"); p.header.Get("Location") != "/console/call?id=call_7" {
		t.Errorf("an id leads to %q", p.header.Get("Location"))
	}
	d.set("GET /calls", `{"calls":[`+strings.TrimSuffix(strings.Repeat(aRecord+",", 50), ",")+`],"next":"c1"}`)
	full := k.get("/console/calls?server=demo")
	full.has(t, `href="/console/calls?cursor=c1&amp;server=demo"`)
	full.hasNot(t, "Further calls that match")
}

func TestCallsOfAnotherKeyAreListed(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /calls": `{"calls":[` + aRecord + `]}`})
	k := openDesk(t, d, nil)
	k.key = "door-key"
	k.get("/console/calls?key=bot").has(t, "Calls of the key <strong>bot</strong>", `name="key" value="bot"`, `href="/console/call?at=2026-11-26T02%3A00%3A00Z&amp;id=call_1"`)
	if got := d.last("GET /calls").query; got != "principal=bot&limit=50" {
		t.Errorf("the list is %q", got)
	}
	k.get("/console/calls?key=*&tenant=red").has(t, "Calls of all callers of the tenant <strong>red</strong>")
	d.set("GET /calls?principal=bot&limit=50", "!forbidden Your key sees its own calls only.")
	p := k.get("/console/calls?key=bot")
	p.has(t, "Your key may list its own calls only.", "Calls of your key", `href="/console/call?id=call_1"`)
	d.set("GET /calls", `{"calls":[]}`)
	k.get("/console/calls").has(t, "Your key has made no calls yet.", `href="/console/tools"`, `href="/console/calls?key=*"`)

	k.key = "" // the front door of plain callyard up, with one caller for all calls
	p = k.get("/console/calls")
	p.has(t, "All calls, the newest first.", "There are no calls yet.")
	p.hasNot(t, "your key", "Your key", `href="/console/calls?key=*"`)
	d.set("GET /calls?principal=%2A&limit=50", "!forbidden You can list only your own calls; omit principal.")
	p = k.get("/console/calls?key=*")
	p.has(t, "All calls, the newest first.")
	p.hasNot(t, `role="alert"`)
	k.get("/console/calls?key=bot").has(t, "The front door asks for no key")
}

// Most calls are made by programs whose keys cannot settle them, so an administrator does.
func TestAdministratorSettlesTheCallOfAnotherCaller(t *testing.T) {
	const lost = `{"id":"call_1","state":"unknown","durable":true,"server":"demo","tool":"pay","method":"tools/call","principal":"bot","tenant":"red","arguments_digest":"sha256:a","arguments_bytes":16,"result_bytes":0,"created":"2026-11-26T02:00:00Z","ended":"2026-11-26T02:00:03Z","attempt":1,"batch_id":"batch_1","error":{"kind":"outcome-unknown","detail":"The worker died."}}`
	const plain = `{"id":"call_2","state":"unknown","server":"demo","tool":"pay","method":"tools/call","principal":"bot","arguments_bytes":16,"result_bytes":0,"created":"2026-11-26T02:00:00Z","attempt":1}`
	failed := func(id, kind string, attempt int) string {
		return fmt.Sprintf(`{"id":%q,"state":"failed","durable":true,"server":"demo","tool":"pay","method":"tools/call","principal":"bot","arguments_bytes":16,"result_bytes":0,"created":"2026-11-26T02:00:00Z","attempt":%d,"error":{"kind":%q,"detail":"It did not start."}}`, id, attempt, kind)
	}
	d := openDoor(t, map[string]string{
		"GET /calls":                `{"calls":[` + lost + `,` + plain + `,` + failed("call_3", "server-failed", 3) + `,` + failed("call_4", "unavailable", 0) + `,` + failed("call_5", "tool-protocol-error", 1) + `,` + failed("call_6", "outcome-unknown", 8) + `]}`,
		"GET /calls/call_1":         "!not-found You have no such call.",
		"GET /calls/call_2":         "!not-found You have no such call.",
		"GET /calls/call_3":         "!not-found You have no such call.",
		"GET /calls/call_4":         "!not-found You have no such call.",
		"GET /calls/call_5":         "!not-found You have no such call.",
		"GET /calls/call_6":         "!not-found You have no such call.",
		"POST /calls/call_1/settle": `{"id":"call_1","state":"succeeded","server":"demo","tool":"pay","created":"2026-11-26T02:00:00Z"}`,
	})
	k := openDesk(t, d, nil)
	const address = "/console/call?at=2026-11-26T02%3A00%3A00Z&id=call_1"
	k.get("/console/calls?key=*&state=unknown").has(t, `href="`+strings.ReplaceAll(address, "&", "&amp;")+`"`)
	p := k.get(address)
	p.has(t, "bot", "<dt>Tenant</dt><dd>red</dd>", "The worker died.", "Only the caller sees the arguments.", "Only the caller sees the result.", "It has not run", `name="at" value="2026-11-26T02:00:00Z"`, `href="/console/audit?call=call_1"`, "<code>batch_1</code>")
	p.hasNot(t, `value="replay"`, `value="cancel"`, "/console/batch?id")
	if got := d.last("GET /calls").query; got != "principal=%2A&since=2026-11-26T02%3A00%3A00Z&until=2026-11-26T02%3A00%3A01Z&limit=500" {
		t.Errorf("the record is looked up with %q", got)
	}
	p = k.post("/console/call", "id", "call_1", "at", "2026-11-26T02:00:00Z", "do", "done", "reason", "I looked.")
	if got := d.last("POST /calls/call_1/settle").body; got != `{"as":"done","reason":"I looked."}` || !strings.HasPrefix(p.header.Get("Location"), "/console/call?at=2026-11-26T02%3A00%3A00Z&done=settle") {
		t.Errorf("settled with %s, redirected to %q", got, p.header.Get("Location"))
	}
	p = k.post("/console/call", "id", "call_1", "at", "2026-11-26T02:00:00Z", "do", "run-again", "reason", "It is not there.")
	k.get(p.header.Get("Location")).has(t, "The call runs again", "data-live")
	p = k.get("/console/call?at=2026-11-26T02%3A00%3A00Z&id=call_2")
	p.has(t, "Unknown")
	p.hasNot(t, "It has not run") // a call that is not stored cannot be settled
	p = k.get("/console/call?at=2026-11-26T02%3A00%3A00Z&id=call_3")
	p.has(t, "Every attempt failed.", `value="run-again"`, "runs for its caller")
	p.hasNot(t, "It has not run")
	k.get("/console/call?at=2026-11-26T02%3A00%3A00Z&id=call_6").has(t, "Every attempt failed.")
	for _, id := range []string{"call_4", "call_5"} { // refused before an attempt, and ended by the tool's server
		k.get("/console/call?at=2026-11-26T02%3A00%3A00Z&id="+id).hasNot(t, `value="run-again"`)
	}
	d.set("GET /keys", "!forbidden The key lacks a scope.") // as for an auditor
	p = k.get(address)
	p.has(t, "The worker died.", "role tenant-admin or platform-admin")
	p.hasNot(t, "It has not run", `value="run-again"`)
	d.set("GET /calls", "!forbidden You can list only your own calls.")
	if p = k.get(address); p.status != http.StatusNotFound {
		t.Errorf("a key that may not see the call: %d", p.status)
	}
}

func TestEmptyCallsPageLinksToTheNext(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /calls": `{"calls":[]}`, "GET /calls?state=failed&limit=50": `{"calls":[],"next":"c1"}`,
		"GET /calls/call_1": `{"id":"call_1","state":"succeeded","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z"}`,
	})
	k := openDesk(t, d, nil)
	k.get("/console/calls?state=failed").has(t, "No calls match in this part of the log.", `href="/console/calls?cursor=c1&amp;state=failed"`)
	k.get("/console/calls?state=denied").has(t, "No calls match these filters.")
	d.set("GET /calls?state=canceled&limit=50", `{"calls":[`+aRecord+`],"next":"c1"}`)
	expired := strings.Replace(aRecord, `"state":"succeeded"`, `"state":"expired","error":{"kind":"expired","detail":"It has expired."}`, 1)
	d.set("GET /calls?state=expired&limit=50", `{"calls":[`+expired+`]}`)
	p := k.get("/console/calls?state=expired")
	p.has(t, "Expired")
	p.hasNot(t, `<span class="small muted">expired</span>`) // the state says it
	const short = "Further calls that match may be older."
	k.get("/console/calls?state=canceled").has(t, short, `href="/console/calls?cursor=c1&amp;state=canceled"`)
	d.set("GET /calls?state=succeeded&limit=50", `{"calls":[`+aRecord+`]}`)
	k.get("/console/calls?state=succeeded").hasNot(t, short)
	k.get("/console/call?id=call_1").has(t, "not found in the call records")
	of := "GET /calls?" + d.last("GET /calls").query
	d.set(of, `{"calls":[],"next":"c2"}`)
	d.set("GET /calls", `{"calls":[`+aRecord+`]}`) // any other cursor
	k.get("/console/call?id=call_1").has(t, "sha256:a")
}

func TestCallPageShowsTimelineAndCancelsOrSettles(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /calls":                `{"calls":[` + aRecord + `]}`,
		"GET /calls/call_1":         `{"id":"call_1","state":"succeeded","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z","ended":"2026-11-26T02:00:03Z","attempt":2,"approval_id":"appr_1","reasons":["It <writes>."],"batch_id":"batch_1","result":{"content":[{"type":"text","text":"Echo: hi"}]}}`,
		"GET /calls/call_2":         `{"id":"call_2","state":"running","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z"}`,
		"GET /calls/call_3":         `{"id":"call_3","state":"unknown","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z","ended":"2026-11-26T02:00:03Z","problem":{"type":"/problems/outcome-unknown","title":"x","status":504,"detail":"The worker died.","error":"","retryable":false}}`,
		"POST /calls/call_2/cancel": `{"id":"call_2","state":"canceled","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z"}`,
		"POST /calls/call_3/settle": `{"id":"call_3","state":"succeeded","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z"}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/call?id=call_1")
	p.has(t, "Admitted", "Held for approval", "It &lt;writes&gt;.", "Sent to the server", "after 2 s", "attempt 2", "2 s at the server", "Echo: hi", `href="/a/appr_1"`, `href="/console/batch?id=batch_1"`, "sha256:a")
	p.hasNot(t, "Cancel the call", "It has run", "data-live")
	p = k.get("/console/call?id=call_2")
	p.has(t, "Now running", "Cancel the call", "not found in the call records", "data-live")
	if csp := p.header.Get("Content-Security-Policy"); !strings.Contains(csp, "img-src 'self' data:") {
		t.Errorf("an image of the result that is to come is blocked by %q", csp)
	}
	if p = k.post("/console/call", "id", "call_2", "do", "cancel"); p.status != http.StatusSeeOther || d.last("POST /calls/call_2/cancel").route == "" {
		t.Errorf("canceling: %d", p.status)
	}
	p = k.get("/console/call?id=call_3")
	p.has(t, "The worker died.", "It has not run", "outcome-unknown", "The call has no result.")
	p.hasNot(t, "The result is not stored.")
	d.set("GET /keys", "!forbidden The key lacks a scope.") // as for a developer
	k.get("/console/call?id=call_3").hasNot(t, "It has not run")
	k.post("/console/call", "id", "call_3", "do", "done", "reason", "I looked.")
	if got := d.last("POST /calls/call_3/settle").body; got != `{"as":"done","reason":"I looked."}` {
		t.Errorf("settled with %s", got)
	}
	if p = k.post("/console/call", "id", "call_3", "do", "explode"); p.status != http.StatusBadRequest {
		t.Errorf("an act that is none: %d", p.status)
	}
	if p = k.get("/console/call?id=call_9"); p.status != http.StatusNotFound {
		t.Errorf("no such call: %d", p.status)
	}
}

func TestABatchShowsRateTimeLeftAndFailuresByKind(t *testing.T) {
	const counts = `"counts":{"waiting":60,"held":10,"succeeded":35,"tool_errors":2,"failed":5,"denied":0,"expired":0,"canceled":0,"unknown":0}`
	const running = `{"id":"batch_1","state":"running","calls":100,` + counts + `,"created":"2026-11-26T02:00:00Z","started":"2026-11-26T02:00:00Z","expires_at":"2026-11-27T02:00:00Z","labels":{"run":"<7>"}}`
	failed := `{"cursor":"1","index":0,"call_id":"call_5","state":"failed","problem":{"type":"/problems/timeout","title":"x","status":504,"detail":"It took too long.","error":"","retryable":false}}` + "\n"
	results := failed + `{"cursor":"2","index":1,"call_id":"call_6","state":"succeeded","tool_error":true}` + "\n" + failed + `{"cursor":"3","index":2,"call_id":"call_7","state":"succeeded"}` + "\n"
	d := openDoor(t, map[string]string{
		"GET /batches": `{"batches":[` + running + `]}`, "GET /batches/batch_1": running, "GET /batches/batch_1/results": results,
		"GET /batches/batch_1/held":    `{"calls":[{"approval_id":"appr_1","call_id":"call_8","by":"people","index":3,"server":"demo","tool":"pay","arguments_digest":"sha256:a","expires_at":"2026-11-27T02:00:00Z","risk_level":2,"reasons":["It pays."]}]}`,
		"POST /batches/batch_1/cancel": running,
	})
	k := openDesk(t, d, func(o *console.Options) {
		o.Now = func() time.Time { return time.Date(2026, 11, 26, 2, 0, 20, 0, time.UTC) }
	})
	k.get("/console/batches").has(t, `href="/console/batch?id=batch_1"`, "40 of 100 calls ended", "10 held", "run=&lt;7&gt;")
	p := k.get("/console/batch?id=batch_1")
	p.has(t, "2 calls per second", "about 25 s left", `value="40"`, `<strong>timeout</strong><span class="count">2</span>`, "It took too long.", `<strong>tool-error</strong><span class="count">1</span>`, `href="/a/appr_1"`)
	if p = k.get("/console/batch/results?id=batch_1"); p.body != results || !strings.Contains(p.header.Get("Content-Disposition"), `"batch_1.jsonl"`) {
		t.Errorf("the download is %q %v", p.body, p.header)
	}
	if p = k.get("/console/batch/results?id=batch_9"); p.status != http.StatusNotFound {
		t.Errorf("no such batch: %d", p.status)
	}
	if p = k.post("/console/batch", "id", "batch_1"); p.status != http.StatusSeeOther || d.last("POST /batches/batch_1/cancel").route == "" {
		t.Errorf("canceling: %d", p.status)
	}
}

func TestBatchIsShownWhenResultsCannotBeRead(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /batches/batch_1": `{"id":"batch_1","state":"running","calls":9,"counts":{"waiting":0,"held":0,"succeeded":0,"tool_errors":0,"failed":9,"denied":0,"expired":0,"canceled":0,"unknown":0},"created":"2026-11-26T02:00:00Z","expires_at":"2026-11-27T02:00:00Z"}`,
	})
	openDesk(t, d, nil).get("/console/batch?id=batch_1").has(t, "The failures could not be read; download the results.", "Cancel the batch")
}

func TestThePolicyPageChecksTools(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /configuration": `{"processes":[{"id":"worker_1","role":"worker","parts":[{"part":"policy","version":"v7","outcome":"loaded","since":"2026-01-01T00:00:00Z","tried":"2026-01-01T00:00:00Z"}]}],"disagreements":[]}`,
		"GET /preflight":     `{"ready":false,"tools":[{"server":"a","tool":"x","state":"denied","ready":false,"pinned":false,"risk":"medium","decision":"hold","reason":"No <one> may."},{"server":"a","tool":"y","state":"missing","ready":false,"pinned":false}]}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/policy")
	p.has(t, "v7", "worker_1")
	p.hasNot(t, "Rules in force")
	p = k.get("/console/policy?tools=a%2Fx%0Aa%2Fy")
	p.hasNot(t, "0xc")
	p.has(t, "Held for approval", "Medium", "No &lt;one&gt; may.", "Denied", "unknown", "Missing")
	if got := d.last("GET /preflight").query; got != "tool=a%2Fx&tool=a%2Fy" {
		t.Errorf("asked %q", got)
	}
	k.get("/console/policy?tools="+strings.Repeat("a%2Fx+", 201)).has(t, "Name 200 tools at most.")
}

func TestSetsAreShownWithTheirTools(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /sets":          `{"sets":[{"name":"research","origin":"api","definition":{"name":"research","description":"For <b>","include":[]}}]}`,
		"GET /sets/research": `{"name":"research","origin":"api","by":"ada","definition":{"name":"research","include":[]},"tools":[{"name":"read","server":"files","tool":"read_file","enabled":false,"reason":"Closed."}]}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/sets")
	p.has(t, `href="/console/sets?name=research"`, "For &lt;b&gt;")
	p.hasNot(t, "Installation")
	k.get("/console/sets?name=research").has(t, "read_file on files", "Closed.", "Disabled")
}

func TestSetsShowTheirTenant(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /sets":      `{"sets":[{"name":"all","tenant":"default","origin":"configuration","definition":{"include":[]}},{"name":"mine","tenant":"red","origin":"api","definition":{"include":[]}}]}`,
		"GET /sets/mine": `{"name":"mine","tenant":"red","origin":"api","definition":{"include":[]},"tools":[]}`,
	})
	k := openDesk(t, d, nil)
	k.get("/console/sets").has(t, `<span class="badge">Installation</span>`, `<span class="badge">red</span>`)
	k.get("/console/sets?name=mine").has(t, "Of the tenant red.")
}
