package frontdoor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// countingWorker is a worker with tools that count their runs. "slow" waits until it is released.
type countingWorker struct {
	l    *bus.Listener
	up   chan struct{}
	runs atomic.Int64
	now  atomic.Int64
	most atomic.Int64
	slow chan struct{}
	once sync.Once
	stop chan struct{}

	mu   sync.Mutex // guards over, and the start of work
	over bool       // later calls are dropped
	wait sync.WaitGroup

	down    atomic.Bool // no call starts
	refused atomic.Int64
}

const houseTools = `{"digest":"d","definitions":{"tools":[
{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"fail","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"write","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}],
"resources":[{"uri":"mem:1","name":"one"}],"resourceTemplates":[{"uriTemplate":"mem:{n}","name":"n"}],"prompts":[{"name":"ask"}]}}`

func (h *countingWorker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	<-h.up
	seq, method, tool, secret := f.Seq, f.Method, f.Tool, secretOf(f.Payload)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.wait.Go(func() {
		if method != "" {
			h.l.Result(to, seq, &schema.Result{Body: []byte(houseTools)})
			return
		}
		if h.down.Load() {
			h.refused.Add(1)
			h.l.Error(to, seq, schema.Errorf(schema.KindServerFailed, "The server did not start."), false, 0)
			return
		}
		n := h.runs.Add(1)
		now := h.now.Add(1)
		for was := h.most.Load(); now > was && !h.most.CompareAndSwap(was, now); was = h.most.Load() {
		}
		if tool == "slow" {
			<-h.slow
			h.l.Progress(to, seq, []byte(`{"progressToken":1,"progress":1}`))
		}
		h.now.Add(-1)
		if secret == "secret-unknown" {
			h.l.Error(to, seq, schema.Errorf(schema.KindOutcomeUnknown, "The server was lost."), true, 0)
			return
		}
		if strings.HasPrefix(secret, "secret-error") {
			h.l.Error(to, seq, schema.Errorf(schema.KindProtocol, "The server says %s.", secret), true, 0)
			return
		}
		if secret != "" {
			h.l.Result(to, seq, &schema.Result{Body: []byte(`{"told":"` + secret + `"}`)})
			return
		}
		h.l.Result(to, seq, &schema.Result{Body: []byte(`{"run":` + strconv.FormatInt(n, 10) + `}`), ToolError: tool == "fail"})
	})
}
func (*countingWorker) Cancel(uint64) {}

// secretOf returns the argument v, which a tool returns in its result.
func secretOf(arguments []byte) string {
	var a struct{ V string }
	if json.Unmarshal(arguments, &a) != nil || !strings.HasPrefix(a.V, "secret-") {
		return ""
	}
	return a.V
}

// let releases all slow calls.
func (h *countingWorker) let() { h.once.Do(func() { close(h.slow) }) }

// startCountingWorker starts the worker, which announces itself until the test ends.
func startCountingWorker(t testing.TB, srv *bustest.Server, more ...schema.ServerID) *countingWorker {
	t.Helper()
	return startCountingWorkerAs(t, srv, "w", more...)
}

// startCountingWorkerAs is startCountingWorker with another worker id.
func startCountingWorkerAs(t testing.TB, srv *bustest.Server, worker schema.WorkerID, more ...schema.ServerID) *countingWorker {
	t.Helper()
	conn := srv.Connect(t, "worker")
	h := &countingWorker{up: make(chan struct{}), slow: make(chan struct{}), stop: make(chan struct{})}
	var err error
	if h.l, err = conn.Listen(worker, h); err != nil {
		t.Fatal(err)
	}
	close(h.up)
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			w := &schema.Worker{ID: worker}
			for _, id := range append([]schema.ServerID{"s"}, more...) {
				w.Servers = append(w.Servers, schema.Server{ID: id, State: schema.StateInitialized, Slots: 64, Digest: "d", TrustAnnotations: true})
			}
			_ = conn.Announce(w) // it fails only at the end of the test
			select {
			case <-tick.C:
			case <-h.stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(h.stop)
		<-announced
		h.mu.Lock()
		h.over = true
		h.mu.Unlock()
		h.wait.Wait()
		h.l.Close()
	})
	return h
}

