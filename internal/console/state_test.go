package console_test

import (
	"html"
	"net/http"
	"testing"
)

func TestStateImportRequiresTheComparedETag(t *testing.T) {
	const change = `{"part":"sets","name":"re<b>search","action":"add","note":"Has <i>","done":false}`
	d := openDoor(t, map[string]string{
		"GET /state":              `{"format":"callyard-state/1","sets":[]}`,
		"PUT /state?dry_run=true": `{"dry_run":true,"failed":0,"etag":"\"sha256:now\"","changes":[` + change + `]}`, "PUT /state?dry_run=false": `{"dry_run":false,"failed":1,"etag":"\"sha256:then\"","changes":[{"part":"sets","name":"x","action":"add","done":false,"error":"It is <bad>."}]}`,
	})
	k := openDesk(t, d, nil)
	k.get("/console/state").has(t, "Download the state", "Show the differences")
	if p := k.get("/console/state/export"); p.header.Get("Content-Disposition") != `attachment; filename="callyard-state.json"` || p.body == "" {
		t.Errorf("%v %s", p.header, p.body)
	}
	p := k.post("/console/state", "do", "compare", "file", `{"format":"callyard-state/1"}`)
	p.has(t, "re&lt;b&gt;search", "Has &lt;i&gt;", `name="etag" value="`+html.EscapeString(`"sha256:now"`)+`"`, `value="import"`)
	p = k.post("/console/state", "do", "import", "file", `{"format":"callyard-state/1"}`, "etag", `"sha256:now"`)
	p.has(t, "What was imported", "It is &lt;bad&gt;.", "1 changes failed")
	if r := d.last("PUT /state"); r.header.Get("If-Match") != `"sha256:now"` || r.body != `{"format":"callyard-state/1"}` {
		t.Errorf("sent %q with %q", r.body, r.header.Get("If-Match"))
	}
	d.set("PUT /state?dry_run=false", "!precondition-failed The state is another.")
	if p = k.post("/console/state", "do", "import", "file", `{}`, "etag", `"old"`); p.status != http.StatusPreconditionFailed {
		t.Errorf("%d", p.status)
	}
	p.has(t, "Nothing was changed.", "The state is another.")
}
