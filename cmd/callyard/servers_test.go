package main

import (
	"bytes"
	"fmt"
	"io"
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

func TestWithJSONReportsAreTheBytesThatCame(t *testing.T) {
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

func TestWorkersAreShownWithWhatTheyDo(t *testing.T) {
	plainEnvironment(t)
	var out bytes.Buffer
	c := clientOf(t, fleetDoor(t), &out, io.Discard)
	if err := c.listWorkers(t.Context(), time.Date(2026, 11, 21, 15, 20, 8, 0, time.UTC)); err != nil {
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
