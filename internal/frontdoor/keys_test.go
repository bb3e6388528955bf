package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// apiKey is a key as the API returns it.
type apiKey struct {
	ID, Name, Origin, ETag, Secret string
	Scopes                         []string
}

// with sends a request with another key.
func (d *door) with(key, method, path, body string, header ...string) (int, http.Header, string) {
	d.t.Helper()
	return d.do(method, path, body, append([]string{"Authorization", "Bearer " + key, "Content-Type", "application/json"}, header...)...)
}

func (d *door) newKey(by, body string) apiKey {
	d.t.Helper()
	status, h, answer := d.with(by, "POST", "/keys", body)
	var k apiKey
	if err := json.Unmarshal([]byte(answer), &k); err != nil || status != 201 || k.Secret == "" || h.Get("Etag") != k.ETag || h.Get("Location") != "/keys/"+k.ID {
		d.t.Fatalf("%d %v %s", status, h, answer)
	}
	return k
}

func TestKeysAreMadeChangedRotatedAndRevokedAtAnyFrontDoor(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	a, b := openDoor(t, srv, frontdoor.Options{}), openDoor(t, srv, frontdoor.Options{})
	k := a.newKey(a.key, `{"name":"nightly","scopes":["tools:read","tools:call:s"],"tools":["s/read"],"groups":["dev"]}`)
	for _, c := range []struct {
		d                 *door
		key, method, path string
		status            int
	}{
		{b, k.Secret, "GET", "/tools", 200}, {a, k.Secret, "POST", "/servers/s/tools/read", 200}, {b, k.Secret, "POST", "/servers/s/tools/write", 403}, {b, k.Secret, "GET", "/keys", 403}, {a, k.Secret, "POST", "/keys", 403},
		{a, k.Secret[:40], "GET", "/tools", 401}, {a, strings.ToLower(k.Secret), "GET", "/tools", 401}, {b, b.key, "GET", "/keys/" + k.ID, 200}, {b, b.key, "GET", "/keys/nobody", 404},
		{a, a.key, "DELETE", "/keys/" + k.ID, 428}, {a, a.key, "PATCH", "/keys/nobody", 404}, {a, a.key, "POST", "/keys/nobody/rotate", 404}, {a, a.key, "DELETE", "/keys/nobody", 404},
	} {
		body := ""
		if c.method != "GET" && c.method != "DELETE" {
			body = "{}"
		}
		if status, _, answer := c.d.with(c.key, c.method, c.path, body); status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, answer)
		}
	}
	for _, name := range []string{"ci", "local", "(other)"} { // (other) is the name that usage reserves
		if status, _, answer := a.with(a.key, "POST", "/keys", `{"name":"`+name+`","scopes":["tools:read"]}`); status != 400 {
			t.Errorf("a key named %s: %d %s", name, status, answer)
		}
	}
	if status, _, answer := b.with(b.key, "POST", "/keys", `{"name":"nightly","scopes":["admin"]}`); status != 409 || !strings.Contains(answer, "rotate") {
		t.Errorf("a second one with the name: %d %s", status, answer)
	}
	if status, _, answer := b.with(b.key, "POST", "/keys", `{"name":"ci","scopes":["admin"]}`); status != 400 && status != 409 {
		t.Errorf("the name of a configured key: %d %s", status, answer)
	}
	status, h, answer := a.with(a.key, "PATCH", "/keys/"+k.ID, `{"tools":[],"note":"runs at night"}`, "If-Match", k.ETag)
	if status != 200 || strings.Contains(answer, k.Secret) || !strings.Contains(answer, "runs at night") || !strings.Contains(answer, `"dev"`) {
		t.Fatalf("%d %s", status, answer)
	}
	polltest.Within(t, 10*time.Second, "the wider key", func() bool {
		status, _, _ := b.with(k.Secret, "POST", "/servers/s/tools/write", "{}")
		return status == 200
	})
	if status, _, answer := a.with(a.key, "PATCH", "/keys/"+k.ID, `{"note":"x"}`, "If-Match", k.ETag); status != 412 {
		t.Errorf("a change of another state: %d %s", status, answer)
	}
	status, _, answer = a.with(a.key, "POST", "/keys/"+k.ID+"/rotate", `{"grace_seconds":0}`, "If-Match", h.Get("Etag"))
	var next apiKey
	if err := json.Unmarshal([]byte(answer), &next); err != nil || status != 200 || next.ID != k.ID || next.Secret == k.Secret {
		t.Fatalf("%d %s", status, answer)
	}
	if status, _, answer := b.with(next.Secret, "GET", "/tools", ""); status != 200 { // at once
		t.Errorf("the new secret: %d %s", status, answer)
	}
	polltest.Within(t, 10*time.Second, "the end of the old secret", func() bool { status, _, _ := b.with(k.Secret, "GET", "/tools", ""); return status == 401 })
	if status, _, answer := b.with(b.key, "DELETE", "/keys/"+k.ID, "", "If-Match", "*"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	polltest.Within(t, 10*time.Second, "the revocation", func() bool { status, _, _ := a.with(next.Secret, "GET", "/tools", ""); return status == 401 })
}

