package console_test

import (
	"bytes"
	"html"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/console"
)

const (
	ciKey   = `{"id":"k1","name":"ci","owner":"build team","scopes":["tools:read","tools:call"],"groups":["dev"],"note":"nightly","origin":"api","etag":"\"12\"","expires_at":"2027-01-01T00:00:00Z","created_at":"2026-01-01T00:00:00Z","changed_by":"bob","changed_at":"2026-11-26T02:00:00Z","last_used_at":"2026-11-26T02:00:00Z"}`
	rootKey = `{"id":"k0","name":"root","scopes":["admin"],"origin":"configuration"}`
	secret  = "cyk_k1_secretsecretsecret"
)

// withSecret returns the response to the creation or rotation of a key.
func withSecret(key string) string {
	return strings.TrimSuffix(key, "}") + `,"secret":"` + secret + `","former_secrets":[{"until":"2026-11-27T02:00:00Z"}]}`
}

func keysDoor(t *testing.T) *door {
	t.Helper()
	return openDoor(t, map[string]string{"GET /keys": `{"keys":[` + ciKey + `,` + rootKey + `]}`, "GET /keys/k1": ciKey, "GET /keys/k0": rootKey})
}

func TestKeysAreListedWithTheirProperties(t *testing.T) {
	k := openDesk(t, keysDoor(t), func(o *console.Options) {
		o.Now = func() time.Time { return time.Date(2026, 12, 30, 0, 0, 0, 0, time.UTC) }
	})
	p := k.get("/console/keys")
	p.has(t, "ci", "k1", "build team", "tools:call", "2027-01-01", "2026-11-26 02:00 UTC", "Ends soon", "Configuration", `href="/console/keys/new"`)
	p = k.get("/console/keys?q=BUILD")
	p.has(t, "ci")
	p.hasNot(t, "root")
	k.get("/console/keys?q=nobody").has(t, "No keys match")
	p = k.get("/console/keys/key?id=k0")
	p.has(t, "front_door.keys")
	p.hasNot(t, "Revoke the key", "Store the changes")
	if p = k.get("/console/keys/key"); p.status != http.StatusSeeOther {
		t.Errorf("without an id: %d", p.status)
	}
}

