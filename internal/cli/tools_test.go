package cli

import (
	"io"
	"strings"
	"testing"
)

func toolsDoor(t *testing.T) *door {
	t.Helper()
	first, second := recorded(t, "tools-1.json"), recorded(t, "tools-2.json")
	return openDoor(t, map[string]answer{
		"GET /tools?limit=500":                         jsonAnswer(first),
		"GET /tools?cursor=ZGVtbwBiaWc&limit=500":      jsonAnswer(second),
		"GET /tools?limit=500&server=demo":             jsonAnswer(first[:strings.Index(first, `,"next_cursor"`)] + "}"),
		"GET /tools?limit=500&server=away":             jsonAnswer(`{"tools":[],"unknown":["away"]}`),
		"GET /tools?limit=500&server=nobody":           problemAnswer(404, `{"status":404,"detail":"There is no server \"nobody\"."}`),
		"PATCH /servers/demo/tools/big":                jsonAnswer(`{"server":"demo","name":"big","enabled":false,"reason":"too \"big\"","by":"local","at":"2026-11-21T13:17:04Z"}`),
		"PATCH /servers/demo/tools/files%2Fread%20all": jsonAnswer(`{"server":"demo","name":"files/read all","enabled":true,"at":"2026-11-21T13:17:04Z"}`),
	})
}

func TestToolsOfAllPagesAreListed(t *testing.T) {
	plainEnvironment(t)
	d := toolsDoor(t)
	for name, args := range map[string][]string{
		"tools":             {"tools"},
		"tools-json":        {"tools", "--json"},
		"tools-server":      {"tools", "demo"},
		"tools-search":      {"tools", "--search", "MUCH"},
		"tools-search-none": {"tools", "--search", "nonesuch", "--json"},
		"tools-show":        {"tools", "show", "demo", "big"},
		"tools-show-json":   {"tools", "show", "demo", "add", "--json"},
	} {
		stdout, stderr, code := typed(t, "", append(args, "--url", d.URL)...)
		if code != exitOK {
			t.Errorf("%s: code %d", name, code)
		}
		golden(t, name, stdout+"-- stderr\n"+stderr)
	}
}

func TestAToolThatIsNotThereIsRefused(t *testing.T) {
	plainEnvironment(t)
	d := toolsDoor(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"tools", "show", "demo", "nope"}, exitRefused, "callyard tools demo"},
		{[]string{"tools", "show", "nobody", "add"}, exitRefused, `no server "nobody"`},
		{[]string{"tools", "nobody"}, exitRefused, `no server "nobody"`},
		{[]string{"tools", "away"}, exitUnreachable, "callyard servers show away"},
		{[]string{"tools", "enable", "demo", "nope"}, exitRefused, "no such path"},
	} {
		stdout, stderr, code := typed(t, "", append(c.args, "--url", d.URL)...)
		if code != c.code || !strings.Contains(stderr, c.says) || stdout != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}

func TestAToolIsSwitchedWithItsReason(t *testing.T) {
	plainEnvironment(t)
	d := toolsDoor(t)
	stdout, stderr, code := typed(t, "", "tools", "disable", "demo", "big", "--reason", `too "big" & <slow>`, "--url", d.URL)
	if code != exitOK || stdout != "The tool big of server demo is off.\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	stdout, stderr, code = typed(t, "", "tools", "enable", "demo", "files/read all", "--url", d.URL)
	if code != exitOK || stdout != "The tool files/read all of server demo is on.\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	stdout, _, _ = typed(t, "", "tools", "disable", "demo", "big", "--json", "--url", d.URL)
	if !strings.HasPrefix(stdout, `{"server":"demo","name":"big","enabled":false,`) {
		t.Errorf("with --json: %q", stdout)
	}
	asked := d.requests()
	for i, want := range []string{`{"enabled":false,"reason":"too \"big\" & <slow>"}`, `{"enabled":true}`, `{"enabled":false}`} {
		if asked[i].body != want {
			t.Errorf("sent %s, want %s", asked[i].body, want)
		}
	}
}

func TestARepeatedCursorEndsTheList(t *testing.T) {
	plainEnvironment(t)
	page := jsonAnswer(`{"tools":[],"next_cursor":"same"}`)
	d := openDoor(t, map[string]answer{"GET /tools?limit=500": page, "GET /tools?cursor=same&limit=500": page})
	c := clientOf(t, d, io.Discard, io.Discard)
	if _, err := readTools(t.Context(), c, ""); err != nil || len(d.requests()) != 2 {
		t.Errorf("%d requests, %v", len(d.requests()), err)
	}
}
