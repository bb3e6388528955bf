package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/telemetry/tracetest"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	parentOn  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	parentOff = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func none(string) string { return "" }

// opened returns traces that are sent to the receiver, and closes them when the test ends.
func opened(t testing.TB, r *tracetest.Receiver, change func(*TraceOptions)) (*Traces, *Metrics) {
	t.Helper()
	m := NewMetrics()
	o := TraceOptions{Config: TraceDefaults(), Service: "test", Version: "1", Instance: "a", Metrics: m, Log: slog.New(slog.DiscardHandler), Getenv: none}
	if o.Config.Endpoint = ""; r != nil {
		o.Config.Endpoint = r.URL()
	}
	if change != nil {
		change(&o)
	}
	traces, err := OpenTraces(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := traces.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return traces, m
}

func receiver(t testing.TB) *tracetest.Receiver {
	r := tracetest.Start()
	t.Cleanup(r.Close)
	return r
}

func TestUnusableTLSFilesOfTracesAreErrorsOfTheStart(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for variable, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        "the CA certificates for traces",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "the client certificate for traces",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY":         "the client certificate for traces",
	} {
		o := TraceOptions{Config: TraceDefaults(), Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler), Getenv: func(name string) string {
			return map[string]string{variable: missing, "OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:1"}[name]
		}}
		if _, err := OpenTraces(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

func TestTraceIsExportedAsATree(t *testing.T) {
	r := receiver(t)
	traces, _ := opened(t, r, func(o *TraceOptions) {
		o.Config.Headers = map[string]Secret{"Authorization": "Bearer hunter2"}
	})
	root := traces.Begin(schema.Trace{}, Server, "POST")
	root.Rename("POST /calls")
	below := traces.Begin(root.Trace(), Producer, "send files")
	below.Text(KeyServer, "files")
	below.Text(KeyWorker, "") // empty values are left out
	below.Number(KeyAttempt, 2)
	failed := traces.Begin(below.Trace(), Client, "tools/call read")
	failed.Outcome(nil, schema.Errorf(schema.KindUnavailable, "secret detail"))
	failed.End()
	tool := traces.Begin(below.Trace(), Client, "tools/call write")
	tool.Outcome(&schema.Result{ToolError: true}, nil)
	tool.End()
	fine := traces.Begin(below.Trace(), Client, "tools/call list")
	fine.Outcome(&schema.Result{}, nil)
	fine.End()
	below.End()
	root.Answered(503)
	root.End()
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := r.Spans()
	const want = "server POST /calls @test !\n  producer send files @test\n    client tools/call read @test !\n    client tools/call write @test !\n    client tools/call list @test\n"
	if got := tracetest.Tree(spans); got != want {
		t.Fatalf("the tree is\n%swant\n%s", got, want)
	}
	about := make(map[string]map[string]string)
	for _, s := range spans {
		about[s.Name] = s.Attributes
	}
	for _, c := range []struct{ span, key, want string }{
		{"POST /calls", "http.response.status_code", "503"}, {"POST /calls", "error.type", "503"}, {"send files", "callyard.server", "files"}, {"send files", "callyard.attempt", "2"},
		{"tools/call read", "error.type", "unavailable"}, {"tools/call write", "error.type", "tool_error"}, {"tools/call list", "error.type", ""},
	} {
		if got := about[c.span][c.key]; got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.key, c.span, got, c.want)
		}
	}
	if _, there := about["send files"]["callyard.worker"]; there {
		t.Error("an empty text was noted")
	}
	if got := r.Header().Get("Authorization"); got != "Bearer hunter2" {
		t.Errorf("the header is %q", got)
	}
}

