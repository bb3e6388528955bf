package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ctrlCWithin limits the time that `callyard up` takes to stop while no call runs. It is less than
// the time that calls in flight would get.
const ctrlCWithin = 20 * time.Second

func TestTheFirstCallWorksWithoutAnyConfiguration(t *testing.T) {
	up := startUp(t, setup{})
	try := up.says(t, `Try it in another terminal:\s+(curl .*)`)[1]
	if !strings.Contains(try, up.url+"/servers/demo/tools/echo") {
		t.Errorf("the line to try is %s, which is no call of the demo server at %s", try, up.url)
	}
	out, err := exec.Command("bash", "-c", try+` -f --noproxy '*'`).Output()
	if err != nil {
		t.Fatalf("%s: %v", try, err)
	}
	if got := text(t, out); got != "Echo: hi" {
		t.Errorf("the first call answers %q", got)
	}
	out, err = exec.Command(filepath.Join(bin(t), "callyard"), "--url", up.url, "call", "demo", "add", "a=2", "b=40").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "42" {
		t.Errorf("callyard call answers %q, %v", out, err)
	}
}

func TestAPIReferenceIsServedByCallyard(t *testing.T) {
	up := startUp(t, setup{env: []string{quickStop}})
	page := string(up.get(t, "/docs"))
	if !strings.Contains(strings.ToLower(page), "<!doctype html>") {
		t.Errorf("/docs is no page: %.300s", page)
	}
	for _, external := range []string{"src=\"http", "src='http", "href=\"http", "//unpkg.com", "//cdn."} {
		if strings.Contains(page, external) {
			t.Errorf("/docs loads from elsewhere: %s", external)
		}
	}
	var document struct {
		OpenAPI string                     `json:"openapi"`
		Paths   map[string]json.RawMessage `json:"paths"`
	}
	up.read(t, "/openapi.json", &document)
	if !strings.HasPrefix(document.OpenAPI, "3.1") {
		t.Errorf("the document is of OpenAPI %s", document.OpenAPI)
	}
	for _, path := range []string{
		"/health", "/servers", "/servers/{id}", "/servers/{id}/tools", "/servers/{id}/tools/{tool}", "/servers/{id}/resources",
		"/servers/{id}/resources/{uri}", "/servers/{id}/prompts", "/servers/{id}/prompts/{name}", "/calls", "/tools", "/workers", "/events",
		"/metrics", "/livez", "/readyz", "/version",
	} {
		if document.Paths[path] == nil {
			t.Errorf("the document lacks %s", path)
		}
	}
	if got := string(up.get(t, "/openapi.yaml")); !strings.Contains(got, "openapi: ") {
		t.Errorf("/openapi.yaml begins %.100s", got)
	}
}

func TestCtrlCStopsCallyardInSecondsAndLeavesNoProcess(t *testing.T) {
	up := startUp(t, setup{})
	up.waitServers(t, 1, "demo")
	up.call(t, "demo", "echo", `{"message":"hi"}`)
	family := descendants(t, up.pid())
	if len(family) < 2 {
		t.Fatalf("expected the demo server and the reaper below process %d, found %v", up.pid(), family)
	}
	up.signal(t, syscall.SIGINT)
	if code := up.wait(t, ctrlCWithin); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	gone(t, soon, "the processes of callyard up", family)
}

func TestRestartKeepsStoredData(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := startUp(t, setup{data: data, env: []string{quickStop}})
	first.waitServers(t, 1, "demo")
	if a := first.ask(t, "PATCH", toolPath("demo", "big"), `{"enabled":false,"reason":"too big for tonight"}`); a.status != 200 {
		t.Fatalf("switching a tool off answers %d: %s", a.status, a.body)
	}
	first.stop(t)
	second := startUp(t, setup{data: data, env: []string{quickStop}})
	second.waitServers(t, 1, "demo")
	a, err := second.tryCall("demo", "big", `{"bytes":1}`)
	if err != nil {
		t.Fatal(err)
	}
	if p := a.problem(t, 403, "tool-disabled"); !strings.Contains(p.Detail, "too big for tonight") {
		t.Errorf("the reason is lost: %s", p.Detail)
	}
}

func TestTwoProcessesNeverShareADataFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := startUp(t, setup{data: data, env: []string{quickStop}})
	second := start(t, setup{data: data}.program(t, "callyard"))
	if code := second.wait(t, startWithin); code != 1 {
		t.Errorf("the second start ends with code %d", code)
	}
	for _, part := range []string{"another process uses the data directory", data, "--data"} {
		if !strings.Contains(second.out.String(), part) {
			t.Errorf("it does not say %q: %s", part, second.out.String())
		}
	}
	first.waitServers(t, 1, "demo")
	first.call(t, "demo", "echo", `{"message":"still here"}`)
}