// door is a front door and a client of it. The client is the principal ci at every door.
type door struct {
	t    testing.TB
	base string
	http *http.Client
	key  string
	in   *frontdoor.FrontDoor
}

func openDoor(t testing.TB, srv *bustest.Server, o frontdoor.Options) *door {
	t.Helper()
	d := startDoor(t, srv, o)
	t.Cleanup(func() { stop(t, d.in) })
	return d
}

// startDoor is openDoor for tests that stop the front door themselves.
func startDoor(t testing.TB, srv *bustest.Server, o frontdoor.Options) *door {
	t.Helper()
	key, hash := authn.Generate()
	c := settings.FrontDoorDefaults()
	c.Listen, c.DrainDelay, c.Keys = "127.0.0.1:0", 0, append([]authn.Key{{Name: "ci", Hash: hash}}, o.Config.Keys...)
	c.PublicURL, c.Issuers, c.Sets, c.Evaluations = o.Config.PublicURL, o.Config.Issuers, o.Config.Sets, o.Config.Evaluations
	c.CertFile, c.KeyFile, c.ClientCAFile = o.Config.CertFile, o.Config.KeyFile, o.Config.ClientCAFile
	if o.Config.OpenBatches > 0 {
		c.OpenBatches = o.Config.OpenBatches
	}
	if o.Config.MaxWait > 0 {
		c.MaxWait = o.Config.MaxWait
	}
	o.Config, o.Conn, o.Metrics, o.Version, o.Failed = c, srv.Connect(t, "front"), telemetry.NewMetrics(), "test", make(chan error, 1)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := frontdoor.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	t.Cleanup(client.CloseIdleConnections)
	changes, done := d.Catalog().Changes()
	defer done()
	for {
		if _, err := d.Catalog().Tool("s", "read"); err == nil {
			return &door{t, "http://" + d.Addr(), client, key, d}
		}
		<-changes
	}
}

