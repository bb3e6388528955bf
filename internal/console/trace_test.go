package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/console"
)

const aTraceID = "4bf92f3577b34da6a3ce929d0e0e4736"

// tracedCall returns a call in the format of GET /calls/{id}.
func tracedCall(t *testing.T, traceID string) string {
	t.Helper()
	id, err := json.Marshal(traceID)
	if err != nil {
		t.Fatal(err)
	}
	return `{"id":"call_1","state":"succeeded","server":"demo","tool":"echo","created":"2026-11-26T02:00:00Z","trace_id":` + string(id) + `}`
}

func withTraces(o *console.Options) {
	o.TraceURL = "https://jaeger.example/trace/{trace_id}?uiEmbed=v0"
}

func TestACallLinksToItsTrace(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /calls": `{"calls":[` + aRecord + `]}`, "GET /calls/call_1": tracedCall(t, aTraceID)})
	const link = `<a href="https://jaeger.example/trace/` + aTraceID + `?uiEmbed=v0" rel="noreferrer"><code class="small">` + aTraceID
	p := openDesk(t, d, withTraces).get("/console/call?id=call_1")
	p.has(t, link)
	p.hasNot(t, "target=")
	// Without the address of a trace viewer, only the ID is shown.
	p = openDesk(t, d, nil).get("/console/call?id=call_1")
	p.has(t, `<code class="small">`+aTraceID)
	p.hasNot(t, "noreferrer")
	// Only the record has the trace of a batch call.
	d.set("GET /calls/call_1", strings.Replace(tracedCall(t, ""), `,"trace_id":""`, "", 1))
	openDesk(t, d, withTraces).get("/console/call?id=call_1").hasNot(t, "<dt>Trace</dt>")
	d.set("GET /calls", `{"calls":[`+strings.Replace(aRecord, `"attempt"`, `"trace_id":"`+aTraceID+`","attempt"`, 1)+`]}`)
	openDesk(t, d, withTraces).get("/console/call?id=call_1").has(t, link)
}

func TestInvalidTraceIDsAreNotLinked(t *testing.T) {
	for _, id := range append([]string{
		"https://evil.example/", "//evil.example", "../../logout", "?x=" + aTraceID, strings.ToUpper(aTraceID), aTraceID + "0", aTraceID[1:], " " + aTraceID[1:],
		strings.Repeat("0", 32), "4bf92f3577b34da6a3ce929d0e0e47/6", "4bf92f3577b34da6a3ce929d0e0e47#6",
	}, attacks...) {
		d := openDoor(t, map[string]string{"GET /calls": `{"calls":[]}`, "GET /calls/call_1": tracedCall(t, id)})
		p := openDesk(t, d, withTraces).get("/console/call?id=call_1")
		p.has(t, "<dt>Trace</dt>")
		p.hasNot(t, "jaeger.example", "noreferrer")
		checkEscaped(t, "/console/call with "+id, p.body)
	}
}
