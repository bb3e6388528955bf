package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/eval/runs"
)

// putRun writes a scored run to a folder of runs, with a text that others wrote.
func putRun(t *testing.T, dir, name, text string) {
	t.Helper()
	const estimate = `{"mean":0.5,"low":0.25,"high":0.75}`
	const metrics = `{"precision":` + estimate + `,"recall":` + estimate + `,"f1":` + estimate + `,"accuracy":` + estimate + `}`
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	report := `{"data":` + string(quoted) + `,"samples":1234,"answers":2468,"trials":2,"scoring":{"reward":{"name":` + string(quoted) + `}},"levels":[{"level":"published","micro":` + metrics + `,"macro":` + metrics + `,"categories":[{"name":` + string(quoted) + `,"samples":3,"metrics":` + metrics + `}]}],"rewards":[{"name":` + string(quoted) + `,"mean":` + estimate + `}]}`
	if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"report.json": report, "scores.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(dir, name, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunsOfEvaluationsAreListedAndTheirReportsAreInASandbox(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "runs")
	const name = "a&<b>run"
	putRun(t, dir, name, "<script>attack()</script>")
	putRun(t, above, "secret", "x")
	if err := os.MkdirAll(filepath.Join(dir, "asked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "asked", "responses.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, map[string]string{"GET /version": `{"version":"1"}`})
	k := openDesk(t, d, func(o *console.Options) { o.Evaluations = runs.New(dir) })
	p := k.get("/console/evaluations")
	p.says(t, `href="/console/evaluations/report?run=a%26%3Cb%3Erun"`, "1,234", "2,468", "of 2 trials", "50.0 %", "25.0 % to 75.0 %", "0.500", "No report", "callyard eval score", `href="/console/evaluations" aria-current="page"`)
	harmless(t, "the list", p.body)
	report := "/console/evaluations/report?run="
	p = k.get(report + url.QueryEscape(name))
	if csp := p.header.Get("Content-Security-Policy"); p.status != http.StatusOK || !strings.HasPrefix(csp, "default-src 'none'") || !strings.HasSuffix(csp, "; sandbox") || strings.Contains(csp, "script") {
		t.Errorf("%d with the policy %q", p.status, csp)
	}
	p.says(t, "Tool selection: a&amp;&lt;b&gt;run")
	p.hides(t, "<script>attack")
	for _, name := range []string{"", "..", "../secret", "asked", "/etc", `..\secret`, "%2e%2e/secret"} {
		if p = k.get(report + url.QueryEscape(name)); p.status != http.StatusNotFound || p.header.Get("Content-Security-Policy") != "" {
			t.Errorf("%q: %d", name, p.status)
		}
	}
	// Who has no key of the front door sees none of it.
	d.key = "door-key"
	stranger := openDesk(t, d, func(o *console.Options) { o.Evaluations = runs.New(dir) })
	for _, path := range []string{"/console/evaluations", report + url.QueryEscape(name)} {
		if p = stranger.get(path); p.status != http.StatusSeeOther || !strings.HasPrefix(p.header.Get("Location"), "/console/key?") {
			t.Errorf("%s without a key: %d", path, p.status)
		}
	}
}

func TestPagesThatAreNotConfiguredAreNotThere(t *testing.T) {
	k := openDesk(t, openDoor(t, map[string]string{"GET /state": `{}`}), nil)
	for _, path := range []string{"/console/evaluations", "/console/evaluations/report?run=a", "/console/environments", "/console/environment?name=a"} {
		if p := k.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	k.get("/console/state").hides(t, "/console/evaluations", "/console/environments")
}
