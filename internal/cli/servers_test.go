package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func fleetDoor(t *testing.T) *door {
	t.Helper()
	return openDoor(t, map[string]answer{
		"GET /servers":      jsonAnswer(recorded(t, "servers.json")),
		"GET /servers/demo": jsonAnswer(recorded(t, "server-demo.json")),
		"GET /servers/sad":  jsonAnswer(recorded(t, "server-sad.json")),
		"GET /workers":      jsonAnswer(recorded(t, "workers.json")),
	})
}

func TestServersAndTheirWorkersAreShown(t *testing.T) {
	plainEnvironment(t)
	d := fleetDoor(t)
	for name, args := range map[string][]string{
		"servers":     {"servers"},
		"server-demo": {"servers", "show", "demo"},
		"server-sad":  {"servers", "show", "sad"},
	} {
		stdout, stderr, code := typed(t, "", append(args, "--url", d.URL)...)
		golden(t, name, fmt.Sprintf("exit %d\n%s%s", code, stdout, stderr))
	}
}

func TestWithJSONReportsAreUnchanged(t *testing.T) {
	plainEnvironment(t)
	d := fleetDoor(t)
	for file, args := range map[string][]string{
		"servers.json": {"servers"}, "server-sad.json": {"servers", "show", "sad"}, "workers.json": {"workers"},
	} {
		stdout, stderr, code := typed(t, "", append(args, "--json", "--url", d.URL)...)
		if stdout != recorded(t, file) || code != exitOK {
			t.Errorf("%s: code %d, stdout %q, stderr %q", file, code, stdout, stderr)
		}
	}
}

func TestWorkersAreShownWithTheirLoad(t *testing.T) {
	plainEnvironment(t)
	var out bytes.Buffer
	c := clientOf(t, fleetDoor(t), &out, io.Discard)
	if err := listWorkers(t.Context(), c, time.Date(2026, 11, 21, 15, 20, 8, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	golden(t, "workers", out.String())
}

func TestAnAgeHasTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s", 2*time.Hour + 3*time.Minute: "2h3m", 49 * time.Hour: "2d1h",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestServersAreAddedRemovedAndRestarted(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"POST /servers":              {status: 201, media: "application/json", body: `{"id":"files","status":"connected"}`},
		"DELETE /servers/files":      jsonAnswer(`{"status":"disconnected"}`),
		"POST /servers/demo/restart": {status: 202, media: "application/json", body: `{"id":"demo","status":"restarting"}`},
	})
	for _, row := range []struct {
		args       []string
		stdin      string
		code       int
		says, sent string
	}{
		{[]string{"add", "files", "--env", "A=b=c", "--risk", "1", "--", "server", "--flag", "x"}, "", exitOK, "files is connected\n", `{"id":"files","command":"server","args":["--flag","x"],"env":{"A":"b=c"},"riskLevel":1}`},
		{[]string{"add", "files", "--server-url", "https://x/mcp"}, "", exitOK, "files is connected\n", `{"id":"files","url":"https://x/mcp"}`},
		{[]string{"add", "files", "--entry", "-"}, `{"command":"c","docker":{"image":"i"}}`, exitOK, "files is connected\n", `{"command":"c","docker":{"image":"i"},"id":"files"}`},
		{[]string{"add", "files", "--entry", "-"}, `[]`, exitUsage, "is not a JSON object", ""},
		{[]string{"add", "files"}, "", exitUsage, "Pass one of", ""},
		{[]string{"add", "files", "--server-url", "https://x", "--", "c"}, "", exitUsage, "Pass one of", ""},
		{[]string{"add", "files", "--env", "secret", "--", "c"}, "", exitUsage, "--env must have the form NAME=VALUE", ""},
		{[]string{"remove", "files"}, "", exitOK, "files is disconnected\n", ""},
		{[]string{"restart", "demo"}, "", exitOK, "demo is restarting\n", ""},
		{[]string{"restart", "none"}, "", exitRefused, "", ""},
	} {
		args := append([]string{"servers", row.args[0], "--url", d.URL}, row.args[1:]...)
		stdout, stderr, code := typed(t, row.stdin, args...)
		if code != row.code || !strings.Contains(stdout+stderr, row.says) || strings.Contains(stdout+stderr, "secret") {
			t.Errorf("%v: code %d, %q %q", row.args, code, stdout, stderr)
		}
		if asked := d.requests(); row.sent != "" && asked[len(asked)-1].body != row.sent {
			t.Errorf("%v sent %v", row.args, asked[len(asked)-1].body)
		}
	}
}
