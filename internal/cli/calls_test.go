package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

func callViews(t *testing.T) []string {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ns := at.UnixNano()
	var texts []string
	for _, r := range []records.Record{
		{ID: "call_06ebef9j423at1ewk1zr0rhgm4", State: schema.StateSucceeded, Server: "files", Tool: "read", Principal: "agent", Owner: "team-a", Arguments: records.DigestOf([]byte("{}")), ArgumentBytes: 2,
			ResultBytes: 4321, Admitted: ns, Started: ns + 1e6, Ended: ns + 4_561_000, Changed: ns, Took: 3 * time.Millisecond, Worker: "worker_1", FrontDoor: "frontdoor_1", Attempt: 1, Trace: records.TraceID{0x4b, 0xf9, 15: 0x36}},
		{ID: "call_06ebef9j423at1ewk1zr0rhgm0", State: schema.StateSucceeded, ToolError: true, Server: "files", Tool: "rm", Principal: "agent", Admitted: ns - 60e9, Ended: ns - 1e9, Attempt: 2,
			Durable: true, Replayed: true, Batch: "batch_1", Index: 7, CustomID: "row\u202e7", Approval: "appr_1"},
		{ID: "call_06ebef9j40ya0xwpv9v8ys0790", State: schema.StateUnknown, Server: "bank", Method: schema.MethodGetPrompt, Principal: "eve\x1b[2J", Admitted: ns - 3600e9, Ended: ns - 3599e9,
			Error: schema.KindOutcomeUnknown, Detail: "It left\nand never came back."},
		{ID: "call_06ebef9j40ya0xwpv9v8ys0780", State: schema.StateRunning, Server: "bank", Tool: "pay", Principal: "eve", Admitted: ns - 7200e9},
	} {
		text, err := json.Marshal(r.View())
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func TestCallsAreListedAcrossPages(t *testing.T) {
	plainEnvironment(t)
	v := callViews(t)
	d := openDoor(t, map[string]answer{
		"GET /calls?limit=3&state=unknown&state=running&tool=read":           jsonAnswer(`{"calls":[` + v[0] + `,` + v[1] + `],"next":"c1"}`),
		"GET /calls?cursor=c1&limit=1&state=unknown&state=running&tool=read": jsonAnswer(`{"calls":[],"next":"c2"}`), // an empty page need not be the last
		"GET /calls?cursor=c2&limit=1&state=unknown&state=running&tool=read": jsonAnswer(`{"calls":[` + v[2] + `],"next":"c3"}`),
		"GET /calls?limit=500":           jsonAnswer(`{"calls":[` + strings.Join(v, ",") + `],"next":"c9"}`),
		"GET /calls?cursor=c9&limit=500": jsonAnswer(`{"calls":[]}`),
	})
	t.Setenv("CALLYARD_URL", d.URL)
	out, note, code := typed(t, "", "calls", "--limit", "3", "--state", "unknown,running", "--tool", "read")
	if code != exitOK || !strings.Contains(note, "There are more") {
		t.Fatalf("%d %s", code, note)
	}
	for _, want := range []string{"call_06ebef9j423at1ewk1zr0rhgm4", "call_06ebef9j423at1ewk1zr0rhgm0", "call_06ebef9j40ya0xwpv9v8ys0790", "tool error", "4.56ms", "prompts/get"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.ContainsAny(out, "\x1b\u202e") || strings.Count(out, "\n") != 4 {
		t.Errorf("what servers and callers say steers the terminal:\n%q", out)
	}
	out, note, code = typed(t, "", "calls", "--limit", "900", "--json")
	if want := `{"calls":[` + strings.Join(v, ",") + "]}\n"; code != exitOK || note != "" || out != want {
		t.Errorf("%d %s\n%s\nwant\n%s", code, note, out, want)
	}
}

func TestListTimesAreConvertedToTimestamps(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]string{
		"90s": "2026-03-04T05:04:37Z", "2h": "2026-03-04T03:06:07Z", "7d": "2026-02-25T05:06:07Z", "2026-01-02T15:04:05+02:00": "2026-01-02T13:04:05Z",
	} {
		q := callsQuery{limit: 1, since: text}
		values, err := q.values(now)
		if err != nil {
			t.Fatal(err)
		}
		r, err := callyard.NewListCallsRequest("http://door", values)
		if err != nil || r.URL.Query().Get("since") != want {
			t.Errorf("%s: %s, %v", text, r.URL, err)
		}
	}
}

func TestCallsRejectInvalidFlags(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, nil)
	t.Setenv("CALLYARD_URL", d.URL)
	for _, args := range [][]string{
		{"--state", "gone"}, {"--since", "yesterday"}, {"--since", "-3h"}, {"--until", "3x"}, {"--limit", "0"}, {"a", "b"},
	} {
		if _, note, code := typed(t, "", append([]string{"calls"}, args...)...); code != exitUsage || note == "" {
			t.Errorf("%q: %d %q", args, code, note)
		}
	}
	if len(d.requests()) != 0 {
		t.Error("it asked nevertheless")
	}
}

func TestCallIsShownWithAllDetails(t *testing.T) {
	plainEnvironment(t)
	v := callViews(t)
	withResult := strings.TrimSuffix(v[0], "}") + `,"result":{"content":[{"type":"text","text":"hello there"}]}}`
	d := openDoor(t, map[string]answer{
		"GET /calls/one":   jsonAnswer(withResult),
		"GET /calls/two":   jsonAnswer(v[1]),
		"GET /calls/three": jsonAnswer(v[2]),
		"GET /calls/held":  jsonAnswer(`{"id":"call_1","state":"denied","server":"bank","tool":"pay","approval_id":"appr_2","created":"2026-01-02T03:04:05Z","problem":{"title":"Denied","detail":"Ada said no."},"decisions":[{"by":"ada","kind":"deny","reason":"not \u202etoday","at":"2026-01-02T03:05:06Z"}]}`),
		"GET /calls/none":  problemAnswer(http.StatusNotFound, `{"title":"Not found","status":404,"detail":"There is no record of call.","retryable":false}`),
	})
	t.Setenv("CALLYARD_URL", d.URL)
	var all bytes.Buffer
	for _, id := range []string{"one", "two", "three", "held"} {
		out, note, code := typed(t, "", "calls", id)
		if code != exitOK {
			t.Fatalf("%s: %d %s", id, code, note)
		}
		all.WriteString("$ callyard calls " + id + "\n" + out + "\n")
	}
	golden(t, "calls-one", all.String())
	if out, _, code := typed(t, "", "calls", "one", "--json"); code != exitOK || out != withResult+"\n" {
		t.Errorf("%d %s", code, out)
	}
	if _, note, code := typed(t, "", "calls", "none"); code != exitRefused || !strings.Contains(note, "no record") {
		t.Errorf("%d %s", code, note)
	}
}
