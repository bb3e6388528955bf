package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// records returns the audit records of acts, as stored, by operation and kind.
func records(t *testing.T, srv *bustest.Server) map[string][]audit.Record {
	t.Helper()
	r, err := audit.OpenReader(t.Context(), srv.Connect(t, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	if report, err := r.Verify(t.Context()); err != nil || !report.OK() {
		t.Fatalf("%+v %v", report, err)
	}
	found := make(map[string][]audit.Record)
	for cursor := ""; ; {
		page, next, err := r.Read(t.Context(), schema.AllTenants(), audit.Filter{Kinds: []audit.Kind{audit.ActBegun, audit.ActEnded}, Limit: 1000}, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			key := page[i].Operation + " " + string(page[i].Kind)
			found[key] = append(found[key], page[i])
		}
		if cursor = next; cursor == "" {
			return found
		}
	}
}

// Every operation of the document that is an operator action must write its records, whether it
// succeeds or is refused. The test includes operations that are added later.
func TestEveryOperatorActionIsAudited(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	weak := d.newKey(d.key, `{"name":"weak","scopes":["tools:read"]}`)
	_, _, text := d.with(d.key, "GET", "/openapi.json", "")
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	acts := 0
	for path, item := range document.Paths {
		for method, op := range item {
			method = strings.ToUpper(method)
			if need, ok := scope.OfOperation(op.OperationID); !ok || !httpapi.IsAct(method, need) {
				continue
			}
			acts++
			at := strings.NewReplacer("{id}", "nobody", "{name}", "nobody", "{tool}", "read").Replace(path)
			if status, _, answer := d.with(weak.Secret, method, at, "{}"); status != http.StatusForbidden {
				t.Errorf("%s %s without the scope: %d %s", method, at, status, answer)
			}
			status, h, _ := d.with(d.key, method, at, "{}")
			d.checkRecorded(t, srv, op.OperationID, at, h.Get("X-Request-Id"), status)
		}
	}
	if acts < 10 {
		t.Errorf("%d operations", acts)
	}
	gone := d.newKey(d.key, `{"name":"gone","scopes":["tools:read"]}`)
	_, h, _ := d.with(d.key, "POST", "/keys/"+gone.ID+"/rotate", `{"grace_seconds":0}`, "If-Match", gone.ETag)
	status, h, _ := d.with(d.key, "DELETE", "/keys/"+gone.ID, "", "If-Match", h.Get("Etag"))
	d.checkRecorded(t, srv, "revoke-key", "/keys/"+gone.ID, h.Get("X-Request-Id"), status)
	all := records(t, srv)
	made := all["create-key act-ended"]
	last := func(of string) audit.Record { return all[of][len(all[of])-1] }
	created, rotated, revoked := last("create-key act-ended"), last("rotate-key act-ended"), last("revoke-key act-ended")
	if created.Path != "/keys/"+gone.ID || rotated.Before != created.After || rotated.After == "" || revoked.Before != rotated.After || revoked.Before == rotated.Before || revoked.After != "" {
		t.Errorf("%+v\n%+v\n%+v", created, rotated, revoked)
	}
	if len(made) == 0 || made[0].Status != 201 || made[0].After == "" || made[0].Before != "" || made[0].Outcome != "succeeded" || made[0].Credential != "configuration ci" {
		t.Errorf("%+v", made)
	}
}

// checkRecorded checks that an operation was recorded: its begin, its end, and the refusal of a key without
// the scope.
func (d *door) checkRecorded(t *testing.T, srv *bustest.Server, operation, path, request string, status int) {
	t.Helper()
	polltest.Within(t, 10*time.Second, "the records of "+operation, func() bool {
		all := records(t, srv)
		var begun, ended, refused bool
		for _, r := range all[operation+" act-begun"] {
			begun = begun || r.RequestID == request && r.By == "ci" && r.Path == path
		}
		for _, r := range all[operation+" act-ended"] {
			ended = ended || r.RequestID == request && r.Status == status
			refused = refused || r.By == "weak" && r.Status == 403 && strings.HasPrefix(r.Credential, "key ") && r.Outcome == "refused"
		}
		return begun && ended && refused
	})
}
