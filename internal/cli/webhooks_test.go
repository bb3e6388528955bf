package cli

import (
	"strings"
	"testing"
)

func TestWebhookDeliveriesAreListedAndSentAgain(t *testing.T) {
	plainEnvironment(t)
	const dead = `{"id":"call_1","url":"https://hooks.example.com/s3cret","receiver":"hooks.example.com:443","type":"call.succeeded","tenant":"red","state":"dead","size":412,"created_at":"2026-01-02T03:04:05Z","attempts":8,"last_error":"HTTP 503.","reason":"The receiver answered with HTTP 410.","ended_at":"2026-01-03T10:00:00Z"}`
	const waiting = `{"id":"batch_1","url":"https://b.example.com/","receiver":"b.example.com:443","type":"batch.ended","state":"waiting","size":4,"created_at":"2026-01-02T03:04:05Z","attempts":1,"next_attempt_at":"2999-01-03T10:00:00Z","last_error":"HTTP 503."}`
	d := openDoor(t, map[string]answer{
		"GET /webhooks/deliveries?limit=50&state=dead":                                jsonAnswer(`{"deliveries":[` + dead + `],"total":7}`),
		"GET /webhooks/deliveries?limit=50&state=waiting":                             jsonAnswer(`{"deliveries":[` + waiting + `],"total":1}`),
		"GET /webhooks/deliveries?limit=1000&receiver=b.example.com%3A443&state=dead": jsonAnswer(`{"deliveries":[],"total":0}`),
		"GET /webhooks/deliveries?limit=100&state=dead":                               jsonAnswer(`{"deliveries":[` + dead + `],"total":1}`),
		"POST /webhooks/deliveries/call_1/retry":                                      jsonAnswer(waiting),
		"POST /webhooks/deliveries/call_2/retry":                                      problemAnswer(404, `{"status":404,"detail":"There is no such webhook delivery: it was delivered, or has been deleted."}`),
	})
	for _, c := range []struct {
		args   string
		code   int
		out    []string
		stderr string
	}{
		{"webhooks", exitOK, []string{"call_1", "hooks.example.com:443", "call.succeeded", "red", "8", "HTTP 410"}, "1 of 7: use --limit or --receiver."},
		{"webhooks --json", exitOK, []string{`"url":"https://hooks.example.com/s3cret"`, `"total":7`}, ""},
		{"webhooks --state waiting", exitOK, []string{"batch_1", "in 1", "HTTP 503"}, ""},
		{"webhooks --receiver b.example.com:443 --limit 1000", exitOK, []string{"RECEIVER"}, ""},
		{"webhooks --state gone", exitUsage, nil, "--state cannot be"},
		{"webhooks --limit 1001", exitUsage, nil, "between 1 and 1000"},
		{"webhooks --limit 0", exitUsage, nil, "between 1 and 1000"},
		{"webhooks retry call_1", exitOK, []string{"batch_1 is sent to b.example.com:443 again."}, ""},
		{"webhooks retry call_1 --json", exitOK, []string{`"state":"waiting"`}, ""},
		{"webhooks retry call_2", exitRefused, nil, "it was delivered, or has been deleted"},
		{"webhooks retry", exitUsage, nil, "ID"},
		{"__complete webhooks retry c", exitOK, []string{"call_1\tcall.succeeded hooks.example.com:443"}, ""},
		{"__complete webhooks --receiver h", exitOK, []string{"hooks.example.com:443"}, ""},
	} {
		words := strings.Fields(c.args)
		if words[0] == "__complete" {
			words = append([]string{words[0], words[1], "--url", d.URL}, words[2:]...)
		} else {
			words = append(words, "--url", d.URL)
		}
		stdout, stderr, code := typed(t, "", words...)
		if code != c.code || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		for _, want := range c.out {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: %q has no %q", c.args, stdout, want)
			}
		}
		if strings.Contains(stdout, "s3cret") && !strings.Contains(c.args, "--json") {
			t.Errorf("%s shows the address of the receiver, which may hold a secret: %q", c.args, stdout)
		}
	}
}

// With --approver the commands send the same requests to the approver.
func TestWebhookCommandsReachTheApprover(t *testing.T) {
	plainEnvironment(t)
	const dead = `{"id":"evt_1","url":"https://hooks.example.com/s3cret","receiver":"hooks.example.com:443","type":"approval.asked","state":"dead","size":412,"created_at":"2026-01-02T03:04:05Z","attempts":8,"reason":"The receiver answered with HTTP 410."}`
	frontDoor := openDoor(t, map[string]answer{})
	approver := openDoor(t, map[string]answer{
		"GET /webhooks/deliveries?limit=50&state=dead":  jsonAnswer(`{"deliveries":[` + dead + `],"total":1}`),
		"GET /webhooks/deliveries?limit=100&state=dead": jsonAnswer(`{"deliveries":[` + dead + `],"total":1}`),
		"POST /webhooks/deliveries/evt_1/retry":         jsonAnswer(dead),
		"POST /webhooks/deliveries/evt_2/retry":         problemAnswer(403, `{"status":403,"detail":"Deliveries are shown to members of approver.notify.admin_groups only."}`),
	})
	for _, c := range []struct {
		args        string
		code        int
		out, stderr string
	}{
		{"webhooks --approver", exitOK, "evt_1", ""},
		{"webhooks retry --approver evt_1", exitOK, "evt_1 is sent to hooks.example.com:443 again.", ""},
		{"webhooks --approver retry evt_2", exitRefused, "", "approver.notify.admin_groups"},
		{"__complete webhooks retry --approver e", exitOK, "evt_1\tapproval.asked", ""},
		{"webhooks", exitUsage, "", "--approver-url needs --approver."},
	} {
		words := append(strings.Fields(c.args), "--url", frontDoor.URL, "--approver-url", approver.URL)
		if words[0] == "__complete" {
			words = []string{"__complete", "webhooks", "retry", "--approver", "--url", frontDoor.URL, "--approver-url", approver.URL, "e"}
		}
		stdout, stderr, code := typed(t, "", words...)
		if code != c.code || !strings.Contains(stderr, c.stderr) || !strings.Contains(stdout, c.out) {
			t.Errorf("%s: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}