func TestKeySecretIsShownOnceAndNotInURLsOrLogs(t *testing.T) {
	var log bytes.Buffer
	d := keysDoor(t)
	d.set("POST /keys", withSecret(ciKey))
	d.set("POST /keys/k1/rotate", withSecret(ciKey))
	k := openDesk(t, d, func(o *console.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	p := k.post("/console/keys/new", "name", "ci", "owner", "build team", "scopes", "tools:read\r\n tools:call \r\n", "groups", "dev\r\n\r\nops", "expires", "2027-01-01T00:00")
	if p.status != http.StatusCreated || p.header.Get("Location") != "" {
		t.Errorf("%d, Location %q", p.status, p.header.Get("Location"))
	}
	p.has(t, secret, `data-copy="secret"`)
	if strings.Count(p.body, secret) != 1 {
		t.Errorf("the page has the secret %d times", strings.Count(p.body, secret))
	}
	const want = `{"expires_at":"2027-01-01T00:00:00Z","groups":["dev","ops"],"name":"ci","owner":"build team","scopes":["tools:read","tools:call"]}`
	if got := d.last("POST /keys").body; got != want {
		t.Errorf("sent %s", got)
	}
	p = k.post("/console/keys/key", "do", "rotate", "id", "k1", "etag", `"12"`, "grace", "3600")
	p.has(t, secret, "accepted until 2026-11-27 02:00 UTC")
	if r := d.last("POST /keys/k1/rotate"); r.body != `{"grace_seconds":3600}` || r.header.Get("If-Match") != `"12"` {
		t.Errorf("sent %s with %q", r.body, r.header.Get("If-Match"))
	}
	for _, path := range []string{"/console/keys", "/console/keys/key?id=k1"} {
		k.get(path).hasNot(t, secret)
	}
	if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "make an API key") {
		t.Errorf("the log is %s", log.String())
	}
}

func TestKeyIsChangedOnlyIfUnmodifiedSinceShown(t *testing.T) {
	d := keysDoor(t)
	d.set("PATCH /keys/k1", ciKey)
	k := openDesk(t, d, nil)
	k.get("/console/keys/key?id=k1").has(t, `name="etag" value="`+html.EscapeString(`"12"`)+`"`, "nightly", "build team")
	form := []string{"do", "change", "id", "k1", "etag", `"12"`, "owner", "build team", "scopes", "tools:read\r\ntools:call", "groups", "", "note", "hourly", "expires", "2027-01-01T00:00:00"}
	if p := k.post("/console/keys/key", form...); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/keys/key?done="+doneToken("key")+"&id=k1" {
		t.Errorf("%d to %q: %s", p.status, p.header.Get("Location"), p.body)
	}
	// Unchanged fields are not sent; an emptied list is.
	if r := d.last("PATCH /keys/k1"); r.body != `{"groups":[],"note":"hourly"}` || r.header.Get("If-Match") != `"12"` {
		t.Errorf("sent %s with %q", r.body, r.header.Get("If-Match"))
	}
	// Another user was faster, before the form was sent or during the request.
	for _, tag := range []string{`"11"`, `"12"`} {
		d.set("PATCH /keys/k1", "!precondition-failed It has changed.")
		form[5] = tag
		p := k.post("/console/keys/key", form...)
		if p.status != http.StatusPreconditionFailed {
			t.Errorf("%d", p.status)
		}
		p.has(t, "Nothing was changed: somebody else changed the key", "The last change is by bob", `<pre class="code">nightly</pre>`, `<pre class="code">hourly</pre>`, `name="etag" value="`+html.EscapeString(`"12"`)+`"`)
		if strings.Contains(p.body, "<td>Owner</td>") {
			t.Error("a field that is the same is shown as a difference")
		}
	}
	// A refusal keeps the submitted values.
	d.set("PATCH /keys/k1", "!forbidden You may not.")
	p := k.post("/console/keys/key", form...)
	p.has(t, "You may not.", "hourly")
	form[15] = "tomorrow"
	if p = k.post("/console/keys/key", form...); p.status != http.StatusBadRequest {
		t.Errorf("%d", p.status)
	}
}

func TestKeyRevocationNeedsConfirmation(t *testing.T) {
	d := keysDoor(t)
	d.set("DELETE /keys/k1", `{"status":"revoked"}`)
	k := openDesk(t, d, nil)
	p := k.post("/console/keys/key", "do", "revoke", "id", "k1", "etag", `"12"`)
	if p.status != http.StatusBadRequest {
		t.Errorf("%d", p.status)
	}
	p.has(t, "Nothing was revoked")
	for _, r := range d.asked {
		if r.route == "DELETE /keys/k1" {
			t.Fatal("it was revoked without a confirmation")
		}
	}
	p = k.post("/console/keys/key", "do", "revoke", "id", "k1", "etag", `"12"`, "sure", "yes")
	if p.status != http.StatusSeeOther || d.last("DELETE /keys/k1").header.Get("If-Match") != `"12"` {
		t.Errorf("%d", p.status)
	}
	d.set("DELETE /keys/k1", "!precondition-failed It has changed.")
	k.post("/console/keys/key", "do", "revoke", "id", "k1", "etag", `"12"`, "sure", "yes").has(t, "somebody else changed the key")
}

