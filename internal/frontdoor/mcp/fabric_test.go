package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is a real bus, catalog, router and gate before a scripted worker.
type fabric struct {
	t        testing.TB
	endpoint *Endpoint
	url      string
	client   *http.Client
	worker   *worker
	log      *lockedBuffer
	parts    calls.Options
	server   *bustest.Server
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func openFabric(t testing.TB, change func(*Options)) *fabric {
	t.Helper()
	return openJudged(t, nil, change)
}

// openJudged is openFabric with a policy.
func openJudged(t testing.TB, policy *risk.Holder, change func(*Options)) *fabric {
	t.Helper()
	server := bustest.Start(t)
	log := &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := startWorker(t, server.Connect(t, "worker"))
	conn := server.Connect(t, "frontdoor")
	router, err := dispatch.New(conn, "frontdoor-1", dispatch.Options{WorkerWait: 50 * time.Millisecond}, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cat, err := catalog.Open(ctx, conn, router, "frontdoor-1", catalog.Finding{}, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	keys, err := authn.NewKeys(nil)
	if err != nil {
		t.Fatal(err)
	}
	book, err := ledger.Open(ctx, conn, ledger.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	desk := approval.New(approval.Options{Ledger: book, Log: logger})
	gate := admission.NewGate(admission.Options{Catalog: cat, Limits: admission.Limits{ArgumentBytes: 64 << 10, MaxTimeout: time.Minute}, Policy: policy})
	chain := execution.New(execution.Options{Gate: gate, Router: router, Metrics: telemetry.NewMetrics(), Desk: desk})
	var releases sync.WaitGroup
	t.Cleanup(releases.Wait)
	release := func(ctx context.Context, a *ledger.Approval) (*schema.Result, error) {
		type end struct {
			res *schema.Result
			err error
		}
		done := make(chan end, 1)
		releases.Go(func() {
			gone := context.WithoutCancel(ctx)
			call, err := desk.Call(gone, a)
			if err != nil {
				done <- end{nil, err}
				return
			}
			res, err := chain.Run(gone, call, nil)
			if _, finishErr := desk.Finish(gone, a.ID, res, err); finishErr != nil {
				err = finishErr
			}
			done <- end{res, err}
		})
		select {
		case e := <-done:
			return e.res, e.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	store, err := journal.Open(ctx, conn, journal.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	runner, err := batch.Open(ctx, batch.Options{Store: store, Gate: gate, Chain: chain, Catalog: cat, Router: router, Ledger: book, Desk: desk, Release: release, ID: "frontdoor-1", Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := runner.Close(stopping); err != nil {
			t.Error(err)
		}
	})
	parts := calls.Options{Gate: gate, Chain: chain, Desk: desk, Ledger: book, Release: release, Durable: runner, FrontDoor: "router-test"}
	o := Options{
		Calls:   calls.New(parts),
		Catalog: cat, Keys: callers.New(callers.Options{Keys: keys}), Metrics: telemetry.NewMetrics(), Log: logger, Version: "test",
		FrontDoor: "router-test", ApproverURL: "http://approver.test",
	}
	if change != nil {
		change(&o)
	}
	f := (&fabric{t: t, worker: w, log: log, parts: parts, server: server}).serving(o)
	f.waitFor("the tools of all servers", func() bool {
		for _, id := range []string{"demo", "risky", "two words"} {
			if _, err := cat.Tools(id); err != nil {
				return false
			}
		}
		return len(f.endpoint.lists.view("").toolOf) > 0
	})
	return f
}

// serving returns the fabric with an endpoint of its own.
func (f *fabric) serving(o Options) *fabric {
	f.t.Helper()
	endpoint, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(endpoint.Close)
	s := httptest.NewServer(endpoint)
	f.t.Cleanup(s.Close)
	f.t.Cleanup(endpoint.drain) // streams end before the server waits for them
	o.Keys.Serve(s.URL)
	g := *f
	g.endpoint, g.url, g.client = endpoint, s.URL, s.Client()
	return &g
}

// waitFor waits for a change of the catalog that makes done true.
func (f *fabric) waitFor(what string, done func() bool) {
	f.t.Helper()
	changes, cancel := f.endpoint.o.Catalog.Changes()
	defer cancel()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond) // the endpoint hears of a change a moment later
	defer tick.Stop()
	for !done() {
		select {
		case <-changes:
		case <-tick.C:
		case <-deadline.C:
			f.t.Fatalf("%s did not come; log:\n%s", what, f.log)
		}
	}
}

// answer is a whole answer.
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

// messages returns the messages of an answer, one or those of its events.
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
	res, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, body}
}

// modernHeaders are those that a request of the modern era carries.
func modernHeaders(method, name string, more ...string) []string {
	h := []string{"Mcp-Protocol-Version", mcpwire.Modern, "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return append(h, more...)
}

// modernBody is a request of the modern era; members are those of its params next to
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

// legacyClient is a session of the legacy era.
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

// definitions of each server. The odd white space and the big number must come out
// as they are.
var definitions = schema.Definitions{
	Tools: []json.RawMessage{
		raw(`{"name":"echo",  "description":"Says it again", "inputSchema":{"type":"object"},"_meta":{"big":9007199254740993}}`),
		raw(`{"name":"strict","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n"],"additionalProperties":false}}`),
		raw(`{"name":"steps","inputSchema":{"type":"object"}}`),
		raw(`{"name":"fail","inputSchema":{"type":"object"}}`),
		raw(`{"name":"rpc","inputSchema":{"type":"object"}}`),
		raw(`{"name":"large","inputSchema":{"type":"object"}}`),
		raw(`{"name":"hang","inputSchema":{"type":"object"}}`),
		raw(`{"name":"late-error","inputSchema":{"type":"object"}}`),
		raw(`{"name":"lines","inputSchema":{"type":"object"}}`),
		raw(`{"name":"ask","inputSchema":{"type":"object"}}`),
		raw(`{"name":"ask-two","inputSchema":{"type":"object"}}`),
		raw(`{"name":"stamped","inputSchema":{"type":"object"}}`),
		raw(`{"name":"header","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`),
		raw(`{"name":"wärme 温度","inputSchema":{"type":"object"}}`),
		raw(`{"name":"no-type","inputSchema":{}}`),
		raw(`{"name":"no-object","inputSchema":{"type":["object"]}}`),
		raw(`{"name":"true-schema","inputSchema":true}`),
	},
	Resources:         []json.RawMessage{raw(`{"uri":"demo://one", "name":"One"}`)},
	ResourceTemplates: []json.RawMessage{raw(`{"uriTemplate":"demo://any/{id}","name":"Any"}`)},
	Prompts:           []json.RawMessage{raw(`{"name":"greet"}`)},
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// worker answers calls by the name of the tool.
type worker struct {
	conn     *bus.Conn
	listener *bus.Listener
	mu       sync.Mutex
	seen     []bus.CallFrame
	held     map[uint64]bus.ReplyTo
	canceled chan uint64
	told     chan told     // what clients said to the server of a call
	asked    chan struct{} // a call of the tool hang came
	announce schema.Worker
	defs     map[string]*bus.Description // by server, where they are not definitions
}

const workerID = "worker-1"

func startWorker(t testing.TB, conn *bus.Conn) *worker {
	t.Helper()
	w := &worker{conn: conn, held: make(map[uint64]bus.ReplyTo), canceled: make(chan uint64, 256), asked: make(chan struct{}, 256), told: make(chan told, 256), defs: make(map[string]*bus.Description)}
	ready := func(id string, risk int) schema.Server {
		return schema.Server{ID: id, State: schema.StateInitialized, Transport: "stdio", Risk: risk, Digest: schema.Digest([]byte(id)), Slots: 32, Sessions: 1, Protocol: "2025-06-18"}
	}
	w.announce = schema.Worker{
		ID: workerID, Name: "worker", Version: "test", Host: "host", PID: 4700, Started: time.Unix(1_700_000_000, 0).UTC(),
		Servers: []schema.Server{ready("demo", 1), ready("risky", 2), ready("two words", 1), {ID: "dead", State: schema.StateError, Transport: "stdio", Slots: 4, Error: "exited with code 3"}},
	}
	up := make(chan struct{})
	hello, err := conn.WatchHello(func() {
		<-up
		w.say()
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.listener, err = conn.Listen(workerID, w); err != nil {
		t.Fatal(err)
	}
	close(up)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(bus.AnnounceEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.say()
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		wait.Wait()
		hello.Stop()
		w.listener.Close()
	})
	return w
}

func (w *worker) say() {
	w.mu.Lock()
	a := w.announce
	w.mu.Unlock()
	_ = w.conn.Announce(&a)
}

// define gives a server other definitions, and announces them.
func (w *worker) define(id string, defs schema.Definitions) {
	d := &bus.Description{Digest: defs.Digest(), Definitions: &defs}
	w.mu.Lock()
	w.defs[id] = d
	servers := append([]schema.Server(nil), w.announce.Servers...)
	found := false
	for i := range servers {
		if servers[i].ID == id {
			servers[i].Digest, found = d.Digest, true
		}
	}
	if !found {
		servers = append(servers, schema.Server{ID: id, State: schema.StateInitialized, Transport: "stdio", Digest: d.Digest, Slots: 32, Sessions: 1})
	}
	w.announce.Servers = servers
	w.mu.Unlock()
	w.say()
}

func (w *worker) last() bus.CallFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[len(w.seen)-1]
}

func (w *worker) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

func (w *worker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	result := func(body string) {
		w.listener.Result(to, f.Seq, &schema.Result{Body: []byte(body), ToolError: strings.Contains(body, `"isError":true`), InputRequired: strings.Contains(body, `"input_required"`)})
	}
	if f.Method == bus.MethodDescribe {
		w.mu.Lock()
		d := w.defs[f.Server]
		w.mu.Unlock()
		if d == nil {
			d = &bus.Description{Digest: schema.Digest([]byte(f.Server)), Definitions: &definitions}
		}
		result(string(d.Encode()))
		return
	}
	w.mu.Lock()
	w.seen = append(w.seen, *f)
	w.mu.Unlock()
	switch f.Tool {
	case "fail":
		result(`{"content":[],"isError":true}`)
	case "steps":
		for i := range 20 {
			w.listener.Progress(to, f.Seq, fmt.Appendf(nil, `{"progressToken":77,"progress":%d,"total":20.0,"odd":9007199254740993}`, i+1))
		}
		result(`{"content":[]}`)
	case "late-error":
		w.listener.Progress(to, f.Seq, []byte(`{"progress":1}`))
		e := schema.Errorf(schema.KindProtocol, "The server answered with an error")
		e.RPC = &schema.RPCError{Code: -32602, Message: "too late"}
		w.listener.Error(to, f.Seq, e, true, 0)
	case "lines":
		result("{\"content\":\r\n[],\n\n\"a\":1\r}")
	case "rpc":
		e := schema.Errorf(schema.KindProtocol, "The server answered with an error: no such city")
		e.RPC = &schema.RPCError{Code: 4242, Message: "no such city", Data: raw(`{"big":9007199254740993,"a":1.0}`)}
		w.listener.Error(to, f.Seq, e, true, 0)
	case "large":
		result(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`)
	case "stamped":
		result(`{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"theirs","version":"9"},"own":1.0}}`)
	case "ask":
		if strings.Contains(string(f.Extra), `"inputResponses"`) {
			result(fmt.Sprintf(`{"resultType":"complete","content":[],"extra":%s}`, f.Extra))
			return
		}
		result(`{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"big":{"type":"array","items":{"type":"string"}}}}}}},"requestState":"s-1"}`)
	case "ask-two":
		switch extra := string(f.Extra); {
		case !strings.Contains(extra, `"inputResponses"`):
			result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"message":"b?"}}},"requestState":{"round":1}}`)
		case strings.Contains(extra, `"round":1`):
			result(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":{"round":2}}`)
		default:
			result(fmt.Sprintf(`{"content":[],"extra":%s}`, f.Extra))
		}
	case "hang":
		w.mu.Lock()
		w.held[f.Seq] = to
		w.mu.Unlock()
		w.asked <- struct{}{}
	default:
		result(fmt.Sprintf(`{"content":[{"type":"hologram","data":9007199254740993}] , "got":%s}`, f.Payload))
	}
}

func (w *worker) Cancel(seq uint64) {
	w.mu.Lock()
	to, ok := w.held[seq]
	delete(w.held, seq)
	w.mu.Unlock()
	if ok {
		w.listener.Error(to, seq, schema.Errorf(schema.KindCanceled, "The call was cancelled."), true, 0)
		w.canceled <- seq
	}
}
