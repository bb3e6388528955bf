package session

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files again")

func TestRequestsMatchTheGoldenFile(t *testing.T) {
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
		{"legacy call of an episode", envelope{}, Request{Name: "echo", Params: []byte(`{"a":1}`), Clock: "2026-01-31T12:00:00Z", Seed: "-7", bound: &Binding{name: "episode_1"}}},
		{"modern call of an episode that poses as another one", modern, Request{
			Name: "echo", Params: []byte(`{"a":1}`), bound: &Binding{name: "episode_1"},
			Extra: []byte(`{"_meta":{"dev.callyard/session":"x","dev.callyard/clock":"x","dev.callyard/seed":"x"}}`),
		}},
		{"legacy call to a program that is told", envelope{tells: true}, Request{Name: "echo", Params: []byte(`{"a":1}`), Session: "local/episode_1", Clock: "2026-01-31T12:00:00Z", Seed: "-7"}},
		{"legacy call without a session to a program that is told", envelope{tells: true}, Request{Name: "echo", Clock: "2026-01-31T12:00:00Z"}},
		{"legacy ping", envelope{}, Request{Method: "ping"}},
	} {
		line := appendRequest(nil, c.env, firstID+1, &c.req)
		if !rawjson.IsObject(line) {
			t.Errorf("%s: %s is not an object", c.title, line)
		}
		out.WriteString("# " + c.title + "\n" + string(line) + "\n")
	}
	out.WriteString("# cancel\n" + string(cancelMessage(firstID+1, "timeout")) + "\n")
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
