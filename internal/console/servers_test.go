package console_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestServersAreListedWithTheReasonOfAFailure(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /servers": `{"servers":[` + okServer + `,` + badServer + `]}`})
	k := openDesk(t, d, nil)
	p := k.get("/console/servers")
	p.has(t, `href="/console/server?id=files"`, `href="/console/server?id=crm"`, "The process ended with status 3.", "1 to review")
	p = k.get("/console/servers?state=trouble")
	p.has(t, "id=crm")
	p.hasNot(t, "id=files")
	k.get("/console/servers?q=FIL").hasNot(t, "id=crm")
	k.get("/console/servers?q=nothing").has(t, "No servers match")
}

func TestAServerShowsItsFaultItsToolsAndItsPins(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /servers/crm": badServer,
		"GET /tools":       `{"tools":[{"server":"crm","name":"send","enabled":false,"reason":"Not <now>.","definition":{"name":"send","description":"Sends."}}]}`,
		"GET /preflight":   `{"ready":false,"tools":[{"server":"crm","tool":"send","state":"disabled","ready":false,"pinned":true,"risk":"high","decision":"hold"}]}`,
		"GET /servers/crm/pins": `{"pin":"quarantine","server":"crm","tools":[{"name":"send","state":"accepted"},
			{"name":"pay","state":"changed","digest":"sha256:new","definition":{"name":"pay","description":"Pays all."},"accepted_definition":{"name":"pay","description":"Pays one."},"accepted_by":"ada"}]}`,
		"POST /servers/crm/pins":    `{"pin":"quarantine","server":"crm","tools":[]}`,
		"POST /servers/crm/restart": `{"id":"crm","status":"restarting"}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/server?id=crm")
	p.has(t, "The process ended with status 3.", "no such module", "Not &lt;now&gt;.", "High risk", "Held for approval", `name="digest" value="sha256:new"`, "<mark>")
	p = k.post("/console/server/accept", "server", "crm", "tool", "pay", "digest", "sha256:new")
	if p.status != http.StatusSeeOther || d.last("POST /servers/crm/pins").body != `{"tools":[{"digest":"sha256:new","name":"pay"}]}` {
		t.Errorf("accepting: %d, %s", p.status, d.last("POST /servers/crm/pins").body)
	}
	if p = k.post("/console/server/restart", "server", "crm"); p.status != http.StatusSeeOther || d.last("POST /servers/crm/restart").route == "" {
		t.Errorf("restarting: %d", p.status)
	}
	k.get(p.header.Get("Location")).has(t, "The server is restarting")
	// A link of somebody else does not claim that it was restarted.
	for _, done := range []string{"restart", "restart.", "restart.x", doneToken("accept") + "&done=restart", strings.Replace(doneToken("accept"), "accept", "restart", 1)} {
		k.get("/console/server?id=crm&done="+done).hasNot(t, "The server is restarting")
	}
}

func TestAllToolsOfAServerAreDisabledAndEnabled(t *testing.T) {
	const at = `"at":"2026-11-26T02:00:00Z","wide":true,"enabled":false`
	d := openDoor(t, map[string]string{
		"GET /servers/files": okServer, "GET /servers/files/pins": `{"pin":"warn","server":"files","tools":[]}`,
		"PATCH /tools":        `{"enabled":false,"at":"2026-11-26T02:00:00Z"}`,
		"GET /tools/switches": `{"switches":[{"server":"files","tool":"send_*",` + at + `},{"server":"other",` + at + `}]}`,
	})
	k := openDesk(t, d, nil)
	k.get("/console/server?id=files").has(t, "Disable all its tools", "There is no such thing.")
	p := k.post("/console/server/switch", "server", "files", "to", "off", "reason", " Until Monday. ")
	if got := d.last("PATCH /tools").body; p.status != http.StatusSeeOther || got != `{"enabled":false,"reason":"Until Monday.","server":"files"}` {
		t.Errorf("disabling: %d, %s", p.status, got)
	}
	d.set("GET /tools/switches", `{"switches":[{"server":"files","by":"ada","reason":"Until <Monday>.",`+at+`}]}`)
	p = k.get(p.header.Get("Location"))
	p.has(t, "Enable its tools", "disabled by ada", "Until &lt;Monday&gt;.", "The tools of the server are disabled.")
	p.hasNot(t, "Disable all its tools")
	p = k.post("/console/server/switch", "server", "files", "to", "on")
	if got := d.last("PATCH /tools").body; p.status != http.StatusSeeOther || got != `{"enabled":true,"server":"files"}` {
		t.Errorf("enabling: %d, %s", p.status, got)
	}
	for _, wrong := range [][]string{{"server", "*", "to", "off"}, {"server", "", "to", "off"}, {"server", "files", "to", "x"}} {
		if p = k.post("/console/server/switch", wrong...); p.status != http.StatusBadRequest {
			t.Errorf("%q: %d", wrong, p.status)
		}
	}
}

func TestTheFleetShowsWorkersAndFrontDoors(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /workers":       `{"workers":[{"id":"worker_1","name":"west","host":"h1","pid":3,"version":"1.2","draining":true,"in_flight":4,"api_servers":false,"started":"2026-01-01T00:00:00Z","labels":{"region":"eu"},"servers":[]}]}`,
		"GET /configuration": `{"processes":[{"id":"frontdoor_1","role":"frontdoor","parts":[]},{"id":"approver_1","role":"approver","parts":[]}],"disagreements":[{"part":"policy","versions":[{"version":"a","processes":[]},{"version":"b","processes":[]}]},{"part":"people_keys","versions":[{"version":"k1","processes":["approver_1"]},{"version":"none","processes":["worker_1"]}]}]}`,
		"GET /version":       `{"version":"1.2","go":"go1","started":"2026-01-01T00:00:00Z"}`,
		"GET /front-doors":   frontDoorsJSON(`{"id":"frontdoor_1","draining":false}`),
	})
	p := openDesk(t, d, nil).get("/console/fleet")
	p.has(t, "west", "worker_1", "Draining", "region=eu", "frontdoor_1", "approver_1", "different versions of the configuration", "policy: 2 versions", "warrants.people_keys: workers refuse approved calls", "There is no other worker that takes calls")
	d.set("GET /workers", `{"workers":[]}`)
	d.set("GET /front-doors", frontDoorsJSON(doorText("frontdoor_1", 1200, 1000, 30, 7), `{"id":"frontdoor_2","draining":true}`))
	p = openDesk(t, d, nil).get("/console/fleet")
	p.has(t, "No worker is alive", "frontdoor_2", "1.3", ">eu<", ">7 ", ">1,200<", ">30<", "1 wait", "Draining", ">unknown<")
}

func TestAWorkerIsDrained(t *testing.T) {
	worker := func(id string) string {
		return `{"id":"` + id + `","name":"n","host":"h","pid":3,"version":"1","draining":false,"in_flight":0,"api_servers":false,"started":"2026-01-01T00:00:00Z","servers":[]}`
	}
	d := openDoor(t, map[string]string{
		"GET /workers": `{"workers":[` + worker("worker_1") + `,` + worker("worker_2") + `]}`, "GET /configuration": `{"processes":[],"disagreements":[]}`,
		"GET /version": `{"version":"1","go":"go1","started":"2026-01-01T00:00:00Z"}`, "GET /front-doors": frontDoorsJSON(), "POST /workers/worker_2/drain": `{"id":"worker_2","status":"draining"}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/fleet")
	p.has(t, `<option value="worker_2">`, "callyard workers drain")
	p.hasNot(t, "There is no other worker")
	if p = k.post("/console/fleet/drain", "worker", "worker_2"); p.status != http.StatusSeeOther || d.last("POST /workers/worker_2/drain").route == "" {
		t.Errorf("draining: %d %s", p.status, p.body)
	}
	k.get(p.header.Get("Location")).has(t, "The worker is draining")
}
