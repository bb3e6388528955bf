package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// Episodes run at a callyard env and a run is scored. The console shows both in a browser.
func TestEnvironmentsAndEvaluationsInABrowser(t *testing.T) {
	t.Parallel()
	env := startEnv(t, "", notesFiles)
	for i := range 8 {
		session := env.post(t, "/reset", map[string]any{"index": i % 4}).Metadata.SessionID
		env.step(t, session, "evaluate", map[string]any{"expression": fmt.Sprintf("40 + %d", i%4)})
		if i < 7 {
			env.step(t, session, "finish", map[string]any{})
			env.post(t, "/reset", map[string]any{"session_id": session, "index": 0}) // ends the previous one
		}
	}
	runs := filepath.Join(t.TempDir(), "runs")
	data, answers := filepath.Join(t.TempDir(), "d.jsonl"), filepath.Join(t.TempDir(), "r.jsonl")
	run := "first<i>"
	if *update {
		run, data = "first", filepath.Join(os.TempDir(), "questions.jsonl") // for the screenshot
		t.Cleanup(func() { os.Remove(data) })
	}
	write(t, data, `{"id":"1","category":"x","question":"q","tools":["a","b"],"target_tools":"a"}`+"\n"+`{"id":"2","category":"<script>attack()</script>","question":"q","tools":["a","b"],"target_tools":"b"}`+"\n")
	write(t, answers, `{"id":"1","text":"<tool_call>{\"name\":\"a\"}</tool_call>"}`+"\n"+`{"id":"2","text":"<tool_call>{\"name\":\"<img src=x onerror=attack()>\"}</tool_call>"}`+"\n")
	if code, _, stderr := command(t, nil, "eval", "score", filepath.Join(runs, run), "--data", "jsonl:"+data, "--responses", answers); code != 0 {
		t.Fatal(stderr)
	}

	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"crm": scripted(mcptest.Echo)}), flags: []string{"--approver-listen", "127.0.0.1:0"},
		env: []string{quickStop, "CALLYARD_APPROVER_CONSOLE_ENVIRONMENTS=" + env.url, "CALLYARD_FRONT_DOOR_EVALUATIONS=" + runs},
	})
	pages := d.says(t, `approvals\s+(http://\S+)`)[1]
	p := openTab(startBrowser(t), t, true)
	p.watchPolicy()
	for name, path := range map[string]string{"console-environments": "/console/environments", "console-environment": "/console/environment?name=notes", "console-evaluations": "/console/evaluations"} {
		p.open(pages + path)
		p.sees(name, `document.querySelector("h1") !== null`)
		p.glance(name)
		p.staysAtHome(name)
	}
	p.open(pages + "/console/environment?name=notes")
	p.hasText("Highest reward")
	if n := p.count("polyline.curve"); n != 1 {
		t.Errorf("the page has %d curves", n)
	}
	p.open(pages + "/console/evaluations")
	p.tabTo(`a[href^="/console/evaluations/report?"]`)
	p.press("\r")
	p.sees("the report", `document.title.startsWith("Tool selection: first")`)
	if got := asked[string](p, `location.origin === window.origin ? "its own" : "none"`); got != "none" {
		t.Errorf("the origin of the report is %s", got)
	}
	p.picture("console-report", 1280, false)
	for _, path := range []string{"..%2Fruns%2Ffirst", "%2Fetc", ".."} {
		resp, err := http.Get(pages + "/console/evaluations/report?run=" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	resp, err := http.Get(pages + "/console/evaluations/report?run=" + url.QueryEscape(run))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "sandbox") {
		t.Errorf("the policy is %q", csp)
	}
}
