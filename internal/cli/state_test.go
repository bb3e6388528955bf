package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStateImportShowsDifferencesFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, []byte(`{"format":"callyard-state/1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, map[string]answer{
		"GET /state":              jsonAnswer(`{"format":"callyard-state/1"}`),
		"PUT /state?dry_run=true": jsonAnswer(`{"dry_run":true,"failed":0,"etag":"\"sha256:now\"","changes":[{"part":"sets","name":"research","action":"add","done":false}]}`),
		"PUT /state":              jsonAnswer(`{"dry_run":false,"failed":1,"etag":"\"sha256:then\"","changes":[{"part":"sets","name":"research","action":"add","done":false,"error":"It cannot be."}]}`),
	})
	plainEnvironment(t)
	t.Setenv("CALLYARD_URL", d.URL)
	if out, _, code := typed(t, "", "state", "export"); code != exitOK || !strings.Contains(out, "callyard-state/1") {
		t.Errorf("%d %s", code, out)
	}
	out, note, code := typed(t, "", "state", "import", file)
	if code != exitOK || !strings.Contains(out, "research") || !strings.Contains(note, "Nothing was changed") || len(d.requests()) != 2 {
		t.Errorf("%d %s %s", code, out, note)
	}
	out, _, code = typed(t, "", "state", "import", file, "--apply")
	asked := d.requests()
	if last := asked[len(asked)-1]; code != exitUnmet || !strings.Contains(out, "It cannot be.") || last.header.Get("If-Match") != `"sha256:now"` || last.body != `{"format":"callyard-state/1"}` {
		t.Errorf("%d %s %+v", code, out, last)
	}
}

func TestSuccessfulImportIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, []byte(`{"format":"callyard-state/1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, map[string]answer{
		"PUT /state?dry_run=true": jsonAnswer(`{"dry_run":true,"failed":0,"etag":"\"sha256:now\"","changes":[{"part":"sets","name":"research","action":"add","done":false}]}`),
		"PUT /state":              jsonAnswer(`{"dry_run":false,"failed":0,"etag":"\"sha256:then\"","changes":[{"part":"sets","name":"research","action":"add","done":true}]}`),
	})
	plainEnvironment(t)
	if _, note, code := typed(t, "", "state", "import", file, "--apply", "--url", d.URL); code != exitOK || note != "1 change done.\n" {
		t.Errorf("%d %q", code, note)
	}
}