func TestSamplingFollowsTheParentElseTheRatio(t *testing.T) {
	r := receiver(t)
	traces, _ := opened(t, r, func(o *TraceOptions) { o.Config.Ratio = 0 })
	for _, parent := range []schema.Trace{
		{Parent: parentOn, State: "vendor=1"}, {Parent: parentOff}, {}, {Parent: "nonsense"}, {Parent: strings.ToUpper(parentOn)}, {Parent: strings.Replace(parentOn, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1)},
	} {
		span := traces.Begin(parent, Server, "s")
		at := span.Trace()
		if on := strings.HasSuffix(at.Parent, "-01"); on != (parent.Parent == parentOn) {
			t.Errorf("below %+v the span stands at %+v", parent, at)
		}
		if len(parent.Parent) == parentLength && parent.Parent == strings.ToLower(parent.Parent) && parent.Parent[3] != '0' && at.Parent[:35] != parent.Parent[:35] {
			t.Errorf("below %+v the trace is another: %+v", parent, at)
		}
		if at.State != parent.State {
			t.Errorf("the state %q became %q", parent.State, at.State)
		}
		if at.Parent == parent.Parent {
			t.Error("the span is its own parent")
		}
		span.End()
	}
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if spans := r.Spans(); len(spans) != 1 || spans[0].Parent != "00f067aa0ba902b7" || spans[0].Trace != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("%+v arrived", spans)
	}
}

func TestFollowedTraceIsSampledLikeItsOrigin(t *testing.T) {
	r := receiver(t)
	traces, _ := opened(t, r, func(o *TraceOptions) { o.Config.Ratio, o.Config.BatchRatio = 0, 1 })
	asked, unasked := schema.Trace{Parent: parentOn}, schema.Trace{Parent: parentOff}
	own := traces.Follow(schema.Trace{}, asked, "own")
	below := traces.Follow(own.Trace(), asked, "below")
	share := traces.Share(asked, "share")
	for _, span := range []*Span{
		below, own, share, traces.Follow(schema.Trace{}, unasked, "no"), traces.Share(unasked, "no"), traces.Share(schema.Trace{}, "no"), traces.Follow(schema.Trace{}, schema.Trace{}, "no"),
	} {
		span.End()
	}
	late := traces.Begin(asked, Internal, "late")
	late.Link(schema.Trace{Parent: parentOn})
	late.Link(schema.Trace{Parent: "nonsense"})
	late.End()
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]tracetest.Span)
	for _, s := range r.Spans() {
		found[s.Name] = s
		if len(s.Links) != 1 || s.Links[0] != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("%s links to %v", s.Name, s.Links)
		}
	}
	if len(found) != 4 || found["own"].Parent != "" || found["below"].Parent != found["own"].ID || found["share"].Parent != "" || found["share"].Trace == found["own"].Trace {
		t.Errorf("%+v arrived", found)
	}
	few, _ := opened(t, r, func(o *TraceOptions) { o.Config.BatchRatio = 0 })
	if at := few.Share(asked, "none").Trace(); !strings.HasSuffix(at.Parent, "-00") {
		t.Errorf("of a share of none one is at %+v", at)
	}
}

func TestWithoutAnEndpointThereAreNoTraces(t *testing.T) {
	r := receiver(t)
	for _, c := range []struct {
		endpoint string
		env      map[string]string
		on       bool
	}{
		{"", nil, false},
		{r.URL(), nil, true},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL()}, true},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": r.URL() + "/v1/traces"}, true},
		{r.URL(), map[string]string{"OTEL_SDK_DISABLED": "true"}, false},
		{r.URL(), map[string]string{"OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		for name, value := range c.env {
			t.Setenv(name, value) // the exporter reads them too
		}
		traces, _ := opened(t, nil, func(o *TraceOptions) {
			o.Config.Endpoint, o.Getenv = c.endpoint, func(name string) string { return c.env[name] }
		})
		if (traces != nil) != c.on {
			t.Errorf("%+v: traces are there: %v", c, traces != nil)
		}
	}
}

func TestOpenTelemetryVariablesConfigureTracing(t *testing.T) {
	r := receiver(t)
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL(), "OTEL_EXPORTER_OTLP_HEADERS": "x-key=k", "OTEL_SERVICE_NAME": "named", "OTEL_TRACES_SAMPLER": "parentbased_always_off",
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	traces, _ := opened(t, nil, func(o *TraceOptions) { o.Getenv = func(name string) string { return env[name] } })
	traces.Begin(schema.Trace{}, Server, "not sampled").End()
	traces.Begin(schema.Trace{Parent: parentOn}, Server, "sampled").End()
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tracetest.Tree(r.Spans()); got != "?\n  server sampled @named\n" {
		t.Errorf("the tree is\n%s", got)
	}
	if r.Header().Get("X-Key") != "k" {
		t.Errorf("the headers are %v", r.Header())
	}
}

