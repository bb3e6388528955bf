package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

func TestEachStatusHasItsExitCode(t *testing.T) {
	plainEnvironment(t)
	for status, want := range map[int]int{
		400: exitRefused, 401: exitRefused, 403: exitRefused, 404: exitRefused, 409: exitRefused, 413: exitRefused, 415: exitRefused,
		422: exitRefused, 429: exitRefused, 499: exitRefused,
		500: exitUnreachable, 502: exitUnreachable, 503: exitUnreachable, 504: exitUnreachable,
	} {
		body := fmt.Sprintf(`{"title":"T","status":%d,"detail":"This is the sentence.","retryable":false}`, status)
		d := openDoor(t, map[string]answer{"POST /servers/demo/tools/add": problemAnswer(status, body)})
		stdout, stderr, code := typed(t, "", "call", "demo", "add", "--url", d.URL)
		if code != want || stdout != "" || !strings.HasPrefix(stderr, "callyard: This is the sentence.\n") {
			t.Errorf("%d: code %d, want %d; stdout %q, stderr %q", status, code, want, stdout, stderr)
		}
	}
}

func TestAProblemIsWrittenForPeople(t *testing.T) {
	plainEnvironment(t)
	for name, a := range map[string]answer{
		"problem-arguments":   problemAnswer(422, recorded(t, "problem-arguments.json")),
		"problem-rpc":         problemAnswer(502, recorded(t, "problem-rpc.json")),
		"problem-parameter":   problemAnswer(400, recorded(t, "problem-parameter.json")),
		"problem-unavailable": {status: 503, media: "application/problem+json", header: map[string]string{"Retry-After": "2"}, body: recorded(t, "problem-unavailable.json")},
		"problem-quota":       {status: 429, media: "application/problem+json; charset=utf-8", header: map[string]string{"Retry-After": "7"}, body: recorded(t, "problem-quota.json")},
		"problem-hostile":     problemAnswer(404, recorded(t, "problem-hostile.json")),
		"problem-stderr":      problemAnswer(502, `{"status":502,"detail":"The server \"notes\" did not start: the process exited with code 3. The end of its stderr:\nTraceback:\r\n    import notes\nNo module \u001b[31mnotes"}`),
	} {
		d := openDoor(t, map[string]answer{"POST /servers/demo/tools/add": a})
		_, stderr, code := typed(t, "", "call", "demo", "add", "--url", d.URL)
		golden(t, name, fmt.Sprintf("exit %d\n%s", code, stderr))
	}
}

func TestWithJSONAProblemIsPrintedUnchanged(t *testing.T) {
	plainEnvironment(t)
	body := recorded(t, "problem-arguments.json")
	d := openDoor(t, map[string]answer{"POST /servers/demo/tools/add": problemAnswer(422, body)})
	stdout, stderr, code := typed(t, "", "call", "demo", "add", "--url", d.URL, "--json")
	if stdout != body || code != exitRefused || !strings.Contains(stderr, "/a: ") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestWithJSONAnObjectThatIsNotInAListIsAProblem(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"GET /keys":                        jsonAnswer(`{"keys":[]}`),
		"GET /tools?limit=500&server=demo": jsonAnswer(`{"tools":[]}`),
		"GET /servers/files/pins":          jsonAnswer(pinsAnswer),
	})
	for _, args := range [][]string{
		{"keys", "show", "nobody"}, {"keys", "revoke", "nobody"}, {"tools", "show", "demo", "nobody"}, {"tools", "diff", "files", "nobody"}, {"tools", "accept", "files", "nobody", "--yes"},
	} {
		stdout, stderr, code := typed(t, "", append(args, "--url", d.URL, "--json")...)
		var p problem.Document
		if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != exitRefused || p.Status != http.StatusNotFound || !strings.Contains(stderr, p.Detail) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
		if stdout, _, _ := typed(t, "", append(args, "--url", d.URL)...); stdout != "" {
			t.Errorf("%q: a person gets %q", args, stdout)
		}
	}
}

func TestAnUnreachableFrontDoorIsNamedWithTheFix(t *testing.T) {
	plainEnvironment(t)
	address := "http://" + porttest.Address(t)
	for _, args := range [][]string{
		{"call", "demo", "add"}, {"tools"}, {"tools", "show", "demo", "add"}, {"tools", "disable", "demo", "add"}, {"servers"}, {"servers", "show", "demo"},
		{"workers"}, {"events"},
	} {
		stdout, stderr, code := typed(t, "", append(args, "--url", address)...)
		want := "callyard: Callyard is not reachable at " + address + ": start it with `callyard up`, or set another address with --url.\n"
		if code != exitUnreachable || stderr != want || stdout != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"approvals"}, {"approve", "appr_1"}} {
		if _, stderr, code := typedOn(t, rootCommand(), "", append(args, "--approver-url", address)...); code != exitUnreachable || !strings.Contains(stderr, "set another address with --approver-url.") {
			t.Errorf("%q: code %d, %s", args, code, stderr)
		}
	}
}

func TestAnotherServerAtTheAddressIsNotTakenForCallyard(t *testing.T) {
	plainEnvironment(t)
	page := answer{media: "text/html", body: "<h1>\x1b[31mWelcome</h1>"}
	missing := answer{status: 404, media: "text/html", body: "<h1>Nothing here</h1>"}
	odd := jsonAnswer(`["not", "a", "list of servers"]`)
	for name, c := range map[string]struct {
		answer answer
		code   int
	}{
		"page": {page, exitUnreachable}, "missing": {missing, exitRefused}, "odd": {odd, exitUnreachable},
		"an empty problem": {problemAnswer(400, `{}`), exitRefused}, "a broken problem": {problemAnswer(503, `{"detail":`), exitUnreachable},
	} {
		d := openDoor(t, map[string]answer{"GET /servers": c.answer})
		for _, args := range [][]string{{"servers"}, {"servers", "--json"}} {
			stdout, stderr, code := typed(t, "", append(args, "--url", d.URL)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, "check --url") {
				t.Errorf("%s: code %d, stdout %q, stderr %q", name, code, stdout, stderr)
			}
		}
	}
}

func TestATruncatedResponseIsAnError(t *testing.T) {
	plainEnvironment(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"content":[`))
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(s.Close)
	stdout, stderr, code := typed(t, "", "call", "demo", "add", "--url", s.URL, "--json")
	if code != exitUnreachable || stdout != "" || !strings.Contains(stderr, "The connection to "+s.URL+" failed") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
