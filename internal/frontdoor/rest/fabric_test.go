package rest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is the API in front of a scripted worker.
type fabric struct {
	*frontdoortest.Fabric
	t      testing.TB
	api    *API
	url    string
	client *http.Client
}

// principalInFlight is the limit of calls in flight per principal.
const principalInFlight = 50

func openFabric(t testing.TB, change func(*Options)) *fabric {
	t.Helper()
	return openFabricWith(t, frontdoortest.Options{}, change)
}

func openFabricWith(t testing.TB, with frontdoortest.Options, change func(*Options)) *fabric {
	t.Helper()
	with.Script, with.InFlight = script, principalInFlight
	f := &fabric{Fabric: frontdoortest.Open(t, with), t: t}
	o := Options{
		Calls: calls.New(f.Calls), Batches: f.Batches, Catalog: f.Catalog, Router: f.Router, Keys: f.Keys, Metrics: f.Metrics, Log: f.Log,
		Version: "test", Started: time.Now().Add(-90 * time.Second), Ready: f.Conn.Ready,
	}
	if change != nil {
		change(&o)
	}
	var err error
	if f.api, err = New(o); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(f.api)
	t.Cleanup(s.Close)
	f.url, f.client = s.URL, s.Client()
	f.WaitFor("the tools of demo", func() bool {
		_, err := f.Catalog.Tools("demo")
		return err == nil
	})
	return f
}

// answer is a complete HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (f *fabric) do(method, path, body string, header ...string) answer {
	f.t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	return f.send(f.request(method, path, from, header...))
}

func (f *fabric) request(method, path string, body io.Reader, header ...string) *http.Request {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, body)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Add(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	return r
}

func (f *fabric) send(r *http.Request) answer {
	f.t.Helper()
	status, header, body := frontdoortest.Send(f.t, f.client, r)
	return answer{status, header, body}
}

// problemOf checks the rules for all problem documents.
func problemOf(t testing.TB, a answer) problem.Document {
	t.Helper()
	var p problem.Document
	if err := json.Unmarshal(a.body, &p); err != nil {
		t.Fatalf("status %d, not a problem document: %s", a.status, a.body)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("Content-Type %q", ct)
	}
	if p.Status != a.status || p.Title == "" || p.Detail == "" || p.Error != p.Detail || !strings.HasPrefix(p.Type, "/problems/") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if a.header.Get("X-Request-Id") == "" {
		t.Error("no request id")
	}
	if a.status == 429 || a.status == 503 {
		if after := a.header.Get("Retry-After"); after == "" || after == "0" {
			t.Errorf("Retry-After %q with %d", after, a.status)
		}
	}
	return p
}

var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`call_[0-9a-z]{26}`), "call_ID"},
	{regexp.MustCompile(`"uptime":[0-9.]+`), `"uptime":90`},
	{regexp.MustCompile(`"(started|at)":"[^"]+"`), `"$1":"TIME"`},
	{regexp.MustCompile(`"go":"[^"]+"`), `"go":"GO"`},
	{regexp.MustCompile(`req_[0-9a-z]+`), "req_ID"},
}

// golden compares an answer with a file of testdata, indented for readability.
func golden(t *testing.T, name string, a answer) {
	t.Helper()
	body := a.body
	for _, v := range volatile {
		body = v.what.ReplaceAll(body, []byte(v.with))
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		t.Fatalf("%s: not JSON: %s", name, a.body)
	}
	got := fmt.Sprintf("%d %s\n%s\n", a.status, a.header.Get("Content-Type"), strings.TrimSpace(pretty.String()))
	compare(t, name+".golden", []byte(got))
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	compareAt(t, filepath.Join("testdata", file), got)
}

// compareAt is compare for a golden file in another folder.
func compareAt(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; -update writes it (-want +got)\n%s", path, diff)
	}
}

// definitions are those of the server demo.
var definitions = schema.Definitions{
	Tools: frontdoortest.Tools(
		`{"name":"a/b","inputSchema":{"type":"object"}}`,
		`{"name":"../up.dot","inputSchema":{"type":"object"}}`,
		`{"name":"wärme 温度","inputSchema":{"type":"object"}}`,
		`{"name":"broken","inputSchema":{"type":"nonsense"}}`,
	),
	Resources:         []json.RawMessage{raw(`{"uri":"demo://one", "name":"One"}`)},
	ResourceTemplates: []json.RawMessage{raw(`{"uriTemplate":"demo://{id}","name":"Any"}`)},
	Prompts:           []json.RawMessage{raw(`{"name":"greet"}`)},
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

var script = frontdoortest.Script{
	Servers: []schema.Server{
		{ID: "demo", State: schema.StateInitialized, Transport: "stdio", Risk: 1, PID: 4711, Digest: schema.Digest([]byte("demo")), Slots: 32, Sessions: 1, Protocol: "2025-06-18", Version: "1.2.3", Title: "Demo"},
		{ID: "dead", State: schema.StateError, Transport: "stdio", Slots: 4, Restarts: 3, Error: "exited with code 3", StderrTail: "boom\n"},
		{ID: "two words", State: schema.StateStarting, Transport: "http", Slots: 4},
	},
	Definitions: definitions,
	Call: func(w *frontdoortest.Worker, f *bus.CallFrame, to bus.ReplyTo) bool {
		switch f.Tool {
		case "steps":
			for i := range 3 {
				w.Listener.Progress(to, f.Seq, fmt.Appendf(nil, `{"progress":%d,"total":3}`, i+1))
			}
			w.Result(to, f.Seq, `{"content":[]}`)
		case "late-error":
			w.Listener.Progress(to, f.Seq, []byte(`{"progress":1}`))
			w.Listener.Error(to, f.Seq, schema.Errorf(schema.KindResultTooLarge, "The tool answered 70 MB; the limit is 64."), true, 0)
		case "rpc":
			e := schema.Errorf(schema.KindProtocol, "The server answered with an error: no such city")
			e.RPC = &schema.RPCError{Code: -32602, Message: "no such city", Data: raw(`{"hint":[1,2]}`)}
			w.Listener.Error(to, f.Seq, e, true, 0)
		default:
			return false
		}
		return true
	},
}
