package cli

import (
	"strings"
	"testing"
)

func TestKeysOfARunningCallyardAreManaged(t *testing.T) {
	plainEnvironment(t)
	const item = `{"id":"4vQxWc0aZkPm","name":"ci","owner":"build team","scopes":["tools:read"],"origin":"api","etag":"\"7\"","created_by":"ops","created_at":"2026-01-02T03:04:05Z","expires_at":"2026-04-02T03:04:05Z","last_used_at":"2026-02-01T10:11:00Z"`
	d := openDoor(t, map[string]answer{
		"GET /keys":                      jsonAnswer(`{"keys":[` + item + `},{"id":"0","name":"old","scopes":["admin"],"origin":"configuration"}]}`),
		"GET /keys/4vQxWc0aZkPm":         jsonAnswer(item + `,"tools":["files/*"]}`),
		"POST /keys":                     jsonAnswer(item + `,"secret":"cyk_once"}`),
		"PATCH /keys/4vQxWc0aZkPm":       jsonAnswer(item + `}`),
		"POST /keys/4vQxWc0aZkPm/rotate": jsonAnswer(item + `,"secret":"cyk_next","former_secrets":[{"until":"2026-02-02T10:11:12Z"}]}`),
		"DELETE /keys/4vQxWc0aZkPm":      jsonAnswer(`{"status":"revoked"}`),
		"DELETE /keys/0":                 problemAnswer(409, `{"status":409,"detail":"The API key \"old\" is in the configuration (front_door.keys); change it there."}`),
	})
	for _, c := range []struct {
		args []string
		code int
		out  []string
		err  string
	}{
		{[]string{"keys", "list"}, exitOK, []string{"ci", "build team", "tools:read", "2026-04-02", "2026-02-01 10:11", "never", "configuration"}, ""},
		{[]string{"keys", "show", "ci"}, exitOK, []string{"4vQxWc0aZkPm", "files/*", "2026-01-02 03:04 ops"}, ""},
		{[]string{"keys", "show", "nobody"}, exitRefused, nil, "no API key nobody"},
		{[]string{"keys", "create", "ci", "--scope", "tools:read,tools:call:files", "--expires", "24h"}, exitOK, []string{"cyk_once", "shown only once", "2026-04-02 03:04:05 UTC"}, ""},
		{[]string{"keys", "create", "billing/ci", "--tenant", "billing", "--role", "caller"}, exitOK, []string{"cyk_once"}, ""},
		{[]string{"keys", "create", "ci", "--tenant", "", "--role", "caller"}, exitUsage, nil, "--tenant must be"},
		{[]string{"keys", "update", "ci", "--tenant", "billing"}, exitUsage, nil, "--tenant"},
		{[]string{"keys", "create", "ci"}, exitUsage, nil, "--scope"},
		{[]string{"keys", "create", "ci", "--role", "developer"}, exitOK, []string{"cyk_once"}, ""},
		{[]string{"keys", "create", "ci", "--role", "developer", "--scope", "admin"}, exitUsage, nil, "--role or --scope"},
		{[]string{"keys", "create", "ci", "--scope", "admin", "--expires", "-1h"}, exitUsage, nil, "negative"},
		{[]string{"keys", "update", "4vQxWc0aZkPm", "--note", "x"}, exitOK, []string{"was changed"}, ""},
		{[]string{"keys", "rotate", "ci", "--grace", "1h"}, exitOK, []string{"cyk_next", "until 2026-02-02 10:11:12 UTC"}, ""},
		{[]string{"keys", "rotate", "ci", "--grace", "2d"}, exitOK, []string{"cyk_next"}, ""},
		{[]string{"keys", "rotate", "ci", "--grace", "2w"}, exitUsage, nil, "such as \"250ms\""},
		{[]string{"keys", "revoke", ""}, exitUsage, nil, "An argument is empty. Usage: callyard keys revoke NAME"},
		{[]string{"keys", "revoke", "ci"}, exitOK, []string{"was revoked"}, ""},
		{[]string{"keys", "revoke", "old"}, exitRefused, nil, "front_door.keys"},
	} {
		stdout, stderr, code := typed(t, "", append(c.args, "--url", d.URL)...)
		if code != c.code || !strings.Contains(stderr, c.err) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		for _, want := range c.out {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q: %q has no %q", c.args, stdout, want)
			}
		}
	}
	made := 0
	for _, r := range d.requests() {
		if r.line == "POST /keys" && strings.Contains(r.body, `"tenant":"billing"`) && strings.Contains(r.body, `"name":"billing/ci"`) {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d keys of the tenant billing were made", made)
	}
}
