package console_test

import (
	"bytes"
	"html"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

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
	p.says(t, "ci", "k1", "build team", "tools:call", "2027-01-01", "2026-11-26 02:00 UTC", "Ends soon", "Configuration", `href="/console/keys/new"`)
	p = k.get("/console/keys?q=BUILD")
	p.says(t, "ci")
	p.hides(t, "root")
	k.get("/console/keys?q=nobody").says(t, "No keys match")
	p = k.get("/console/keys/key?id=k0")
	p.says(t, "front_door.keys")
	p.hides(t, "Revoke the key", "Store the changes")
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
	p.says(t, secret, `data-copy="secret"`)
	if strings.Count(p.body, secret) != 1 {
		t.Errorf("the page has the secret %d times", strings.Count(p.body, secret))
	}
	const want = `{"expires_at":"2027-01-01T00:00:00Z","groups":["dev","ops"],"name":"ci","owner":"build team","scopes":["tools:read","tools:call"]}`
	if got := d.last("POST /keys").body; got != want {
		t.Errorf("sent %s", got)
	}
	p = k.post("/console/keys/key", "do", "rotate", "id", "k1", "etag", `"12"`, "grace", "3600")
	p.says(t, secret, "accepted until 2026-11-27 02:00 UTC")
	if r := d.last("POST /keys/k1/rotate"); r.body != `{"grace_seconds":3600}` || r.header.Get("If-Match") != `"12"` {
		t.Errorf("sent %s with %q", r.body, r.header.Get("If-Match"))
	}
	for _, path := range []string{"/console/keys", "/console/keys/key?id=k1"} {
		k.get(path).hides(t, secret)
	}
	if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "make an API key") {
		t.Errorf("the log is %s", log.String())
	}
}

func TestKeyIsChangedOnlyIfUnmodifiedSinceShown(t *testing.T) {
	d := keysDoor(t)
	d.set("PATCH /keys/k1", ciKey)
	k := openDesk(t, d, nil)
	k.get("/console/keys/key?id=k1").says(t, `name="etag" value="`+html.EscapeString(`"12"`)+`"`, "nightly", "build team")
	form := []string{"do", "change", "id", "k1", "etag", `"12"`, "owner", "build team", "scopes", "tools:read\r\ntools:call", "groups", "", "note", "hourly", "expires", "2027-01-01T00:00:00"}
	if p := k.post("/console/keys/key", form...); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/keys/key?done=key&id=k1" {
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
		p.says(t, "Nothing was changed: somebody else changed the key", "The last change is by bob", `<pre class="code">nightly</pre>`, `<pre class="code">hourly</pre>`, `name="etag" value="`+html.EscapeString(`"12"`)+`"`)
		if strings.Contains(p.body, "<td>Owner</td>") {
			t.Error("a field that is the same is shown as a difference")
		}
	}
	// A refusal keeps the submitted values.
	d.set("PATCH /keys/k1", "!forbidden You may not.")
	p := k.post("/console/keys/key", form...)
	p.says(t, "You may not.", "hourly")
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
	p.says(t, "Nothing was revoked")
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
	k.post("/console/keys/key", "do", "revoke", "id", "k1", "etag", `"12"`, "sure", "yes").says(t, "somebody else changed the key")
}
