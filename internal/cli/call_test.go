package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const addLine = "POST /servers/demo/tools/add"

func TestAResultIsWrittenForPeople(t *testing.T) {
	plainEnvironment(t)
	for _, name := range []string{"text", "blocks", "structured", "text-and-structured", "error", "empty", "odd"} {
		d := openDoor(t, map[string]answer{addLine: jsonAnswer(recorded(t, "result-"+name+".json"))})
		stdout, stderr, code := typed(t, "", "call", "demo", "add", "--url", d.URL)
		golden(t, "result-"+name, fmt.Sprintf("exit %d\n-- stdout\n%s-- stderr\n%s", code, stdout, stderr))
	}
}

func TestWithJSONTheResultIsUnchanged(t *testing.T) {
	plainEnvironment(t)
	for body, want := range map[string]int{
		"{\"content\" : [],\r\n \"n\": 9007199254740993, \"z\":1,\"a\":\"\\u00e9\",\"x\":1e400}\n": exitOK,
		`{"isError":true,"content":[{"type":"hologram","data":[1,2]}],"isnt":"<&>"}` + "\n":        exitToolError,
	} {
		d := openDoor(t, map[string]answer{addLine: jsonAnswer(body)})
		stdout, _, code := typed(t, "", "call", "demo", "add", "--json", "--url", d.URL)
		if stdout != body || code != want {
			t.Errorf("code %d, want %d; stdout %q, want %q", code, want, stdout, body)
		}
	}
}

func TestArgumentsAreSentByteForByte(t *testing.T) {
	plainEnvironment(t)
	object := "{\"z\": 9007199254740993,\n\t\"a\":\"\\u00e9\", \"é\":1.50}\n"
	file := filepath.Join(t.TempDir(), "arguments.json")
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"nothing":      {"", nil, "{}"},
		"command line": {"", []string{object}, object},
		"stdin":        {object, []string{"-"}, object},
		"file":         {"", []string{"@" + file}, object},
		"pairs":        {"", []string{"a=2", "b=40"}, `{"a":2,"b":40}`},
	} {
		d := openDoor(t, map[string]answer{addLine: jsonAnswer(`{"content":[]}`)})
		_, stderr, code := typed(t, c.stdin, append([]string{"call", "--url", d.URL, "demo", "add"}, c.args...)...)
		asked := d.requests()
		if code != exitOK || len(asked) != 1 || asked[0].body != c.want || asked[0].header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: code %d, asked %+v, %s", name, code, asked, stderr)
		}
	}
}

func TestTimeoutIsSentOnlyIfSet(t *testing.T) {
	plainEnvironment(t)
	for given, want := range map[string]string{"": "", "0s": "", "30s": "30000", "1us": "1", "1500us": "2"} {
		d := openDoor(t, map[string]answer{addLine: jsonAnswer(`{"content":[]}`)})
		args := []string{"call", "demo", "add", "--url", d.URL}
		if given != "" {
			args = append(args, "--timeout", given)
		}
		if _, stderr, code := typed(t, "", args...); code != exitOK {
			t.Fatalf("code %d: %s", code, stderr)
		}
		if got := d.requests()[0].header.Get("Callyard-Timeout-Ms"); got != want {
			t.Errorf("--timeout %s: sent %q, want %q", given, got, want)
		}
	}
}

func TestHeldCallExitsAsRefused(t *testing.T) {
	plainEnvironment(t)
	body := recorded(t, "held.json")
	d := openDoor(t, map[string]answer{addLine: {status: http.StatusAccepted, media: "application/json", body: body}})
	stdout, stderr, code := typed(t, "", "call", "demo", "add", "--url", d.URL)
	golden(t, "held", fmt.Sprintf("exit %d\n-- stdout\n%s-- stderr\n%s", code, stdout, stderr))
	if stdout, _, code := typed(t, "", "call", "demo", "add", "--url", d.URL, "--json"); stdout != body || code != exitRefused {
		t.Errorf("with --json: code %d, %q", code, stdout)
	}
	people := openDoor(t, map[string]answer{addLine: {status: http.StatusAccepted, media: "application/json", body: `{"call_id":"call_1","expires_at":"2026-11-21T13:27:28.123456789Z"}`}})
	if _, stderr, _ := typed(t, "", "call", "demo", "add", "--url", people.URL); !strings.Contains(stderr, "until people approve it") || !strings.Contains(stderr, "call: call_1\n  until: 2026-11-21 13:27:28 UTC") {
		t.Errorf("for people: %s", stderr)
	}
}

// eventsAnswer is a response with a stream of server-sent events.
func eventsAnswer(text string) answer { return answer{media: "text/event-stream", body: text} }

func TestProgressIsShownAtATerminalAndRemoved(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{addLine: eventsAnswer(
		": alive\n\nevent: progress\ndata: {\"progress\":1,\"total\":4,\"message\":\"reading\\nthe \\u001b[2Jfile\"}\n\n" +
			"event: progress\ndata: {\"progress\":0.5}\n\nevent: progress\ndata: \"odd\"\n\nevent: weather\ndata: rain\n\n" +
			"event: result\ndata: {\"content\":[{\"type\":\"text\",\ndata: \"text\":\"done\"}]}\n\n")})
	var out, note bytes.Buffer
	c := clientOf(t, d, &out, &note)
	if err := callTool(t.Context(), c, "demo", "add", []byte("{}"), 0); err != nil {
		t.Fatal(err)
	}
	if want := "\r\x1b[K1/4 reading the \\x1b[2Jfile\r\x1b[K0.5\r\x1b[K"; note.String() != want || out.String() != "done\n" {
		t.Errorf("stdout %q, stderr %q, want %q", out.String(), note.String(), want)
	}
	if accept := d.requests()[0].header.Get("Accept"); !strings.HasPrefix(accept, "text/event-stream") {
		t.Errorf("accepts %q", accept)
	}
}