func TestNewKeyFormSendsRoleAndLimits(t *testing.T) {
	d := keysDoor(t)
	d.set("POST /keys", withSecret(ciKey))
	k := openDesk(t, d, nil)
	p := k.get("/console/keys/new")
	for _, role := range scope.Roles() {
		p.has(t, `<option value="`+string(role)+`"`)
	}
	p = k.post("/console/keys/new", "name", "ci", "role", "developer", "scopes", "tools:read\r\ntools:call", "tools", "files/*", "rate", "0.5", "burst", "20", "in_flight", "10")
	if p.status != http.StatusCreated {
		t.Fatalf("%d: %s", p.status, p.body)
	}
	const want = `{"limits":{"burst":20,"in_flight":10,"rate":0.5},"name":"ci","role":"developer","tools":["files/*"]}`
	if got := d.last("POST /keys").body; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// A refused form shows each reason at its field and keeps all values.
func TestKeyFormShowsErrorsAtTheirFields(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		form         []string
		fields       []string // those that are marked
		says         string
	}{
		{"numbers", "", []string{"rate", "five", "burst", "2.5", "in_flight", "x"}, []string{"rate", "burst", "in_flight"}, "Must be a number, such as 5 or 0.5."},
		{"not a number of JSON", "", []string{"rate", "NaN"}, []string{"rate"}, "Must be a number"},
		{"expiry", "", []string{"expires", "tomorrow"}, []string{"expires"}, "Must be a time like 2026-11-26T15:04, in UTC."},
		{"scopes next to a role", "", []string{"role", "caller", "scopes", "admin"}, []string{"scopes"}, "Cannot be changed next to a role"},
		{"refused by the front door", `{"pointer":"/tools/1","message":"must be SERVER/TOOL"},{"pointer":"/limits","message":"have a burst without a rate"},{"pointer":"/name","message":"must begin with the tenant, billing/"},{"pointer":"/other","message":"is odd"}`, []string{"burst", "3"}, []string{"name", "tools", "rate"}, "Line 2 must be SERVER/TOOL."},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := keysDoor(t)
			d.set("POST /keys", `!invalid-request It is invalid.","errors":[`+c.answer+`],"more":"`)
			k := openDesk(t, d, nil)
			p := k.post("/console/keys/new", append([]string{"name", "ci", "note", "for the nightly build"}, c.form...)...)
			if p.status != http.StatusBadRequest {
				t.Errorf("the status is %d", p.status)
			}
			p.has(t, c.says, "Nothing was stored. Correct the marked fields.", "for the nightly build")
			if got := strings.Count(p.body, `aria-invalid="true"`); got != len(c.fields) {
				t.Errorf("%d fields are marked, want %d", got, len(c.fields))
			}
			for _, field := range c.fields {
				_, rest, _ := strings.Cut(p.body, `name="`+field+`"`)
				tag, _, _ := strings.Cut(rest, ">")
				if !strings.Contains(tag, `aria-describedby="key-`+field+`-fault"`) || !strings.Contains(p.body, `id="key-`+field+`-fault"`) {
					t.Errorf("the field %s is not marked: %s", field, tag)
				}
			}
			if got := strings.Count(p.body, " autofocus"); got != 1 {
				t.Errorf("%d fields get the focus", got)
			}
			if c.answer != "" {
				p.has(t, "<code>/other</code> is odd")
			}
		})
	}
}

func TestKeyFormChangesRoleAndLimits(t *testing.T) {
	const role = `{"id":"k1","name":"ci","owner":"build team","role":"developer","scopes":["tools:read","tools:call","calls:read"],"limits":{"rate":5,"in_flight":2000},"origin":"api","etag":"\"12\""}`
	d := openDoor(t, map[string]string{"GET /keys/k1": role, "PATCH /keys/k1": role})
	k := openDesk(t, d, nil)
	k.get("/console/keys/key?id=k1").has(t, `<option value="developer" selected>`, "5 calls per second, 2,000 in flight", `name="in_flight" value="2000"`)
	change := func(want string, changes ...string) {
		t.Helper()
		form := append([]string{"do", "change", "id", "k1", "etag", `"12"`, "owner", "build team", "role", "developer", "scopes", "tools:read\r\ntools:call\r\ncalls:read", "rate", "5", "in_flight", "2000"}, changes...)
		if p := k.post("/console/keys/key", form...); p.status != http.StatusSeeOther {
			t.Errorf("%v: %d %s", changes, p.status, p.body)
			return
		}
		if got := d.last("PATCH /keys/k1").body; got != want {
			t.Errorf("%v: sent %s, want %s", changes, got, want)
		}
	}
	change(`{}`)
	change(`{"role":"auditor"}`, "role", "auditor")
	change(`{"scopes":["tools:read","tools:call","calls:read"]}`, "role", "")
	change(`{"scopes":["admin"]}`, "role", "", "scopes", "admin")
	change(`{"limits":{"in_flight":2000}}`, "rate", "")
	change(`{"limits":{}}`, "rate", "0", "in_flight", "")
}