// do sends a request. The body is JSON, or lines if it ends in a line feed.
func (d *door) do(method, path, body string, header ...string) (status int, h http.Header, answer string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.key)
	if strings.HasSuffix(body, "\n") {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := d.http.Do(r)
	if err != nil {
		d.t.Error(err)
		return 0, nil, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Error(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// refused checks that a request is refused with the status and a Retry-After header.
func (d *door) refused(status int, method, path, body string, header ...string) {
	d.t.Helper()
	got, h, text := d.do(method, path, body, header...)
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); got != status || err != nil || seconds < 1 {
		d.t.Errorf("%s %s: %d, come back after %q: %s", method, path, got, h.Get("Retry-After"), text)
	}
}

const cachePolicy = `
rules:
  - {name: held, match: {tool: read}, when: 'has(args.held)', level: 2}
  - {name: reads, match: {tool: [read, fail, write]}, level: 1, cache: {ttl: 60s}}
  - {name: rest, level: 1}
`

func policyOf(t *testing.T, text string) *risk.Holder {
	t.Helper()
	p, err := risk.Parse([]byte(text), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return risk.NewHolder(p)
}

func TestRepeatedReadIsServedFromTheSharedCache(t *testing.T) {
	// While Redis does not answer in time, which happens on a busy machine, results are not cached.
	for {
		log := new(logtest.Log)
		faults := readRepeatedly(t, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		if len(faults) == 0 {
			return
		}
		if log.Count("Redis") == 0 {
			t.Fatal(strings.Join(faults, "\n"))
		}
		t.Logf("again, because of Redis: %s", log)
	}
}

// readRepeatedly returns what is wrong with the answers to cached and other calls at two front doors.
func readRepeatedly(t *testing.T, log *slog.Logger) (faults []string) {
	t.Helper()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	s := confirmtest.StartRedis(t, "", "")
	o := frontdoor.Options{Policy: policyOf(t, cachePolicy), Redis: &confirm.RedisOptions{Addresses: []string{s.Address}, Log: log}, Log: log}
	a, b := openDoor(t, srv, o), openDoor(t, srv, o)
	for _, c := range []struct {
		d                  *door
		tool, body, header string
		run                int
		status             string
	}{
		{a, "read", `{}`, "", 1, "callyard; fwd=miss; stored"},
		{a, "read", `{}`, "", 1, "callyard; hit; ttl="},
		{b, "read", `{}`, "", 1, "callyard; hit; ttl="},
		{b, "read", `{ }`, "", 2, "callyard; fwd=miss; stored"},
		{b, "read", `{}`, "no-cache", 3, "callyard; fwd=request; stored"},
		{a, "read", `{}`, "", 3, "callyard; hit; ttl="},
		{a, "read", `{}`, "no-store, max-age=0", 4, "callyard; fwd=request"},
		{b, "read", `{}`, "max-stale", 3, "callyard; hit; ttl="},
		{a, "fail", `{}`, "", 5, "callyard; fwd=miss"},
		{a, "fail", `{}`, "", 6, "callyard; fwd=miss"},
		{a, "write", `{}`, "", 7, ""}, // not known to be safe
		{a, "write", `{}`, "", 8, ""},
	} {
		status, header, body := c.d.do("POST", "/servers/s/tools/"+c.tool, c.body, "Cache-Control", c.header)
		got, hit := header.Get("Cache-Status"), strings.Contains(header.Get("Cache-Status"), "hit")
		if status != 200 || body != fmt.Sprintf(`{"run":%d}`, c.run) || (hit && !strings.HasPrefix(got, c.status) || !hit && got != c.status) || hit != (header.Get("Age") != "") {
			fault("%s %s %q: %d %s, Cache-Status %q, Age %q; want run %d and %q", c.tool, c.body, c.header, status, body, got, header.Get("Age"), c.run, c.status)
		}
	}
	if status, header, _ := a.do("POST", "/servers/s/tools/read", `{}`, "Accept", "text/event-stream"); status != 200 || header.Get("Cache-Status") != "" {
		fault("a call with progress: %d %v", status, header)
	}
	for range 2 { // each is a separate question
		if status, header, _ := a.do("POST", "/servers/s/tools/read", `{"held":1}`); status != 202 || header.Get("Cache-Status") != "" {
			fault("a held call: %d %v", status, header)
		}
	}
	for range 2 { // stored calls run
		if status, header, _ := a.do("POST", "/calls", `{"server":"s","tool":"read"}`, "Prefer", "wait=10"); status != 200 || header.Get("Cache-Status") != "" {
			fault("a durable call: %d %v", status, header)
		}
	}
	if n := h.runs.Load(); n != 11 {
		fault("%d runs", n)
	}
	return faults
}

func TestCallsAreNotCachedUnlessThePolicyAllowsIt(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	for i, o := range []frontdoor.Options{{}, {Policy: policyOf(t, "rules: [{level: 1}]")}} {
		d := openDoor(t, srv, o)
		for range 3 {
			if status, header, _ := d.do("POST", "/servers/s/tools/read", `{}`); status != 200 || header.Get("Cache-Status") != "" {
				t.Errorf("%d %v", status, header)
			}
		}
		if n := h.runs.Load(); n != int64(3*(i+1)) {
			t.Errorf("%d runs", n)
		}
	}
}

func TestRateLimitIsSharedAndReturnsRetryAfter(t *testing.T) {
	srv := bustest.Start(t)
	startCountingWorker(t, srv)
	s := confirmtest.StartRedis(t, "", "")
	o := frontdoor.Options{
		Limits: settings.Limits{Principals: []settings.PrincipalRule{{Names: []string{"ci"}, Rate: 0.01, Burst: 4}}},
		Redis:  &confirm.RedisOptions{Addresses: []string{s.Address}},
	}
	a, b := openDoor(t, srv, o), openDoor(t, srv, o)
	for i := range 4 {
		if status, _, text := []*door{a, b}[i%2].do("POST", "/servers/s/tools/write", `{}`); status != 200 {
			t.Errorf("call %d: %d %s", i, status, text)
		}
	}
	// While Redis does not answer in time, which happens on a busy machine, a front door counts alone. If
	// both did that all the time, they would admit four more.
	more := 0
	for _, d := range []*door{a, b} {
		for status := 200; status == 200 && more < 4; {
			if status, _, _ = d.do("POST", "/servers/s/tools/write", `{}`); status == 200 {
				more++
			}
		}
	}
	if more > 2 {
		t.Errorf("%d calls more than the limit were admitted", more)
	}
	a.refused(429, "POST", "/servers/s/tools/write", `{}`)
	b.refused(429, "POST", "/calls", `{"server":"s","tool":"write"}`)
}

func TestFullServerReturns503BeforeAcceptingACall(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{Limits: settings.Limits{Servers: []settings.ServerRule{{Servers: []string{"s"}, InFlight: 2}}}})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { d.do("POST", "/servers/s/tools/slow", `{}`) })
	}
	polltest.Until(t, "two calls run", func() bool { return h.now.Load() == 2 })
	d.refused(503, "POST", "/servers/s/tools/read", `{}`)
	if status, _, _ := d.do("POST", "/servers/other/tools/read", `{}`); status != 404 {
		t.Errorf("what does not exist: %d", status)
	}
	h.let()
	calls.Wait()
	if status, _, text := d.do("POST", "/servers/s/tools/read", `{}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// batchOf returns a batch of n calls, as one JSON document or as lines.
func batchOf(n int, tool string, asLines bool) string {
	var b bytes.Buffer
	for i := range n {
		if !asLines && i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"custom_id":"c%d","server":"s","tool":%q}`, i, tool)
		if asLines {
			b.WriteByte('\n')
		}
	}
	if asLines {
		return b.String()
	}
	return `{"calls":[` + b.String() + `]}`
}

