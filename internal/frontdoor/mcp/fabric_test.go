package mcp

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	// A machine that runs many tests can stand still for seconds.
	sharedWithin, earlyWithin = time.Minute, time.Minute
	goleak.VerifyTestMain(m)
}

// fabric is the endpoint in front of a scripted worker.
type fabric struct {
	*frontdoortest.Fabric
	t        testing.TB
	endpoint *Endpoint
	url      string
	client   *http.Client
}

func openFabric(t testing.TB, change func(*Options)) *fabric {
	t.Helper()
	return openJudged(t, nil, change)
}

// openJudged is openFabric with a policy.
func openJudged(t testing.TB, policy *risk.Holder, change func(*Options)) *fabric {
	t.Helper()
	return openScripted(t, frontdoortest.Options{Script: script, Policy: policy}, change)
}

func openScripted(t testing.TB, of frontdoortest.Options, change func(*Options)) *fabric {
	t.Helper()
	f := &fabric{Fabric: frontdoortest.Open(t, of), t: t}
	o := Options{
		Calls: calls.New(f.Calls), Catalog: f.Catalog, Keys: f.Keys, Metrics: f.Metrics, Log: f.Log,
		Version: "test", FrontDoor: f.Calls.FrontDoor, ApproverURL: "http://approver.test",
	}
	if change != nil {
		change(&o)
	}
	f = f.serving(o)
	f.WaitFor("the tools of all servers", func() bool {
		for _, id := range []schema.ServerID{"demo", "risky", "two words"} {
			if _, err := f.Catalog.Tools(id); err != nil {
				return false
			}
		}
		return len(f.endpoint.lists.view(place{}).toolOf) > 0
	})
	return f
}

// define gives a server other definitions, and announces them.
func (f *fabric) define(id schema.ServerID, defs schema.Definitions) {
	f.Worker.Define(map[schema.ServerID]schema.Definitions{id: defs}, nil)
}

// serving returns the fabric with a new endpoint.
func (f *fabric) serving(o Options) *fabric {
	f.t.Helper()
	endpoint, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(endpoint.Close)
	s := httptest.NewServer(endpoint)
	f.t.Cleanup(s.Close)
	f.t.Cleanup(endpoint.drain) // end streams before the server waits for them
	o.Keys.Serve(s.URL)
	g := *f
	g.endpoint, g.url, g.client = endpoint, s.URL, s.Client()
	return &g
}

// answer is a complete HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// result returns the result of a JSON-RPC answer.
func (a answer) result(t testing.TB) string {
	t.Helper()
	if r := get(a.last(), "result"); r != nil {
		return string(r)
	}
	t.Fatalf("no result: %d %s", a.status, a.body)
	return ""
}

// fault returns the error of a JSON-RPC answer.
func (a answer) fault(t testing.TB) fault {
	t.Helper()
	var f fault
	if raw := get(a.last(), "error"); raw == nil || json.Unmarshal(raw, &f) != nil {
		t.Fatalf("no error: %d %s", a.status, a.body)
	}
	return f
}

// messages returns the messages of an answer: one, or those of its events.
func (a answer) messages() [][]byte {
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		return [][]byte{a.body}
	}
	var all [][]byte
	for event := range strings.SplitSeq(string(a.body), "\n\n") {
		var data []string
		for line := range strings.SplitSeq(event, "\n") {
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				data = append(data, text)
			}
		}
		if data != nil {
			all = append(all, []byte(strings.Join(data, "\n")))
		}
	}
	return all
}

