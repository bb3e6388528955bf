package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEditedArgumentsAreShownAndSentByteForByte(t *testing.T) {
	answers := map[string]answer{
		"GET /approvals/appr_1":            jsonAnswer(approvalAnswer(`{"n": 5, "to": "a"}`)),
		"POST /approvals/appr_1/decisions": jsonAnswer(approvalAnswer(`{"n":4}`)),
	}
	file := filepath.Join(t.TempDir(), "edited.json")
	if err := os.WriteFile(file, []byte("{\"n\": 90071992547409931, \"to\": \"<a&b>\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const edited = `{"kind":"edit","reason":"less","digest":"sha256:abc","arguments":{"n": 90071992547409931, "to": "<a&b>"}}`
	for name, c := range map[string]struct {
		given, stdin, want string
	}{
		"a file":    {file, "", edited},
		"a pipe":    {"-", `{"n": 90071992547409931, "to": "<a&b>"}`, edited},
		"no change": {"-", `{"n": 5, "to": "a"}` + "\n", `{"kind":"approve","reason":"less","digest":"sha256:abc"}`},
	} {
		d := openDoor(t, answers)
		_, note, code := decide(t, d, c.stdin, "approve", "appr_1", "--arguments", c.given, "--yes", "--reason", "less")
		asked := d.requests()
		if code != exitOK || asked[len(asked)-1].body != c.want {
			t.Errorf("%s: %d %s\n%s", name, code, note, asked[len(asked)-1].body)
		}
		if c.want == edited && (!strings.Contains(note, "Arguments, edited after the request") || !strings.Contains(note, `{"n": 90071992547409931, "to": "<a&b>"}`)) {
			t.Errorf("%s: what is approved is not shown: %s", name, note)
		}
	}
}

func TestArgumentsThatAreNoObjectAreNotApproved(t *testing.T) {
	for given, want := range map[string]string{`[1]`: "not an object", `{"a":`: "not valid JSON", ` `: "empty"} {
		d := openDoor(t, map[string]answer{"GET /approvals/appr_1": jsonAnswer(approvalAnswer(`{}`))})
		_, note, code := decide(t, d, given, "approve", "appr_1", "--arguments", "-", "--yes")
		if code != exitUsage || !strings.Contains(note, want) || len(d.requests()) != 1 {
			t.Errorf("%s: %d %s %d requests", given, code, note, len(d.requests()))
		}
	}
	d := openDoor(t, map[string]answer{"GET /approvals/appr_1": jsonAnswer(approvalAnswer(`{}`))})
	if _, note, code := decide(t, d, "", "approve", "appr_1", "--edit"); code != exitUsage || !strings.Contains(note, "--arguments FILE") {
		t.Errorf("%d %s", code, note)
	}
	if _, note, code := decide(t, d, "", "approve", "appr_1", "--edit", "--arguments", "x"); code != exitUsage || !strings.Contains(note, "none of the others") {
		t.Errorf("%d %s", code, note)
	}
}

func TestTheEditorOfTheUserChangesTheArguments(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("VISUAL", "")
	for _, c := range []struct {
		editor, want string
		code         int
	}{
		{"sed -i s/5/4/", "{\n  \"n\": 4\n}\n", exitOK}, // with flags, as git allows
		{"true", `{"n":5}`, exitOK},
		{"false", "", exitRefused},
		{"sed -i s/5//", "", exitUsage},
		{"", "", exitUsage},
	} {
		t.Setenv("EDITOR", c.editor)
		got, err := editArguments(t.Context(), []byte(`{"n":5}`), strings.NewReader(""))
		if exitCode(err) != c.code || err == nil && string(got) != c.want {
			t.Errorf("%q: %s, %v", c.editor, got, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the arguments are left in %s", left[0].Name())
	}
}

func TestPermissionsAreListedAndRevoked(t *testing.T) {
	const good = `{"id":"perm_1","state":"good","requester":{"name":"agent"},"server":"files","tool":"delete","given_by":"ada","until":"2099-01-02T00:00:00Z","max_uses":5,"uses":2,"pattern":{"kind":"values","values":[{"pointer":"/path","digest":"x"}]}}`
	d := openDoor(t, map[string]answer{
		"GET /permissions":                     jsonAnswer(`{"permissions":[` + good + `,` + strings.NewReplacer("perm_1", "perm_2", `"good"`, `"over"`).Replace(good) + `]}`),
		"POST /permissions/perm_1/revocations": jsonAnswer(strings.Replace(good, `"good"`, `"revoked"`, 1)),
	})
	out, _, code := decide(t, d, "", "permissions")
	if code != exitOK || !strings.Contains(out, "perm_1") || strings.Contains(out, "perm_2") || !strings.Contains(out, "2 of 5") || !strings.Contains(out, "the same /path") {
		t.Errorf("%d %s", code, out)
	}
	if out, _, _ := decide(t, d, "", "permissions", "--all", "--json"); !strings.Contains(out, `"id":"perm_2"`) || !strings.Contains(out, good) {
		t.Errorf("%s", out)
	}
	out, _, code = decide(t, d, "", "permissions", "remove", "perm_1", "--reason", "over")
	asked := d.requests()
	if code != exitOK || out != "The permission is revoked: calls of delete on files by agent are held again.\n" || asked[len(asked)-1].body != `{"reason":"over"}` {
		t.Errorf("%d %s %s", code, out, asked[len(asked)-1].body)
	}
	if _, note, code := decide(t, d, "", "permissions", "remove", "perm_3"); code != exitRefused || note == "" {
		t.Errorf("%d %s", code, note)
	}
}
