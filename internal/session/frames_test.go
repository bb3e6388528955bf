package session

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestRequestsOnTheWireAreAsTheGoldenFileShows(t *testing.T) {
	modern := modernEnvelope("2026-07-28", "callyard", "v1")
	trace := schema.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1"}
	progress := func([]byte) {}
	var out bytes.Buffer
	for _, c := range []struct {
		title string
		env   envelope
		req   Request
	}{
		{"legacy call", envelope{}, Request{Name: "echo", Params: []byte(`{"n":9007199254740993,"z":1.0}`)}},
		{"legacy call without arguments", envelope{}, Request{Name: "a \"b\"\n"}},
		{"legacy call with everything", envelope{}, Request{Name: "echo", Params: []byte(`{}`), Trace: trace, Progress: progress}},
		{"modern call", modern, Request{Name: "echo", Params: []byte(`{"a":1}`)}},
		{"modern call with everything", modern, Request{Name: "echo", Params: []byte(`{"a":1}`), Trace: trace, Progress: progress}},
		{"legacy read", envelope{}, Request{Method: "resources/read", Params: []byte(`{ "uri" : "x" }`)}},
		{"legacy read with meta of the caller", envelope{}, Request{Method: "resources/read", Params: []byte(`{"_meta":{"mine":1,"progressToken":7},"uri":"x"}`)}},
		{"modern read", modern, Request{Method: "resources/read", Params: []byte(` { "uri":"x"}`)}},
		{"modern read without params", modern, Request{Method: "server/discover"}},
		{"modern read of nothing", modern, Request{Method: "resources/read", Params: []byte(`{}`)}},
		{"modern read with meta of the caller", modern, Request{Method: "prompts/get", Trace: trace, Progress: progress, Params: []byte(
			`{"name":"p","_meta":{"mine":{"a":1.0},"traceparent":"theirs","io.modelcontextprotocol/clientInfo":{"name":"other"},"progressToken":"t"},"arguments":{"b":2}}`)}},
		{"legacy ping", envelope{}, Request{Method: "ping"}},
	} {
		line := appendRequest(nil, c.env, firstID+1, &c.req)
		if !isObject(line) {
			t.Errorf("%s: %s is not an object", c.title, line)
		}
		out.WriteString("# " + c.title + "\n" + string(line) + "\n")
	}
	out.WriteString("# cancel\n" + string(appendCancel(nil, firstID+1, "timeout")) + "\n")
	out.WriteString("# reply to a ping\n" + string(appendReply(nil, &frame{id: []byte(`"q"`), method: []byte(`"ping"`)})) + "\n")
	out.WriteString("# reply to another request\n" + string(appendReply(nil, &frame{id: []byte("7"), method: []byte(`"roots/list"`)})) + "\n")

	golden := filepath.Join("testdata", "requests.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("the wire changed (-golden +now):\n%s", diff)
	}
}

func TestLinesComeOutWholeHoweverTheyArrive(t *testing.T) {
	want := []string{"one", "", strings.Repeat("long", 100_000), "four", strings.Repeat("x", 3<<20), "six", "no end"}
	text := strings.Join(want, "\r\n")
	for name, from := range map[string]io.Reader{
		"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)),
		"late error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		for _, size := range []int{smallBuffer, lineBuffer} {
			in := newLines(from, size, 4<<20)
			if s, ok := from.(*strings.Reader); ok {
				s.Reset(text)
			}
			for i, w := range want {
				got, err := in.next()
				if err != nil || string(got) != w {
					t.Fatalf("%s: line %d has %d bytes, want %d; %v", name, i, len(got), len(w), err)
				}
			}
			if _, err := in.next(); err != io.EOF {
				t.Errorf("%s: the end is %v", name, err)
			}
			if name != "whole" {
				break
			}
		}
	}
}

// endless is a line without an end.
type endless struct{ given int }

func (e *endless) Read(p []byte) (int, error) {
	e.given += len(p)
	return len(p), nil
}

func TestALineWithoutAnEndCostsBoundedMemory(t *testing.T) {
	var from endless
	in := newLines(&from, lineBuffer, 1<<20)
	if _, err := in.next(); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
	if from.given > 2<<20 || len(in.buf) > 2<<20 {
		t.Errorf("read %d bytes into a buffer of %d for a limit of %d", from.given, len(in.buf), 1<<20)
	}
	events := newEvents(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 10_000)), smallBuffer, 1<<20)
	if _, err := events.next(); !errors.Is(err, errTooLong) {
		t.Errorf("an event without an end: got %v", err)
	}
}

// FuzzEventsAreReadLikeTheirDefinitionSays compares with a reading by line and
// field that follows the words of the HTML standard.
func FuzzEventsAreReadLikeTheirDefinitionSays(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "data:a\ndata: b\n\ndata:  c\n\n", ": c\nevent: x\nid: 1\nretry: 5\ndata: d\n\n", "data\n\ndata: x",
		"id: 7\ndata:\n\ndata: y\r\n\r\n", "event: a\n\ndata: b\n\n", "\n\n\n", "dataa: x\n\n", "id: \x00\ndata: z\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want, got []string
		var name string
		var data []string
		for line := range strings.SplitSeq(text[:max(strings.LastIndexByte(text, '\n'), 0)], "\n") {
			line = strings.TrimSuffix(line, "\r")
			if line == "" {
				if joined := strings.Join(data, "\n"); joined != "" {
					want = append(want, name+"|"+joined)
				}
				name, data = "", nil
				continue
			}
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "data":
				data = append(data, value)
			case "event":
				name = value
			}
		}
		if !strings.HasSuffix(text, "\n") {
			text = text[:strings.LastIndexByte(text, '\n')+1] // what is cut off is dropped
		}
		in := newEvents(iotest.OneByteReader(strings.NewReader(text)), smallBuffer, 1<<20)
		for {
			ev, err := in.next()
			if err != nil {
				break
			}
			got = append(got, ev.name+"|"+string(ev.data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events of %q (-want +got):\n%s", text, diff)
		}
	})
}
