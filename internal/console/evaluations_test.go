package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// oneEvaluation is a run with all its members.
const oneEvaluation = `{"id":"x","at":"2026-11-26T02:00:00Z","scored":true,"fault":"x","data":"x","samples":1234,"answers":2468,"trials":2,"f1":{"mean":0.5,"low":0.25,"high":0.75},"accuracy":{"mean":0.5,"low":0.25,"high":0.75},"reward":{"mean":0.5,"low":0.25,"high":0.75}}`

func TestEvaluationRunsAreListedAndReportsSandboxed(t *testing.T) {
	const name = "a&<b>run"
	d := openDoor(t, map[string]string{
		"GET /evaluations":                   `{"total":1000,"evaluations":[` + strings.Replace(oneEvaluation, `"id":"x"`, `"id":"`+name+`"`, 1) + `,{"id":"asked","at":"2026-11-26T02:00:00Z","scored":false,"fault":"It is not scored: run callyard eval score."}]}`,
		"GET /evaluations/a&%3Cb%3Erun/page": "<!doctype html><h1>Tool selection</h1>",
		"GET /evaluations/..%2Fsecret/page":  "!not-found There is no scored run of that name.",
		"GET /evaluations/unavailable/page":  "!unavailable The scores of the run cannot be read.",
	})
	k := openDesk(t, d, nil)
	p := k.get("/console/evaluations")
	p.has(t, `href="/console/evaluations/report?run=a%26%3Cb%3Erun"`, "1,234", "2,468", "of 2 trials", "50.0 %", "25.0 % to 75.0 %", "0.500", "No report", "callyard eval score", "The newest 2 of 1,000 runs", `href="/console/evaluations" aria-current="page"`)
	checkEscaped(t, "the list", p.body)
	report := "/console/evaluations/report?run="
	p = k.get(report + url.QueryEscape(name))
	if csp := p.header.Get("Content-Security-Policy"); p.status != http.StatusOK || !strings.HasPrefix(csp, "default-src 'none'") || !strings.HasSuffix(csp, "; sandbox") || strings.Contains(csp, "script") {
		t.Errorf("%d with the policy %q", p.status, csp)
	}
	p.has(t, "Tool selection")
	for _, name := range []string{"..", ".", "../secret", "asked", "/etc", `..\secret`, "%2e%2e/secret"} {
		if p = k.get(report + url.QueryEscape(name)); p.status != http.StatusNotFound || p.header.Get("Content-Security-Policy") != "" {
			t.Errorf("%q: %d", name, p.status)
		}
	}
	if p = k.get(report + "unavailable"); p.status != http.StatusServiceUnavailable || p.header.Get("Content-Security-Policy") != "" {
		t.Errorf("scores that cannot be read: %d", p.status)
	}
	if p = k.get(report); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/evaluations" {
		t.Errorf("no run: %d to %q", p.status, p.header.Get("Location"))
	}
	// A user without a key of the front door sees nothing.
	d.require("door-key")
	stranger := openDesk(t, d, nil)
	for _, path := range []string{"/console/evaluations", report + url.QueryEscape(name)} {
		if p = stranger.get(path); p.status != http.StatusSeeOther || !strings.HasPrefix(p.header.Get("Location"), "/console/key?") {
			t.Errorf("%s without a key: %d", path, p.status)
		}
	}
}

func TestEvaluationsPageShowsWhyItIsEmpty(t *testing.T) {
	k := openDesk(t, openDoor(t, map[string]string{"GET /evaluations": "!not-found This front door has no folder of evaluations: set front_door.evaluations."}), nil)
	k.get("/console/evaluations").has(t, "set front_door.evaluations")
	k = openDesk(t, openDoor(t, map[string]string{"GET /evaluations": `{"total":0,"evaluations":[]}`}), nil)
	k.get("/console/evaluations").has(t, "The folder has no runs")
	k = openDesk(t, openDoor(t, map[string]string{"GET /evaluations": "!forbidden Your key may not do this."}), nil)
	if p := k.get("/console/evaluations"); p.status != http.StatusForbidden {
		t.Errorf("a key without the scope: %d", p.status)
	}
}

func TestUnconfiguredPagesReturnNotFound(t *testing.T) {
	k := openDesk(t, openDoor(t, map[string]string{"GET /state": `{}`}), nil)
	for _, path := range []string{"/console/environments", "/console/environment?name=a"} {
		if p := k.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	k.get("/console/state").hasNot(t, "/console/environments")
}
