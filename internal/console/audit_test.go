package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const (
	actRecord  = `{"writer":"frontdoor_1","seq":7,"prev":"aa11","hash":"bb22","kind":"act-ended","at":"2026-11-26T02:00:00Z","by":"ada","operation":"switch-tool","path":"/servers/files/tools/read","outcome":"succeeded","before_digest":"sha256:old","after_digest":"sha256:new"}`
	heldRecord = `{"writer":"frontdoor_1","seq":6,"prev":"aa10","hash":"aa11","kind":"held","at":"2026-11-26T01:00:00Z","server":"bank","tool":"pay","call_id":"call_1","arguments_digest":"sha256:args"}`
	intact     = `{"intact":true,"complete":true,"heads_compared":true,"records":1412,"writers":3,"fault_count":0,"began_at":"2026-11-26T02:00:00Z","checked_at":"2026-11-26T02:00:00Z"}`
)

func TestTheAuditRecordIsShownWithTheStateOfItsChains(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /audit": `{"records":[` + actRecord + `,` + heldRecord + `],"next":"5-0"}`, "GET /audit/verification": intact})
	k := openDesk(t, d, nil)
	p := k.get("/console/audit")
	p.has(t, "Intact: 1,412 entries of 3 chains verified", "switch-tool", "/servers/files/tools/read", "by ada", "sha256:old", "sha256:new", "bb22", "pay", "on bank", "sha256:args", `href="/console/call?id=call_1"`, `href="/console/audit?cursor=5-0"`)
	if i, j := strings.Index(p.body, "switch-tool</strong>"), strings.Index(p.body, "pay</strong>"); i < 0 || j < i {
		t.Errorf("the order is not that of the answer: %d, %d", i, j)
	}
	k.get("/console/audit?act=operators&by=ada&tenant=red&operation=switch-tool&since=2026-11-26T01:00&until=2026-11-27")
	q, err := url.ParseQuery(d.last("GET /audit").query)
	if err != nil || strings.Join(q["kind"], ",") != "act-begun,act-ended,definition-accepted" || q.Get("by") != "ada" || q.Get("tenant") != "red" || q.Get("operation") != "switch-tool" || q.Get("since") != "2026-11-26T01:00:00Z" || q.Get("until") != "2026-11-27T00:00:00Z" || q.Get("limit") != "50" {
		t.Errorf("asked %v", q)
	}
	k.get("/console/audit?since=soon").has(t, "Write a time as")
}

func TestDamagedAuditRecordIsShownFirst(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /audit":              `{"records":[]}`,
		"GET /audit/verification": `{"intact":false,"complete":true,"heads_compared":true,"records":9,"writers":1,"fault_count":1,"faults":[{"writer":"frontdoor_1","seq":4,"kind":"gap","what":"record 4 follows record 2"}],"began_at":"2026-11-26T02:00:00Z","checked_at":"2026-11-26T02:00:00Z"}`,
	})
	openDesk(t, d, nil).get("/console/audit").has(t, "The audit log is not intact: 1 fault in 9 records.", "record 4 follows record 2", "No records match")
	for answer, want := range map[string]string{
		"!forbidden Only the default tenant may.":                                     "The chains are not verified here: Only the default tenant may.",
		strings.Replace(intact, `"complete":true`, `"complete":false`, 1):             "Intact so far: 1,412 entries verified.",
		strings.Replace(intact, `"heads_compared":true`, `"heads_compared":false`, 1): "could not be compared with their heads",
	} {
		d := openDoor(t, map[string]string{"GET /audit": `{"records":[]}`, "GET /audit/verification": answer})
		p := openDesk(t, d, nil).get("/console/audit")
		p.has(t, want)
	}
}

// Only its caller may see a call. Operators who follow a link of an audit record, which does not have
// the time by which the call record is found, get the audit records of the call.
func TestCallOfAnotherCallerLeadsToItsAuditRecords(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /calls/call_1":              "!not-found You have no such call.",
		"GET /calls/call_2":              "!not-found You have no such call.",
		"GET /audit?call=call_1&limit=1": `{"records":[{"writer":"w","seq":1,"prev":"x","hash":"x","kind":"held","at":"2026-11-26T02:00:00Z"}]}`,
		"GET /audit?call=call_2&limit=1": `{"records":[]}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/call?id=call_1")
	if p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/audit?call=call_1" {
		t.Errorf("%d to %q", p.status, p.header.Get("Location"))
	}
	if p := k.get("/console/call?id=call_2"); p.status != http.StatusNotFound {
		t.Errorf("an unknown call: %d", p.status)
	}
}