func TestBatchIsSlowedNotRefusedByPrincipalLimits(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	h.let()
	d := openDoor(t, srv, frontdoor.Options{Limits: settings.Limits{Principals: []settings.PrincipalRule{{Rate: 100, Burst: 10, InFlight: 4}}}})
	began := time.Now()
	status, _, text := d.do("POST", "/batches?stream=true", batchOf(120, "slow", true))
	if n := strings.Count(text, `"state":"succeeded"`); status != 200 || n != 120 || h.runs.Load() != 120 {
		t.Errorf("%d, %d of 120 lines succeeded, %d runs", status, n, h.runs.Load())
	}
	if took := time.Since(began); took < time.Second || h.most.Load() > 4 {
		t.Errorf("it took %s, with %d calls at once", took, h.most.Load())
	}
}

func TestQueuedCallsAreLimitedAndAStreamWaits(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{Limits: settings.Limits{Principals: []settings.PrincipalRule{{Queued: 40, Batches: 2}}}})
	if status, _, text := d.do("POST", "/batches", batchOf(41, "slow", false)); status != 429 || !strings.Contains(text, "x-ndjson") {
		t.Errorf("more than may ever wait: %d %s", status, text)
	}
	if status, _, text := d.do("POST", "/batches", batchOf(35, "slow", false)); status != 201 {
		t.Errorf("a batch that fits: %d %s", status, text)
	}
	for range 5 {
		if status, _, text := d.do("POST", "/calls", `{"server":"s","tool":"slow"}`, "Prefer", "respond-async"); status != 202 {
			t.Errorf("a durable call that fits: %d %s", status, text)
		}
	}
	d.refused(429, "POST", "/calls", `{"server":"s","tool":"slow"}`, "Prefer", "respond-async")
	d.refused(429, "POST", "/batches", batchOf(1, "slow", false))
	d.refused(429, "POST", "/batches", batchOf(1, "slow", true))
	if _, _, text := d.do("GET", "/batches", ""); strings.Count(text, `"id"`) != 1 {
		t.Errorf("what was refused left a batch: %s", text)
	}
	polltest.Until(t, "40 calls run", func() bool { return h.now.Load() == 40 })
	ended := make(chan string, 1)
	// All places but one are taken. The stream uses this one as calls end.
	h.slow <- struct{}{}
	polltest.Until(t, "39 calls run", func() bool { return h.now.Load() == 39 })
	var waited atomic.Bool
	go func() {
		stream := func() (int, http.Header, string) {
			return d.do("POST", "/batches?stream=true", batchOf(200, "slow", true))
		}
		status, _, text := stream()
		for status == 429 && t.Context().Err() == nil { // the front door does not know yet that a call ended
			status, _, text = stream()
		}
		if status != 200 || !waited.Load() {
			t.Errorf("the stream: %d; it waited: %v", status, waited.Load())
		}
		ended <- text
	}()
	most := func() (n uint64) {
		_, _, text := d.do("GET", "/batches", "")
		var list struct {
			Batches []struct {
				Calls  uint64 `json:"calls"`
				Counts struct {
					Waiting uint64 `json:"waiting"`
				} `json:"counts"`
			} `json:"batches"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Error(err)
		}
		for _, b := range list.Batches {
			n += b.Counts.Waiting
		}
		return n
	}
	polltest.Until(t, "40 calls run", func() bool { return h.now.Load() == 40 }) // one of them is a call of the stream
	if n := most(); n > 40 {
		t.Errorf("%d wait", n)
	}
	d.refused(429, "POST", "/batches", batchOf(1, "slow", false))
	waited.Store(true)
	if status, _, text := d.do("POST", "/servers/s/tools/read", `{}`); status != 200 {
		t.Errorf("a call that somebody waits for: %d %s", status, text)
	}
	h.let()
	if text := <-ended; strings.Count(text, `"state":"succeeded"`) != 200 {
		t.Errorf("of 200 lines: %s", text)
	}
	polltest.Until(t, "there is space again", func() bool {
		status, _, _ := d.do("POST", "/batches", batchOf(40, "read", false))
		return status == 201
	})
}

func TestOpenBatchesAreLimitedPerPrincipal(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{Limits: settings.Limits{Principals: []settings.PrincipalRule{{Batches: 3}}}})
	var made, refused atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			switch status, _, text := d.do("POST", "/batches", batchOf(1, "slow", false)); status {
			case 201:
				made.Add(1)
			case 429:
				refused.Add(1)
			default:
				t.Errorf("%d %s", status, text)
			}
		})
	}
	all.Wait()
	if made.Load() != 3 || refused.Load() != 17 {
		t.Errorf("%d made, %d refused", made.Load(), refused.Load())
	}
	h.let()
	polltest.Until(t, "a batch is accepted", func() bool {
		status, _, _ := d.do("POST", "/batches", batchOf(1, "slow", false))
		return status == 201
	})
}

// lines starts a batch whose lines are written one by one to the writer. end sends the end of the
// body and checks that the batch was accepted.
func (d *door) lines() (into io.Writer, end func()) {
	d.t.Helper()
	body, pipe := io.Pipe()
	d.t.Cleanup(func() { _ = pipe.Close() }) // as often as wanted
	r, err := http.NewRequestWithContext(d.t.Context(), "POST", d.base+"/batches", body)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Authorization", "Bearer "+d.key)
	status := make(chan int, 1)
	go func() {
		resp, err := d.http.Do(r)
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	return pipe, func() {
		d.t.Helper()
		if err := pipe.Close(); err != nil {
			d.t.Error(err)
		}
		if got := <-status; got != 201 {
			d.t.Errorf("the batch is answered with %d", got)
		}
	}
}

// No call of it has ended, so its counts are unchanged.
func TestBatchListCountsCallsOfAnUnfinishedUpload(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	d := openDoor(t, srv, frontdoor.Options{})
	defer h.let()
	into, end := d.lines()
	const stored = 1000 // at once, before the body has ended
	for _, sum := range []string{"1000", "2000"} {
		if _, err := io.WriteString(into, strings.ReplaceAll(batchOf(stored, "slow", true), `:"c`, `:"`+sum+`c`)); err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, "the batches have all calls", func() bool {
			_, _, text := d.do("GET", "/batches", "")
			return strings.Contains(text, `"calls":`+sum+`,`)
		})
	}
	end()
}

func TestCallsOfASlowUploadRunBeforeItEnds(t *testing.T) {
	srv := bustest.Start(t)
	startCountingWorker(t, srv)
	d := openDoor(t, srv, frontdoor.Options{})
	into, end := d.lines()
	for i := range 3 {
		if _, err := fmt.Fprintf(into, `{"custom_id":"c%d","server":"s","tool":"read"}`+"\n", i); err != nil {
			t.Fatal(err)
		}
		polltest.Until(t, "the call has succeeded", func() bool {
			_, _, text := d.do("GET", "/batches", "")
			return strings.Contains(text, fmt.Sprintf(`"succeeded":%d`, i+1))
		})
	}
	end()
}

func TestAWaitingLineIsStoredWhenSpaceIsFreed(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{Limits: settings.Limits{Principals: []settings.PrincipalRule{{Queued: 2}}}})
	into, end := d.lines()
	if _, err := io.WriteString(into, batchOf(3, "slow", true)); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "two calls run", func() bool { return h.now.Load() == 2 })
	h.slow <- struct{}{}
	polltest.Until(t, "a third call runs", func() bool { return h.runs.Load() == 3 })
	h.let()
	end()
}

func TestOpenBatchesAreLimitedAcrossFrontDoors(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	few := frontdoor.Options{Config: settings.FrontDoor{OpenBatches: 3}}
	d, other := openDoor(t, srv, few), openDoor(t, srv, few)
	for i := range 3 {
		if status, _, text := d.do("POST", "/batches", `{"open":true}`, "Idempotency-Key", strconv.Itoa(i)); status != 201 {
			t.Fatalf("%d %s", status, text)
		}
	}
	polltest.Until(t, "the changes by the other front door are visible", func() bool {
		_, _, text := other.do("GET", "/batches?state=receiving", "")
		return strings.Count(text, `"id"`) == 3
	})
	d.refused(503, "POST", "/batches", `{"open":true}`)
	other.refused(503, "POST", "/batches", batchOf(1, "slow", false))
	other.refused(503, "POST", "/batches", batchOf(1, "slow", true))
	if status, _, text := d.do("POST", "/calls", `{"server":"s","tool":"read"}`, "Prefer", "respond-async"); status != 202 {
		t.Errorf("a durable call: %d %s", status, text)
	}
	status, _, text := d.do("POST", "/batches", `{"open":true}`, "Idempotency-Key", "0")
	if status != 200 && status != 201 {
		t.Errorf("one that was made already: %d %s", status, text)
	}
	_, id, _ := strings.Cut(text, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if status, _, text := other.do("POST", "/batches/"+id+"/cancel", ""); status != 200 {
		t.Errorf("canceling: %d %s", status, text)
	}
	polltest.Until(t, "an open batch is accepted", func() bool {
		status, _, _ := other.do("POST", "/batches", `{"open":true}`)
		return status == 201
	})
}

func TestQueuedCallsCountAtAllFrontDoors(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	o := frontdoor.Options{Limits: settings.Limits{Principals: []settings.PrincipalRule{{Queued: 40}}}}
	a := openDoor(t, srv, o)
	b := openDoor(t, srv, o)
	open := strings.Replace(batchOf(35, "slow", false), "{", `{"open":true,`, 1)
	if status, _, text := a.do("POST", "/batches", open); status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	seen := func() bool {
		_, _, text := b.do("GET", "/batches", "")
		return strings.Contains(text, `"calls":35`)
	}
	polltest.Until(t, "the other front door sees the batch", seen)
	b.refused(429, "POST", "/batches", batchOf(6, "slow", false))
	if status, _, text := b.do("POST", "/batches", batchOf(5, "slow", false)); status != 201 {
		t.Errorf("what fits: %d %s", status, text)
	}
}

func TestCanceledBatchStopsWaitingForQuota(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{Limits: settings.Limits{Principals: []settings.PrincipalRule{{Rate: 0.001, Burst: 1}}}})
	if status, _, text := d.do("POST", "/batches", batchOf(20, "read", false)); status != 201 { // it waits until the front door stops
		t.Fatalf("%d %s", status, text)
	}
	polltest.Until(t, "a call runs", func() bool { return h.runs.Load() == 1 })
	_, header, _ := d.do("POST", "/batches", batchOf(20, "write", false))
	path := header.Get("Location")
	if status, _, text := d.do("POST", path+"/cancel", ""); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	began := time.Now()
	polltest.Until(t, "all calls are canceled", func() bool {
		_, _, text := d.do("GET", path, "")
		return strings.Contains(text, `"state":"canceled"`) && strings.Contains(text, `"canceled":20`)
	})
	if took := time.Since(began); took > 40*time.Second || h.runs.Load() != 1 {
		t.Errorf("it took %s, with %d runs", took, h.runs.Load())
	}
}
