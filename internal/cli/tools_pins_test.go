package cli

import (
	"strings"
	"testing"
)

const pinsAnswer = `{"server":"files","pin":"quarantine","recorded":"2026-01-02T03:04:05Z","tools":[` +
	`{"name":"list","state":"accepted","digest":"sha256:aa","accepted_digest":"sha256:aa","accepted_at":"2026-01-02T03:04:05Z"},` +
	`{"name":"old","state":"gone","accepted_digest":"sha256:ee","accepted_at":"2026-01-02T03:04:05Z"},` +
	`{"name":"read","state":"changed","changed":["description","inputSchema"],"digest":"sha256:bb","definition":{"name":"read","description":"Reads a file.\u001b[2J","inputSchema":{"max":9007199254740993}},"accepted_digest":"sha256:cc","accepted_definition":{"name":"read","description":"Reads.","inputSchema":{"max":9007199254740992}},"accepted_by":"ops","accepted_at":"2026-02-03T04:05:06Z"},` +
	`{"name":"turn","state":"changed","changed":["order or spelling of members"],"digest":"sha256:ff","definition":{"name":"turn"},"accepted_digest":"sha256:fe","accepted_definition":{"name": "turn"},"accepted_at":"2026-01-02T03:04:05Z"},` +
	`{"name":"write it","state":"new","digest":"sha256:dd","definition":{"name":"write it"}}]}`

func pinsDoor(t *testing.T) *door {
	t.Helper()
	return openDoor(t, map[string]answer{
		"GET /servers/files/pins":  jsonAnswer(pinsAnswer),
		"POST /servers/files/pins": jsonAnswer(pinsAnswer),
		"GET /servers/same/pins":   jsonAnswer(`{"server":"same","pin":"warn","tools":[]}`),
		"POST /servers/late/pins":  problemAnswer(409, `{"status":409,"detail":"Tool \"read\" does not have the definition with this digest any more."}`),
		"GET /tools?limit=500":     jsonAnswer(`{"tools":[{"server":"files","name":"list","enabled":true,"changed":"it is new","definition":{"name":"list"}}],"quarantined":[{"server":"files","name":"read"},{"server":"files","name":"write it"}]}`),
	})
}

func TestUnacceptedDefinitionsAreShown(t *testing.T) {
	plainEnvironment(t)
	d := pinsDoor(t)
	for name, args := range map[string][]string{
		"tools-diff":         {"tools", "diff", "files"},
		"tools-diff-one":     {"tools", "diff", "files", "write it"},
		"tools-diff-json":    {"tools", "diff", "files", "write it", "--json"},
		"tools-diff-none":    {"tools", "diff", "same"},
		"tools-quarantine":   {"tools"},
		"tools-quarantine-j": {"tools", "--json"},
	} {
		stdout, stderr, code := typed(t, "", append(args, "--url", d.URL)...)
		if code != exitOK {
			t.Errorf("%s: code %d", name, code)
		}
		golden(t, name, stdout+"-- stderr\n"+stderr)
	}
	if _, stderr, code := typed(t, "", "tools", "diff", "files", "nope", "--url", d.URL); code != exitRefused || !strings.Contains(stderr, "no tool nope") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

func TestDefinitionsAreAcceptedByTheDigestThatWasShown(t *testing.T) {
	plainEnvironment(t)
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		body  string // "" means no request
		says  string
	}{
		{"y\n", []string{"files", "read"}, exitOK, `{"tools":[{"digest":"sha256:bb","name":"read"}]}`, "+  \"description\""},
		{"", []string{"files", "--all", "--yes"}, exitOK, `{"tools":[{"digest":"sha256:bb","name":"read"},{"digest":"sha256:ff","name":"turn"},{"digest":"sha256:dd","name":"write it"}]}`, "nothing accepted"},
		{"", []string{"files", "read@sha256:0123"}, exitOK, `{"tools":[{"digest":"sha256:0123","name":"read"}]}`, ""},
		{"n\n", []string{"files", "read"}, exitRefused, "", "Nothing was accepted."},
		{"", []string{"files", "--all"}, exitRefused, "", "Nothing was accepted."},
		{"", []string{"files"}, exitUsage, "", "--all"},
		{"", []string{"files", "read", "--all"}, exitUsage, "", "--all"},
		{"", []string{"files", "nope"}, exitRefused, "", "no tool nope"},
		{"", []string{"files", "list"}, exitOK, "", "All definitions"},
		{"", []string{"late", "read@sha256:0123"}, exitRefused, `{"tools":[{"digest":"sha256:0123","name":"read"}]}`, "any more"},
	} {
		d := pinsDoor(t)
		_, stderr, code := typed(t, c.stdin, append(append([]string{"tools", "accept"}, c.args...), "--url", d.URL)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: code %d, %q", c.args, code, stderr)
		}
		body := ""
		for _, r := range d.requests() {
			if strings.HasPrefix(r.line, "POST") {
				body = r.body
			}
		}
		if body != c.body {
			t.Errorf("%q sends %s, want %s", c.args, body, c.body)
		}
	}
}

// A server chooses the names of its tools, and must not get the key of an operator who copies the command.
func TestNameOfAToolIsNoFlagOfTheCommandThatAcceptsIt(t *testing.T) {
	plainEnvironment(t)
	other := openDoor(t, nil)
	name := "--url=" + other.URL + "/?"
	pins := strings.ReplaceAll(pinsAnswer, "write it", name)
	d := openDoor(t, map[string]answer{"GET /servers/files/pins": jsonAnswer(pins), "POST /servers/files/pins": jsonAnswer(pins)})
	stdout, _, code := typed(t, "", "tools", "diff", "files", "--url", d.URL)
	const command = "callyard tools accept "
	_, shown, ok := strings.Cut(stdout, command+"-- files '--url=")
	if code != exitOK || !ok {
		t.Fatalf("%d %s", code, stdout)
	}
	shown, _, _ = strings.Cut(shown, "'\n")
	_, stderr, code := typed(t, "", "tools", "accept", "--url", d.URL, "--", "files", "--url="+shown)
	if got := d.asked[len(d.asked)-1]; code != exitOK || got.line != "POST /servers/files/pins" || !strings.Contains(got.body, name) {
		t.Errorf("%d %s %+v", code, stderr, got)
	}
	if len(other.asked) > 0 {
		t.Errorf("the other address was asked: %+v", other.asked)
	}
}
