package console_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestToolPageOfDisconnectedServerShowsKnownDetails(t *testing.T) {
	const gone = `{"id":"crm","connected":false,"pid":0,"initialization_state":"error","transport":"stdio","error":"The process <ended>.","worker_count":0,"workers":[],"slots":0,"in_flight":0,"waiting":0}`
	d := openDoor(t, map[string]string{
		// The front door still has the definition, and reports that no worker can run the tool.
		"GET /tools":        `{"tools":[{"server":"crm","name":"send","enabled":true,"offline":"No live worker runs it.","definition":{"name":"send","description":"Sends letters."}}]}`,
		"GET /servers/crm":  gone,
		"GET /servers/none": "!not-found There is no server none.",
	})
	k := openDesk(t, d, nil)
	k.get("/console/tool?server=crm&tool=send").has(t, "Sends letters.", "Offline", "No live worker runs it.")
	// The front door never had the definition.
	p := k.get("/console/tool?server=crm&tool=pay")
	if p.status != http.StatusOK {
		t.Errorf("%d %s", p.status, p.body)
	}
	p.has(t, "the definition is not known", "The process &lt;ended&gt;.")
	p.hasNot(t, `value="run"`)
	// The definition was accepted once.
	d.set("GET /servers/crm/pins", `{"pin":"warn","server":"crm","tools":[{"name":"pay","state":"gone","accepted_definition":{"name":"pay","description":"Pays bills."}}]}`)
	p = k.get("/console/tool?server=crm&tool=pay")
	p.has(t, "Pays bills.", "accepted last")
	p.hasNot(t, `value="run"`)
	// A ready server and an unknown server have no such tool.
	d.set("GET /servers/crm/pins", "!not-found There is no such thing.")
	d.set("GET /servers/crm", strings.Replace(gone, `"error"`, `"initialized"`, 1))
	for _, path := range []string{"/console/tool?server=crm&tool=pay", "/console/tool?server=none&tool=pay"} {
		if p = k.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
}
