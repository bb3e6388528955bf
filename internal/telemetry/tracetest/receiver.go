// Package tracetest is a collector of traces for tests. It receives spans by OTLP over HTTP, as a
// real collector does, and shows them as trees.
//
// It shows exactly what it received. It makes no checks; tests detect missing spans.
package tracetest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Trace, ID, Parent string // in hex; Parent is empty for the root of a trace
	Name, Kind        string // Kind in lower case: server, client, producer, consumer, internal
	Service           string // name of the process that created it
	Failed            bool
	Links             []string // trace ids
	Attributes        map[string]string
	Start, End        uint64 // Unix nanoseconds
}

// Parented returns the traceparent of the span, sampled.
func (s *Span) Parented() string { return "00-" + s.Trace + "-" + s.ID + "-01" }

// Receiver is a running collector. It is safe for concurrent use.
type Receiver struct {
	server *httptest.Server
	mu     sync.Mutex
	spans  []Span
	header http.Header
	gate   func() // called before each response
}

// Start starts a receiver. Close it after use.
func Start() *Receiver {
	r := &Receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(r.take))
	return r
}

// URL returns the endpoint of the receiver, without its path.
func (r *Receiver) URL() string { return r.server.URL }

// Close stops the receiver. A Gate that blocks responses must release them first.
func (r *Receiver) Close() { r.server.Close() }

// Gate sets a function that is called before each response. It may block to delay responses.
func (r *Receiver) Gate(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = f
}

// Header returns the header of the last request.
func (r *Receiver) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header.Clone()
}

// Spans returns all received spans, the earliest first.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return int(int64(a.Start) - int64(b.Start)) })
	return all
}

// Of returns the spans of one trace.
func (r *Receiver) Of(trace string) []Span {
	return slices.DeleteFunc(r.Spans(), func(s Span) bool { return s.Trace != trace })
}

func (r *Receiver) take(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	gate := r.gate
	r.header = q.Header.Clone()
	r.mu.Unlock()
	if gate != nil {
		gate()
	}
	spans, err := read(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.spans = append(r.spans, spans...)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(q *http.Request) ([]Span, error) {
	if q.Method != http.MethodPost || q.URL.Path != "/v1/traces" || q.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("%s %s of %s is not how traces come", q.Method, q.URL.Path, q.Header.Get("Content-Type"))
	}
	var in io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = unpacked
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var m collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	var spans []Span
	for _, of := range m.ResourceSpans {
		service := texts(of.Resource.Attributes)["service.name"]
		for _, scoped := range of.ScopeSpans {
			for _, s := range scoped.Spans {
				spans = append(spans, span(s, service))
			}
		}
	}
	return spans, nil
}

func span(s *wire.Span, service string) Span {
	out := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name, Service: service,
		Kind: strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")), Failed: s.Status.GetCode() == wire.Status_STATUS_CODE_ERROR,
		Attributes: texts(s.Attributes), Start: s.StartTimeUnixNano, End: s.EndTimeUnixNano,
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, hex.EncodeToString(l.TraceId))
	}
	return out
}

func texts(list []*common.KeyValue) map[string]string {
	m := make(map[string]string, len(list))
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[kv.Key] = fmt.Sprint(v.IntValue)
		default:
			m[kv.Key] = kv.Value.String()
		}
	}
	return m
}

// Tree formats the spans of one trace with one span per line, below its parent: "kind name", with
// " @service" if the service is not empty, and " !" if it failed. An unknown parent is shown as
// "?".
func Tree(spans []Span) string {
	var b strings.Builder
	known := make(map[string]bool, len(spans))
	for _, s := range spans {
		known[s.ID] = true
	}
	var show func(parent string, depth int)
	line := func(s *Span, depth int) {
		fmt.Fprintf(&b, "%s%s %s", strings.Repeat("  ", depth), s.Kind, s.Name)
		if s.Service != "" {
			b.WriteString(" @" + s.Service)
		}
		if s.Failed {
			b.WriteString(" !")
		}
		b.WriteByte('\n')
		show(s.ID, depth+1)
	}
	show = func(parent string, depth int) {
		for i := range spans {
			if spans[i].Parent == parent {
				line(&spans[i], depth)
			}
		}
	}
	show("", 0)
	for i := range spans {
		if s := &spans[i]; s.Parent != "" && !known[s.Parent] {
			b.WriteString("?\n")
			line(s, 1)
		}
	}
	return b.String()
}
