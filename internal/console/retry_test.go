package console_test

import (
	"net/http"
	"strings"
	"testing"
)

const ofEnded = `"state":"completed","calls":3,"counts":{"waiting":0,"held":0,"succeeded":0,"tool_errors":0,"failed":2,"denied":0,"expired":0,"canceled":0,"unknown":1},"created":"2026-11-26T02:00:00Z","ended":"2026-11-26T02:00:09Z","expires_at":"2026-11-27T02:00:00Z"`

func TestTheFailedCallsOfABatchAreRetried(t *testing.T) {
	const failed = `"state":"failed","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z"`
	d := openDoor(t, map[string]string{
		"GET /batches/batch_1": `{"id":"batch_1",` + ofEnded + `}`,
		"GET /batches/batch_1/results": `{"cursor":"1","index":0,"call_id":"call_1","state":"failed"}` + "\n" +
			`{"cursor":"2","index":1,"call_id":"call_2","state":"unknown"}` + "\n" + `{"cursor":"3","index":2,"call_id":"call_3","state":"failed"}` + "\n",
		"GET /calls/call_1": `{"id":"call_1",` + failed + `,"custom_id":"row 7","arguments":{"n":9007199254740993}}`,
		"GET /calls/call_3": `{"id":"call_3",` + failed + `,"arguments":{}}`,
		"POST /batches":     `{"id":"batch_2",` + ofEnded + `}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/batch?id=batch_1")
	p.has(t, "Retry 2 failed calls")
	_, once, _ := strings.Cut(p.body, `name="once" value="`)
	once, _, _ = strings.Cut(once, `"`)
	p = k.post("/console/batch", "id", "batch_1", "do", "retry", "once", once)
	if p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/batch?done="+doneToken("retry")+"&id=batch_2" {
		t.Errorf("retrying: %d, %s %s", p.status, p.header.Get("Location"), p.body)
	}
	sent := d.last("POST /batches")
	if want := `{"calls":[{"server":"demo","tool":"echo","arguments":{"n":9007199254740993},"custom_id":"row 7"},{"server":"demo","tool":"echo","arguments":{}}],"labels":{"retry_of":"batch_1"}}`; sent.body != want {
		t.Errorf("sent %s\nwant %s", sent.body, want)
	}
	if key := sent.header.Get("Idempotency-Key"); !strings.HasPrefix(key, once+"-") {
		t.Errorf("sent twice, it is another batch: %q", key)
	}
	d.set("GET /batches/batch_2", `{"id":"batch_2","labels":{"retry_of":"batch_1"},`+ofEnded+`}`)
	k.get(p.header.Get("Location")).has(t, "This is the new batch", `<dt>Retry of</dt><dd><a href="/console/batch?id=batch_1">`)
	d.set("GET /calls/call_3", `{"id":"call_3",`+failed+`}`)
	if p = k.post("/console/batch", "id", "batch_1", "do", "retry"); p.status != http.StatusConflict {
		t.Errorf("without arguments: %d", p.status)
	}
	d.set("GET /batches/batch_1/results", `{"cursor":"2","index":1,"call_id":"call_2","state":"unknown"}`+"\n")
	if p = k.post("/console/batch", "id", "batch_1", "do", "retry"); p.status != http.StatusConflict {
		t.Errorf("of a batch without failed calls: %d", p.status)
	}
}

func TestHeldCallsOfABatchAreReviewedInBulk(t *testing.T) {
	const held = `"call_id":"call_8","index":3,"server":"demo","tool":"pay","arguments_digest":"sha256:a","expires_at":"2026-11-27T02:00:00Z","risk_level":2,"reasons":["It pays."]}`
	const one = `{"approval_id":"appr_1","by":"people",` + held
	d := openDoor(t, map[string]string{
		"GET /batches/batch_1":      strings.Replace(`{"id":"batch_1",`+ofEnded+`}`, `"held":0`, `"held":3`, 1),
		"GET /batches/batch_1/held": `{"calls":[` + one + `,{"approval_id":"appr_2","by":"caller",` + held + `,{"approval_id":"appr_3","by":"people",` + held + `]}`,
	})
	k := openDesk(t, d, nil)
	k.get("/console/batch?id=batch_1").has(t, `href="/review?id=appr_1&amp;id=appr_3"`)
	d.set("GET /batches/batch_1/held", `{"calls":[`+one+`]}`)
	k.get("/console/batch?id=batch_1").hasNot(t, "/review")
}
