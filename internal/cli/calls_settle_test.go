package cli

import (
	"net/http"
	"strings"
	"testing"
)

func TestACallIsSettledOrCanceled(t *testing.T) {
	plainEnvironment(t)
	settled := jsonAnswer(`{"id":"call_1","state":"succeeded","settled":"night: it is in the books"}`)
	d := openDoor(t, map[string]answer{
		"POST /calls/call_1/settle": settled,
		"POST /calls/call_1/cancel": jsonAnswer(`{"id":"call_1","state":"canceled","problem":{"title":"Canceled","detail":"It was\ntaken back."}}`),
		"POST /calls/call_2/settle": problemAnswer(http.StatusConflict, `{"title":"Conflict","status":409,"detail":"Call call_2 is succeeded.","retryable":false}`),
		"POST /calls/a%2Fb/cancel":  jsonAnswer(`{}`),
	})
	for _, c := range []struct {
		args string
		code int
		sent string
		said string
	}{
		{"settle|call_1|--as|done|--reason|it is in the books", exitOK, `{"as":"done","reason":"it is in the books"}`, "call_1 is succeeded (settled by night: it is in the books)\n"},
		{"settle|call_1|--as|done|--reason|x|--json", exitOK, `{"as":"done","reason":"x"}`, settled.body},
		{"retry|call_1", exitOK, `{"as":"run-again","reason":"retried manually"}`, "call_1 is succeeded"},
		{"retry|call_1|--reason|it is repaired", exitOK, `{"as":"run-again","reason":"it is repaired"}`, "call_1 is"},
		{"cancel|call_1", exitOK, "", "call_1 is canceled: It was taken back.\n"},
		{"settle|call_2|--as|failed|--reason|x", exitRefused, `{"as":"failed","reason":"x"}`, "Call call_2 is succeeded."},
		{"cancel|a/b", exitUnreachable, "", "it is not Callyard"},
		{"settle|call_1|--reason|x", exitUsage, "-", "--as"},
		{"settle|call_1|--as|maybe|--reason|x", exitUsage, "-", "--as"},
		{"settle|call_1|--as|done|--reason| ", exitUsage, "-", "--reason"},
		{"cancel", exitUsage, "-", "Usage"},
		{"retry|a|b", exitUsage, "-", "Usage"},
	} {
		before := len(d.requests())
		stdout, stderr, code := typed(t, "", append([]string{"calls", "--url", d.URL}, strings.Split(c.args, "|")...)...)
		asked := d.requests()[before:]
		if code != c.code || !strings.Contains(stdout+stderr, c.said) {
			t.Errorf("%s: code %d, want %d and %q: %s%s", c.args, code, c.code, c.said, stdout, stderr)
		}
		if want := c.sent != "-"; want != (len(asked) == 1) || want && asked[0].body != c.sent {
			t.Errorf("%s: it asked %+v", c.args, asked)
		}
	}
}