func TestNoProgressIsRequestedWithoutATerminal(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{addLine: jsonAnswer(`{"content":[]}`)})
	c := clientOf(t, d, io.Discard, io.Discard)
	c.out.format = formatJSON // the result must be byte for byte
	if err := callTool(t.Context(), c, "demo", "add", []byte("{}"), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, code := typed(t, "", "call", "demo", "add", "--url", d.URL); code != exitOK { // stderr is a pipe
		t.Fatal(code)
	}
	for _, r := range d.requests() {
		if accept := r.header.Get("Accept"); accept != "application/json" {
			t.Errorf("accepts %q", accept)
		}
	}
}

func TestAStreamedCallEndsWithTheCodeOfItsLastEvent(t *testing.T) {
	plainEnvironment(t)
	progress := "event: progress\ndata: {\"progress\":1}\n\n"
	for name, c := range map[string]struct {
		answer answer
		code   int
		says   string
	}{
		"result":           {eventsAnswer(progress + "event: result\ndata: {\"content\":[]}\n\n"), exitOK, ""},
		"tool error":       {eventsAnswer("event: result\ndata: {\"content\":[],\"isError\":true}\n\n"), exitToolError, "reported an error"},
		"refused":          {eventsAnswer(progress + "event: error\ndata: {\"status\":403,\"detail\":\"Not you.\"}\n\n"), exitRefused, "Not you."},
		"unknown outcome":  {eventsAnswer("event: error\ndata: {\"status\":504,\"detail\":\"Who knows.\",\"call_id\":\"call_1\"}\n\n"), exitUnreachable, "call_1"},
		"refused at once":  {problemAnswer(404, `{"status":404,"detail":"No such tool."}`), exitRefused, "No such tool."},
		"plain answer":     {jsonAnswer(`{"content":[]}`), exitOK, ""},
		"held":             {answer{status: 202, media: "application/json", body: `{"confirmation_id":"c1"}`}, exitRefused, "c1"},
		"cut off":          {eventsAnswer(progress + "event: result\ndata: {\"content\":"), exitUnreachable, "may have run"},
		"nothing":          {eventsAnswer(""), exitUnreachable, "may have run"},
		"a broken problem": {eventsAnswer("event: error\ndata: {\n\n"), exitUnreachable, "check --url"},
		"a page":           {answer{media: "text/html", body: "hello"}, exitUnreachable, "check --url"},
	} {
		d := openDoor(t, map[string]answer{addLine: c.answer})
		client := clientOf(t, d, io.Discard, io.Discard)
		err := callTool(t.Context(), client, "demo", "add", []byte("{}"), time.Minute)
		if exitCode(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: code %d, want %d: %v", name, exitCode(err), c.code, err)
		}
	}
}

func TestAToolCannotSteerTheTerminal(t *testing.T) {
	plainEnvironment(t)
	text := "a\tb\n\x1b]0;owned\x07 \u202etxt.exe é 漢"
	d := openDoor(t, map[string]answer{addLine: jsonAnswer(`{"content":[{"type":"text","text":` + string(marshal(text)) + `}]}`)})
	var out bytes.Buffer
	c := clientOf(t, d, &out, io.Discard)
	if err := callTool(t.Context(), c, "demo", "add", []byte("{}"), 0); err != nil {
		t.Fatal(err)
	}
	if want := "a\tb\n\\x1b]0;owned\\a \\u202etxt.exe é 漢\n"; out.String() != want {
		t.Errorf("at a terminal: %q, want %q", out.String(), want)
	}
	if stdout, _, _ := typed(t, "", "call", "demo", "add", "--url", d.URL); stdout != text+"\n" {
		t.Errorf("in a pipe: %q, want the text as it is", stdout)
	}
}

// unansweringDoor is a front door that takes a request and never answers.
type unansweringDoor struct{}

func (unansweringDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

func TestAFrontDoorThatNeverAnswersTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{base: "http://door", http: &http.Client{Transport: unansweringDoor{}}}
		if err := c.connect(); err != nil {
			t.Fatal(err)
		}
		for want, ask := range map[time.Duration]func() error{
			time.Second + callSlack: func() error { return callTool(t.Context(), c, "demo", "add", []byte("{}"), time.Second) },
			answerWait:              func() error { return listServers(t.Context(), c, nil) },
		} {
			began := time.Now()
			err := ask()
			if exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "did not answer in time") || time.Since(began) != want {
				t.Errorf("after %v, want %v: %v", time.Since(began), want, err)
			}
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAResultThatCannotBeWrittenIsAnError(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{addLine: jsonAnswer(`{"content":[{"type":"text","text":"x"}]}`)})
	for _, format := range []format{formatJSON, formatYAML, formatTable} {
		c := clientOf(t, d, brokenPipe{}, io.Discard)
		c.out.format = format
		if err := callTool(t.Context(), c, "demo", "add", []byte("{}"), 0); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%s: %v", format, err)
		}
	}
}