func TestKeysOfTheConfigurationAreShownAndNotChanged(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	made := d.newKey(d.key, `{"name":"boss","scopes":["admin"]}`)
	status, _, answer := d.with(made.Secret, "GET", "/keys", "")
	var list struct{ Keys []apiKey }
	if err := json.Unmarshal([]byte(answer), &list); err != nil || status != 200 || len(list.Keys) != 2 || list.Keys[1].Origin != "configuration" || list.Keys[1].ETag != "" || strings.Contains(answer, "cyk_") || strings.Contains(answer, "sha256") {
		t.Fatalf("%d %s", status, answer)
	}
	own := "/keys/" + list.Keys[1].ID
	for _, c := range [][2]string{{"PATCH", own}, {"POST", own + "/rotate"}, {"DELETE", own}} {
		if status, _, answer := d.with(made.Secret, c[0], c[1], "{}", "If-Match", "*"); status != 409 || !strings.Contains(answer, "front_door.keys") {
			t.Errorf("%v: %d %s", c, status, answer)
		}
	}
	if status, _, answer := d.with(made.Secret, "POST", "/keys", `{"name":"more","scopes":["tools:call"]}`); status != 403 {
		t.Errorf("a key with more than its maker has: %d %s", status, answer)
	}
	if status, _, answer := d.with(made.Secret, "POST", "/servers/s/tools/read", "{}"); status != 403 {
		t.Errorf("admin is not tools:call: %d %s", status, answer)
	}
}

func TestEventStreamEndsWhenKeyIsRevoked(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	k := d.newKey(d.key, `{"name":"reader","scopes":["tools:read"]}`)
	over := d.follow("GET", "/events", k.Secret, "")
	select {
	case <-over:
		t.Fatal("it ended while the key is valid")
	case <-time.After(100 * time.Millisecond):
	}
	if status, _, answer := d.with(d.key, "DELETE", "/keys/"+k.ID, "", "If-Match", "*"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("it continues")
	}
}

// Credentials of a tenant that is not in the section tenants are refused, so a key for it would be
// useless.
func TestNoKeyIsMadeForATenantThatIsNotConfigured(t *testing.T) {
	e := openTenantAdminFabric(t, true)
	const body = `{"name":"nobody/k","tenant":"nobody","role":"developer"}`
	if got := e.must(400, e.key, "POST", "/keys", body); !strings.Contains(got, `"pointer":"/tenant"`) || !strings.Contains(got, "section tenants") {
		t.Error(got)
	}
	// Another tenant does not learn which tenants exist.
	for _, tenant := range []string{"nobody", "blue"} {
		if got := e.must(403, e.keys["red-admin"], "POST", "/keys", strings.ReplaceAll(body, "nobody", tenant)); strings.Contains(got, "section") {
			t.Error(got)
		}
	}
	open := openTenantAdminFabric(t, false)
	open.must(201, open.key, "POST", "/keys", body)
}

// If erasing a tenant is refused, none of its keys are revoked.
func TestATenantThatCannotBeErasedKeepsItsKeys(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	var o frontdoor.Options
	_, hash := authn.Generate()
	o.Config.Keys = []authn.Key{{Name: "zed", Tenant: "green", Hash: hash}}
	d := openDoor(t, srv, o)
	made := d.newKey(d.key, `{"name":"green/a","tenant":"green","role":"developer"}`)
	if status, _, answer := d.with(d.key, "DELETE", "/tenants/green?confirm=green", ""); status != http.StatusConflict || !strings.Contains(answer, "zed") {
		t.Errorf("%d %s", status, answer)
	}
	if status, _, answer := d.with(d.key, "GET", "/keys/"+made.ID, ""); status != http.StatusOK {
		t.Errorf("the key after a refusal: %d %s", status, answer)
	}
}
