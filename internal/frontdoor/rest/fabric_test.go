package rest

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
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is a real bus, catalog, router and gate before a scripted worker.
type fabric struct {
	t      testing.TB
	nats   *bustest.Server
	api    *API
	url    string
	client *http.Client
	worker *worker
	log    *lockedBuffer
	parts  calls.Options
}

// lockedBuffer is a log that tests read while it is written.
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

var limits = admission.Limits{ArgumentBytes: 64 << 10, MaxTimeout: time.Minute}

// principalInFlight is how many calls a principal may have under way.
const principalInFlight = 50

func openFabric(t testing.TB, change func(*Options)) *fabric {
	t.Helper()
	return openFabricWith(t, limits, change)
}

func openFabricWith(t testing.TB, limits admission.Limits, change func(*Options)) *fabric {
	t.Helper()
	server := bustest.Start(t)
	log := &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := startWorker(t, server.Connect(t, "worker"), workerID)
	conn := server.Connect(t, "frontdoor")
	router, err := dispatch.New(conn, "frontdoor-1", dispatch.Options{WorkerWait: 50 * time.Millisecond}, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cat, err := catalog.Open(ctx, conn, router, "frontdoor-1", catalog.Finding{}, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	metrics := telemetry.NewMetrics()
	keys, err := authn.NewKeys(nil)
	if err != nil {
		t.Fatal(err)
	}
	opening, cancelOpening := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelOpening()
	book, err := ledger.Open(opening, conn, ledger.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	desk := approval.New(approval.Options{Ledger: book, Log: logger})
	records, err := records.Open(opening, conn, records.Options{FrontDoor: "frontdoor-1", Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(records.Close)
	limit := quota.Open(quota.Options{InFlight: principalInFlight, Log: logger})
	t.Cleanup(limit.Close)
	gate := admission.NewGate(admission.Options{Catalog: cat, Limits: limits})
	chain := execution.New(execution.Options{Gate: gate, Router: router, Metrics: metrics, Desk: desk, Records: records, Quota: limit})
	release := func(ctx context.Context, a *ledger.Approval) (*schema.Result, error) {
		call, err := desk.Call(ctx, a)
		if err != nil {
			return nil, err
		}
		res, err := chain.Run(ctx, call, nil)
		if _, finishErr := desk.Finish(ctx, a.ID, res, err); finishErr != nil {
			return nil, finishErr
		}
		return res, err
	}
	store, err := journal.Open(opening, conn, journal.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	runner, err := batch.Open(opening, batch.Options{Store: store, Gate: gate, Chain: chain, Catalog: cat, Router: router, Ledger: book, Desk: desk, Release: release, ID: "frontdoor-1", Log: logger})
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
	parts := calls.Options{Gate: gate, Chain: chain, Desk: desk, Ledger: book, Release: release, Durable: runner, Records: records, FrontDoor: "router-test"}
	o := Options{
		Calls: calls.New(parts), Batches: runner.Batches, Catalog: cat, Router: router, Keys: callers.New(callers.Options{Keys: keys}), Metrics: metrics, Log: logger,
		Version: "test", Started: time.Now().Add(-90 * time.Second), Ready: conn.Ready,
	}
	if change != nil {
		change(&o)
	}
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	f := &fabric{t: t, parts: parts, nats: server, api: api, url: s.URL, client: s.Client(), worker: w, log: log}
	f.waitFor("the tools of demo", func() bool {
		_, err := cat.Tools("demo")
		return err == nil
	})
	return f
}

// waitFor waits for a change of the catalog that makes done true.
func (f *fabric) waitFor(what string, done func() bool) {
	f.t.Helper()
	changes, cancel := f.api.o.Catalog.Changes()
	defer cancel()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for !done() {
		select {
		case <-changes:
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
	res, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, got}
}

// problemOf checks everything that is true of every problem document.
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

// golden compares an answer with a file of testdata, indented for people.
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

// compareAt is compare for a golden file elsewhere.
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

// definitions of the server demo. The odd white space and the big number must
// come out as they are.
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
		raw(`{"name":"a/b","inputSchema":{"type":"object"}}`),
		raw(`{"name":"../up.dot","inputSchema":{"type":"object"}}`),
		raw(`{"name":"wärme 温度","inputSchema":{"type":"object"}}`),
		raw(`{"name":"broken","inputSchema":{"type":"nonsense"}}`),
	},
	Resources:         []json.RawMessage{raw(`{"uri":"demo://one", "name":"One"}`)},
	ResourceTemplates: []json.RawMessage{raw(`{"uriTemplate":"demo://{id}","name":"Any"}`)},
	Prompts:           []json.RawMessage{raw(`{"name":"greet"}`)},
}

func list(items []json.RawMessage) string {
	texts := make([]string, 0, len(items))
	for _, i := range items {
		texts = append(texts, string(i))
	}
	return "[" + strings.Join(texts, ",") + "]"
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
	asked    chan struct{} // a call of the tool hang came
	announce schema.Worker
	// full, where set, is asked before each call whether it is refused, not started.
	full func() bool
	// bank is what the server bank offers, where a test has one.
	bank *bus.Description
}

const workerID = "worker-1"

func startWorker(t testing.TB, conn *bus.Conn, id string) *worker {
	t.Helper()
	w := &worker{conn: conn, held: make(map[uint64]bus.ReplyTo), canceled: make(chan uint64, 256), asked: make(chan struct{}, 256)}
	w.announce = schema.Worker{
		ID: id, Name: "worker", Version: "test", Host: "host", PID: 4700, Started: time.Unix(1_700_000_000, 0).UTC(),
		Labels: map[string]string{"zone": "a"}, APIServers: true,
		Servers: []schema.Server{
			{ID: "demo", State: schema.StateInitialized, Transport: "stdio", Risk: 1, PID: 4711, Digest: schema.Digest([]byte("demo")), Slots: 32, Sessions: 1, Protocol: "2025-06-18", Version: "1.2.3", Title: "Demo"},
			{ID: "dead", State: schema.StateError, Transport: "stdio", Slots: 4, Restarts: 3, Error: "exited with code 3", StderrTail: "boom\n"},
			{ID: "two words", State: schema.StateStarting, Transport: "http", Slots: 4},
		},
	}
	ready := make(chan struct{})
	hello, err := conn.WatchHello(func() {
		<-ready
		w.say()
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.listener, err = conn.Listen(id, w); err != nil {
		t.Fatal(err)
	}
	close(ready)
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

// change changes what the worker announces, and announces it.
func (w *worker) change(f func(*schema.Worker)) {
	w.mu.Lock()
	a := w.announce
	a.Servers = append([]schema.Server(nil), a.Servers...)
	f(&a)
	w.announce = a
	w.mu.Unlock()
	w.say()
}

func (w *worker) last() bus.CallFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[len(w.seen)-1]
}

func (w *worker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	result := func(body string) {
		w.listener.Result(to, f.Seq, &schema.Result{Body: []byte(body), ToolError: strings.Contains(body, `"isError":true`)})
	}
	switch f.Method {
	case bus.MethodDescribe:
		w.mu.Lock()
		bank := w.bank
		w.mu.Unlock()
		if f.Server == "bank" && bank != nil {
			result(string(bank.Encode()))
			return
		}
		// By hand: encoding/json would drop the odd white space.
		result(`{"digest":"` + schema.Digest([]byte("demo")) + `","definitions":{"tools":` + list(definitions.Tools) + `,"resources":` + list(definitions.Resources) +
			`,"resource_templates":` + list(definitions.ResourceTemplates) + `,"prompts":` + list(definitions.Prompts) + `}}`)
		return
	case bus.MethodStart, bus.MethodStop:
		w.serve(f)
		result(`{}`)
		return
	}
	w.mu.Lock()
	w.seen = append(w.seen, *f)
	full := w.full
	w.mu.Unlock()
	if full != nil && full() {
		w.listener.Error(to, f.Seq, schema.Errorf(schema.KindUnavailable, "The server is full."), false, 0)
		return
	}
	switch f.Tool {
	case "strict", "a/b", "../up.dot", "wärme 温度", "echo", "":
		result(fmt.Sprintf(`{"content":[{"type":"hologram","data":9007199254740993}] , "got":%s}`, f.Payload))
	case "fail":
		result(`{"content":[],"isError":true}`)
	case "steps":
		for i := range 3 {
			w.listener.Progress(to, f.Seq, fmt.Appendf(nil, `{"progress":%d,"total":3}`, i+1))
		}
		result(`{"content":[]}`)
	case "late-error":
		w.listener.Progress(to, f.Seq, []byte(`{"progress":1}`))
		w.listener.Error(to, f.Seq, schema.Errorf(schema.KindResultTooLarge, "The tool answered 70 MB; the limit is 64."), true, 0)
	case "lines":
		result("{\"content\":\r\n[],\n\n\"a\":1\r}")
	case "rpc":
		e := schema.Errorf(schema.KindProtocol, "The server answered with an error: no such city")
		e.RPC = &schema.RPCError{Code: -32602, Message: "no such city", Data: raw(`{"hint":[1,2]}`)}
		w.listener.Error(to, f.Seq, e, true, 0)
	case "large":
		result(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`)
	case "hang":
		w.mu.Lock()
		w.held[f.Seq] = to
		w.mu.Unlock()
		w.asked <- struct{}{}
	}
}

// serve takes in a server that is added or removed over the API.
func (w *worker) serve(f *bus.CallFrame) {
	w.mu.Lock()
	a := w.announce
	a.Servers = nil
	for _, s := range w.announce.Servers {
		if s.ID != f.Server {
			a.Servers = append(a.Servers, s)
		}
	}
	if f.Method == bus.MethodStart {
		a.Servers = append(a.Servers, schema.Server{ID: f.Server, State: schema.StateInitialized, Transport: "stdio", PID: 4712, Risk: 2, Slots: 4, Digest: schema.Digest([]byte("demo"))})
	}
	w.announce = a
	w.mu.Unlock()
	_ = w.conn.Announce(&a)
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