func TestEveryStandardSamplerIsSupported(t *testing.T) {
	other := sdktrace.NeverSample()
	for name, want := range map[string]string{
		"always_on": "AlwaysOnSampler", "always_off": "AlwaysOffSampler", "traceidratio": "TraceIDRatioBased{0.25}", "parentbased_always_on": "ParentBased{root:AlwaysOnSampler",
		"parentbased_always_off": "ParentBased{root:AlwaysOffSampler", "parentbased_traceidratio": "ParentBased{root:TraceIDRatioBased{0.25}", "jaeger_remote": other.Description(),
	} {
		if got := samplerByName(name, "0.25", other).Description(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestDisabledTracingDoesNotAllocate(t *testing.T) {
	var traces *Traces
	ctx := t.Context()
	err := schema.Errorf(schema.KindUnavailable, "x")
	all := func() {
		span := traces.Begin(schema.Trace{Parent: parentOn}, Server, "s")
		span.Text(KeyCall, "c")
		span.Number(KeyAttempt, 1)
		span.Outcome(nil, err)
		span.Answered(500)
		span.Rename("t")
		span.Link(schema.Trace{})
		if span.Carry(ctx) != ctx || span.Trace() != (schema.Trace{}) || traces.Follow(schema.Trace{}, schema.Trace{}, "f") != nil || traces.Share(schema.Trace{}, "f") != nil {
			t.Error("there is something")
		}
		span.End()
	}
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := traces.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestOnlyASampledTraceHasAnID(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for parent, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01":                      id,
		"00-" + id + "-00f067aa0ba902b7-03":                      id,
		"00-" + id + "-00f067aa0ba902b7-00":                      strings.Repeat("0", 32),
		"00-" + id + "-00f067aa0ba902b7-0x":                      strings.Repeat("0", 32),
		"00-" + id + "-00f067aa0ba902b7-01-":                     strings.Repeat("0", 32),
		"00-javascript:alert(1)//92f3577b34-00f067aa0ba902b7-01": strings.Repeat("0", 32),
		"": strings.Repeat("0", 32),
	} {
		at := schema.Trace{Parent: parent, State: "a=b"}
		if got := SampledID(at); hex.EncodeToString(got[:]) != want {
			t.Errorf("%q has the id %x", parent, got)
		}
		if n := testing.AllocsPerRun(100, func() { SampledID(at) }); n != 0 && want == id {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestContextCarriesTheTraceOfTheSpan(t *testing.T) {
	traces, _ := opened(t, receiver(t), nil)
	span := traces.Begin(schema.Trace{}, Server, "s")
	defer span.End()
	if got := Carried(span.Carry(t.Context())); got != span.Trace() || got.Parent == "" {
		t.Errorf("carried %+v of %+v", got, span.Trace())
	}
	if got := Carried(t.Context()); got != (schema.Trace{}) {
		t.Errorf("carried %+v of nothing", got)
	}
}

func TestHangingCollectorDoesNotBlock(t *testing.T) {
	r := receiver(t)
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let) // before the receiver is closed
	r.Gate(func() {
		arrived <- struct{}{}
		<-release
	})
	traces, m := opened(t, r, nil)
	// While one export is in flight and the queue is full, further spans are dropped at once.
	for range sendSpans {
		traces.Begin(schema.Trace{}, Server, "s").End()
	}
	<-arrived
	for range queueSpans + 100 {
		traces.Begin(schema.Trace{}, Server, "s").End()
	}
	wantLines(t, scrape(t, m), `callyard_trace_spans_dropped_total{reason="full"} 100`)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = traces.Close(over) // it returns that its time has ended, and leaves no goroutine
	wantLines(t, scrape(t, m), `callyard_trace_spans_dropped_total{reason="failed"} 4608`)
	let()
}

// faulty is an exporter that fails while down.
type faulty struct {
	mu   sync.Mutex
	down bool
	sent int
}

func (f *faulty) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return errors.New("no route to host")
	}
	f.sent += len(spans)
	return nil
}

func (*faulty) Shutdown(context.Context) error { return nil }

func TestCollectorOutageAndRecoveryAreLoggedOnce(t *testing.T) {
	var text logtest.Log
	f, m := &faulty{down: true}, NewMetrics()
	s := newSender(f, time.Minute, time.Hour, 10, m, slog.New(slog.NewTextHandler(&text, nil)))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s))
	ended := func(n int) (list []sdktrace.ReadOnlySpan) {
		for range n {
			_, span := provider.Tracer("t").Start(t.Context(), "s")
			list = append(list, span.(sdktrace.ReadOnlySpan))
		}
		return list
	}
	for _, step := range []struct {
		spans int
		down  bool
	}{{2, true}, {3, true}, {4, false}} {
		f.down = step.down
		if err := s.exporter.ExportSpans(t.Context(), ended(step.spans)); err != nil {
			t.Errorf("the SDK hears of it as well: %v", err)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(text.String(), "cannot be sent"); n != 1 {
		t.Errorf("told %d times:\n%s", n, text.String())
	}
	if n := strings.Count(text.String(), "sent again"); n != 1 || f.sent != 4 {
		t.Errorf("%d sent:\n%s", f.sent, text.String())
	}
	wantLines(t, scrape(t, m), `callyard_trace_spans_dropped_total{reason="failed"} 5`)
}

func TestFaultsOfTracingSettingsAreReported(t *testing.T) {
	good := TraceDefaults()
	for key, change := range map[string]func(*TraceConfig){
		"endpoint":    func(c *TraceConfig) { c.Endpoint = "collector:4318" },
		"timeout":     func(c *TraceConfig) { c.Timeout = 0 },
		"ratio":       func(c *TraceConfig) { c.Ratio = 1.5 },
		"batch_ratio": func(c *TraceConfig) { c.BatchRatio = -1 },
		"headers":     func(c *TraceConfig) { c.Headers = map[string]Secret{"a b": "c"} },
	} {
		bad := good
		change(&bad)
		faults := bad.Validate()
		if len(faults) != 1 || !strings.HasPrefix(faults[0].String(), key) {
			t.Errorf("%s: %v", key, faults)
		}
	}
	good.Endpoint = "https://collector.example:4318"
	if faults := good.Validate(); len(faults) > 0 {
		t.Error(faults)
	}
	if got, _ := good.address(); got != "https://collector.example:4318/v1/traces" {
		t.Errorf("spans go to %s", got)
	}
	good.Endpoint = "https://collector.example/otlp/spans"
	if got, _ := good.address(); got != good.Endpoint {
		t.Errorf("spans go to %s", got)
	}
}

func FuzzTraceContextRoundTrip(f *testing.F) {
	f.Add(parentOn, "a=b")
	f.Add(parentOff, "")
	f.Add("ff"+parentOn[2:], "x")
	f.Add(strings.ToUpper(parentOn), ",")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, ok := contextOf(schema.Trace{Parent: parent, State: state})
		if !ok {
			return
		}
		if got := traceOf(c); got.Parent[2:] != parent[2:] {
			t.Errorf("%q became %q", parent, got.Parent)
		}
	})
}

func BenchmarkSpan(b *testing.B) {
	for name, parent := range map[string]string{"off": "", "unsampled": parentOff, "sampled": parentOn} {
		b.Run(name, func(b *testing.B) {
			var traces *Traces
			if name != "off" {
				s := newSender(&faulty{}, time.Minute, time.Hour, queueSpans, NewMetrics(), slog.New(slog.DiscardHandler))
				traces = &Traces{provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s)), sender: s}
				traces.tracer = traces.provider.Tracer("t")
				b.Cleanup(func() { _ = traces.Close(context.Background()) })
			}
			b.ReportAllocs()
			for b.Loop() {
				span := traces.Begin(schema.Trace{Parent: parent}, Client, "tools/call echo")
				if span != nil {
					span.Text(KeyCall, "call_x")
					span.Text(KeyTool, "echo")
					_ = span.Trace()
					span.End()
				}
			}
		})
	}
}
