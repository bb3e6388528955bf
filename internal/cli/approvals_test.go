package cli

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func approvalAnswer(args string) string {
	return `{"id":"appr_1","call_id":"call_1","state":"pending","requester":{"name":"agent","owner":"team"},"server":"files","tool":"delete",` +
		`"risk_level":2,"reasons":["It deletes."],"arguments_digest":"sha256:abc","edited":false,"needed":2,"approval_count":0,"expires_in_ms":60000,` +
		`"decisions":[{"by":"ada","kind":"extend","at":"2026-01-02T03:04:05Z"}],"arguments":{"base64":"` + base64.StdEncoding.EncodeToString([]byte(args)) + `"}}`
}

// decide runs a command line against an approver with the given responses.
func decide(t *testing.T, d *door, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	plainEnvironment(t)
	t.Setenv("CALLYARD_APPROVER_URL", d.URL)
	var out, errOut bytes.Buffer
	root := &cobra.Command{Use: "callyard", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().String("url", "", "")
	root.PersistentFlags().String("key", "", "")
	addOutputFlags(root)
	root.AddCommand(approvalCommands()...)
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errOut)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		showError(&errOut, err)
	}
	return out.String(), errOut.String(), exitCode(err)
}

func TestApprovalsAreListedAcrossPages(t *testing.T) {
	d := openDoor(t, map[string]answer{
		"GET /approvals?state=pending":               jsonAnswer(`{"approvals":[` + approvalAnswer("{}") + `],"next_cursor":"appr_1"}`),
		"GET /approvals?cursor=appr_1&state=pending": jsonAnswer(`{"approvals":[` + strings.Replace(approvalAnswer("{}"), "appr_1", "appr_0", 1) + `]}`),
		"GET /approvals?state=denied":                jsonAnswer(`{"approvals":[]}`),
	})
	out, _, code := decide(t, d, "", "approvals")
	if code != exitOK || !strings.Contains(out, "appr_1") || !strings.Contains(out, "appr_0") || !strings.Contains(out, "1m0s") {
		t.Errorf("%d %s", code, out)
	}
	if out, _, code := decide(t, d, "", "approvals", "--state", "denied", "--json"); code != exitOK || out != `{"approvals":[]}`+"\n" {
		t.Errorf("%d %q", code, out)
	}
}

func TestDefaultApproverAddressNeedsALocalFrontDoor(t *testing.T) {
	for base, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost:8080": true, "http://[::1]:8080": true,
		"https://callyard.example.com": false, "http://127.0.0.1.example.com": false, "http://10.0.0.1:8080": false,
	} {
		t.Setenv("CALLYARD_APPROVER_URL", "")
		c := &client{base: base, key: "secret"}
		a, err := c.approver("", "")
		if got := err == nil; got != want || got && a.base != defaultApproverURL || !got && (exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--approver-url")) {
			t.Errorf("front door at %s: %v", base, err)
		}
		if a, err := c.approver("http://a.example.com", ""); err != nil || a.base != "http://a.example.com" {
			t.Errorf("front door at %s, with the flag: %v", base, err)
		}
	}
}

func TestCommandsForApproversSendTheKeyOfTheApprover(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{"GET /permissions": problemAnswer(http.StatusUnauthorized, `{"title":"No valid credential","status":401,"detail":"The API key is not known here."}`)})
	for _, step := range []struct {
		key, approverKey string
		args             []string
		want             string
	}{
		{"front-door", "", nil, "front-door"},
		{"front-door", "approver", nil, "approver"},
		{"front-door", "approver", []string{"--key", "flag"}, "flag"},
	} {
		t.Setenv("CALLYARD_KEY", step.key)
		t.Setenv("CALLYARD_APPROVER_KEY", step.approverKey)
		root := testRoot()
		root.AddCommand(approvalCommands()...)
		_, stderr, code := typedOn(t, root, "", append([]string{"permissions", "--approver-url", d.URL}, step.args...)...)
		asked := d.requests()
		if got := asked[len(asked)-1].header.Get("Authorization"); got != "Bearer "+step.want || code != exitRefused || !strings.Contains(stderr, "CALLYARD_APPROVER_KEY") {
			t.Errorf("sent %q, want the key %s; code %d, stderr %q", got, step.want, code, stderr)
		}
	}
}

func TestTheApprovalShowsHiddenCharacters(t *testing.T) {
	d := openDoor(t, map[string]answer{"GET /approvals/appr_1": jsonAnswer(approvalAnswer("{\"a\":\"\u202eп\u200b\x1b[2J漢\"}"))})
	out, _, code := decide(t, d, "", "approvals", "show", "appr_1")
	if want := `{"a":"\u202e\u043f\u200b\x1b[2J漢"}`; code != exitOK || !strings.Contains(out, want) {
		t.Errorf("%d %q lacks %q", code, out, want)
	}
}

func TestAnApprovalSendsTheDigestThatWasShown(t *testing.T) {
	d := openDoor(t, map[string]answer{
		"GET /approvals/appr_1":            jsonAnswer(approvalAnswer(`{"target":"x"}`)),
		"POST /approvals/appr_1/decisions": jsonAnswer(strings.Replace(approvalAnswer("{}"), `"approval_count":0`, `"approval_count":1`, 1)),
	})
	out, note, code := decide(t, d, "", "approve", "appr_1", "--yes", "--reason", "fine")
	if code != exitOK || !strings.Contains(out, "1 of 2") || !strings.Contains(note, `{"target":"x"}`) {
		t.Errorf("%d %q %q", code, out, note)
	}
	asked := d.requests()
	if got := asked[len(asked)-1].body; got != `{"kind":"approve","reason":"fine","digest":"sha256:abc"}` {
		t.Errorf("it sent %s", got)
	}
}

func TestApproveWithoutATerminalIsRefused(t *testing.T) {
	d := openDoor(t, map[string]answer{"GET /approvals/appr_1": jsonAnswer(approvalAnswer(`{}`))})
	if _, note, code := decide(t, d, "y\n", "approve", "appr_1"); code != exitUsage || !strings.Contains(note, "--yes") {
		t.Errorf("%d %q", code, note)
	}
	for _, r := range d.requests() {
		if strings.HasPrefix(r.line, "POST") {
			t.Errorf("it sent %s", r.line)
		}
	}
}

func TestOnlyYesApproves(t *testing.T) {
	d := openDoor(t, nil)
	var out bytes.Buffer
	c := clientOf(t, d, &out, &out)
	for said, want := range map[string]int{"y\n": exitOK, "YES\n": exitOK, "\n": exitRefused, "n\n": exitRefused, "y": exitRefused, "yep\n": exitRefused, "": exitRefused} {
		c.in = strings.NewReader(said)
		if got := exitCode(confirmed(t.Context(), c, "Run it?", "Not approved.")); got != want {
			t.Errorf("%q: %d", said, got)
		}
	}
}

func TestARefusedDecisionEndsWithItsCode(t *testing.T) {
	d := openDoor(t, map[string]answer{
		"POST /approvals/appr_1/decisions": problemAnswer(http.StatusForbidden, `{"title":"Not allowed","status":403,"detail":"The call was asked for by you.","retryable":false}`),
	})
	if _, note, code := decide(t, d, "", "deny", "appr_1", "--reason", "no"); code != exitRefused || !strings.Contains(note, "asked for by you") {
		t.Errorf("%d %q", code, note)
	}
	d.Close()
	if _, _, code := decide(t, d, "", "deny", "appr_1"); code != exitUnreachable {
		t.Errorf("unreachable: %d", code)
	}
}