func (a answer) last() []byte {
	all := a.messages()
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

func (f *fabric) request(method, path, body string, header ...string) *http.Request {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	return r
}

func (f *fabric) send(r *http.Request) answer {
	f.t.Helper()
	status, header, body := frontdoortest.Send(f.t, f.client, r)
	return answer{status, header, body}
}

// modernHeaders returns the headers of a request of the modern era.
func modernHeaders(method, name string, more ...string) []string {
	h := []string{"Mcp-Protocol-Version", mcpwire.Modern, "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return append(h, more...)
}

// modernBody returns a request of the modern era. members are the members of its params next to
// _meta, capabilities those of the client.
func modernBody(method, members, capabilities, meta string) string {
	if members != "" {
		members += ","
	}
	if meta != "" {
		meta = "," + meta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"%s":"%s","%s":%s%s}}}`, method, members, mcpwire.MetaProtocolVersion, mcpwire.Modern, mcpwire.MetaClientCapabilities, capabilities, meta)
}

// ask sends a request of the modern era.
func (f *fabric) ask(path, method, name, members string) answer {
	f.t.Helper()
	return f.send(f.request("POST", path, modernBody(method, members, `{}`, ""), modernHeaders(method, name)...))
}

// call calls a tool in the modern era.
func (f *fabric) call(path, tool, arguments string) answer {
	f.t.Helper()
	return f.ask(path, "tools/call", tool, fmt.Sprintf(`"name":%s,"arguments":%s`, quote(tool), arguments))
}

// callAs is call with capabilities and more members.
func (f *fabric) callAs(capabilities, path, tool, arguments, more string) answer {
	f.t.Helper()
	members := fmt.Sprintf(`"name":%s,"arguments":%s%s`, quote(tool), arguments, more)
	return f.send(f.request("POST", path, modernBody("tools/call", members, capabilities, ""), modernHeaders("tools/call", tool)...))
}

// legacyClient is a client with a session of the legacy era.
type legacyClient struct {
	f    *fabric
	path string
	id   string
}

func (f *fabric) enter(path, capabilities string) *legacyClient {
	f.t.Helper()
	a := f.send(f.request("POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities)))
	r := &legacyClient{f, path, a.header.Get(mcpwire.HeaderSessionID)}
	if a.status != 200 || r.id == "" {
		f.t.Fatalf("initialize: %d %s", a.status, a.body)
	}
	if a := r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.status != 202 {
		f.t.Fatalf("initialized: %d %s", a.status, a.body)
	}
	return r
}

func (r *legacyClient) request(body string) *http.Request {
	return r.f.request("POST", r.path, body, mcpwire.HeaderSessionID, r.id, "Mcp-Protocol-Version", "2025-11-25")
}

func (r *legacyClient) send(body string) answer {
	r.f.t.Helper()
	return r.f.send(r.request(body))
}

// definitions of each server.
var definitions = schema.Definitions{
	Tools: frontdoortest.Tools(
		`{"name":"ask","inputSchema":{"type":"object"}}`,
		`{"name":"ask-two","inputSchema":{"type":"object"}}`,
		`{"name":"ask-page","inputSchema":{"type":"object"}}`,
		`{"name":"stamped","inputSchema":{"type":"object"}}`,
		`{"name":"header","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`,
		`{"name":"wärme 温度","inputSchema":{"type":"object"}}`,
		`{"name":"no-type","inputSchema":{}}`,
		`{"name":"no-object","inputSchema":{"type":["object"]}}`,
		`{"name":"true-schema","inputSchema":true}`,
	),
	Resources:         []json.RawMessage{raw(`{"uri":"demo://one", "name":"One"}`)},
	ResourceTemplates: []json.RawMessage{raw(`{"uriTemplate":"demo://any/{id}","name":"Any"}`)},
	Prompts:           []json.RawMessage{raw(`{"name":"greet"}`)},
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

var script = frontdoortest.Script{
	Servers: []schema.Server{
		frontdoortest.Ready("demo", 1), frontdoortest.Ready("risky", 2), frontdoortest.Ready("two words", 1),
		{ID: "dead", State: schema.StateError, Transport: "stdio", Slots: 4, Error: "exited with code 3"},
	},
	Definitions: definitions,
	Call:        answerCall,
}

// answerCall answers as the name of the tool requires.
func answerCall(w *frontdoortest.Worker, f *bus.CallFrame, to bus.ReplyTo) bool {
	result := func(body string) { w.Result(to, f.Seq, body) }
	switch f.Tool {
	case "steps":
		for i := range 20 {
			w.Listener.Progress(to, f.Seq, fmt.Appendf(nil, `{"progressToken":77,"progress":%d,"total":20.0,"odd":9007199254740993}`, i+1))
		}
		result(`{"content":[]}`)
	case "late-error":
		w.Listener.Progress(to, f.Seq, []byte(`{"progress":1}`))
		e := schema.Errorf(schema.KindProtocol, "The server answered with an error")
		e.RPC = &schema.RPCError{Code: -32602, Message: "too late"}
		w.Listener.Error(to, f.Seq, e, true, 0)
	case "rpc":
		e := schema.Errorf(schema.KindProtocol, "The server answered with an error: no such city")
		e.RPC = &schema.RPCError{Code: 4242, Message: "no such city", Data: raw(`{"big":9007199254740993,"a":1.0}`)}
		w.Listener.Error(to, f.Seq, e, true, 0)
	case "stamped":
		result(`{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"theirs","version":"9"},"own":1.0}}`)
	case "ask":
		if strings.Contains(string(f.Extra), `"inputResponses"`) {
			result(fmt.Sprintf(`{"resultType":"complete","content":[],"extra":%s}`, f.Extra))
			break
		}
		state := cmp.Or(getString(f.Payload, "state"), "s-1")
		result(fmt.Sprintf(`{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"big":{"type":"array","items":{"type":"string"}}}}}}},"requestState":%q}`, state))
	case "ask-page":
		if strings.Contains(string(f.Extra), `"inputResponses"`) {
			result(fmt.Sprintf(`{"content":[],"extra":%s}`, f.Extra))
			break
		}
		result(`{"resultType":"input_required","inputRequests":{"p1":{"method":"elicitation/create","params":{"mode":"url","url":"https://example.com/a","message":"Open it"}}}}`)
	case "ask-two":
		switch extra := string(f.Extra); {
		case !strings.Contains(extra, `"inputResponses"`):
			result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"message":"b?"}}},"requestState":{"round":1}}`)
		case strings.Contains(extra, `"round":1`):
			result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":{"round":2}}`)
		default:
			result(fmt.Sprintf(`{"content":[],"extra":%s}`, f.Extra))
		}
	default:
		return false
	}
	return true
}
