package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

const reportSchema = `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","maxLength":20},"tags":{"type":"array","items":{"type":"string"}},` +
	`"at":{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90}},"required":["lat"]},"state":{"enum":["open","closed"]}},"required":["id","name"],"additionalProperties":false}`

// holdsReport returns a server with the tools report, whose results have a schema, and
// plain, whose results have none.
func holdsReport(tb testing.TB, results string) *held {
	tb.Helper()
	tool := func(name, schema string) native.Tool {
		return native.Tool{Name: name, Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"}` + schema + `}`), Call: func(context.Context, *native.Call) (native.Result, error) { return native.Text(""), nil }}
	}
	server, err := native.New(native.Info{Name: "r"}, tool("report", `,"outputSchema":`+reportSchema), tool("plain", ""), tool("usual", `,"outputSchema":`+strings.NewReplacer(`,"minimum":-90,"maximum":90`, "").Replace(reportSchema)), tool("broken", `,"outputSchema":{"type":7}`))
	if err != nil {
		tb.Fatal(err)
	}
	known := make(chan struct{}, 100)
	pool := session.Open(session.Config{Spec: launch.Spec{ID: "r", Type: "native"}, Native: func(*slog.Logger) (*native.Server, func(), error) { return server, nil, nil }}, nil,
		slog.New(slog.DiscardHandler), func() { known <- struct{}{} })
	tb.Cleanup(func() {
		if err := pool.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	for defs, _ := pool.Definitions(); defs == nil; defs, _ = pool.Definitions() {
		<-known
	}
	return &held{pool: pool, served: Served{Entry: config.ServerEntry{Results: results}, Session: session.Config{Spec: launch.Spec{ID: "r"}}}}
}

func TestResultThatViolatesItsSchemaIsDetected(t *testing.T) {
	refuse, mark, off := holdsReport(t, config.ResultsRefuse), holdsReport(t, ""), holdsReport(t, config.ResultsOff)
	for structured, pointer := range map[string]string{
		`{"id":"1","name":"a"}`:                       "/id",
		`{"id":1.5,"name":"a"}`:                       "/id",
		`{"id":1}`:                                    "",
		`{"id":1,"name":"a","more":true}`:             "",
		`{"id":1,"name":"this name is far too long"}`: "/name",
		`{"id":1,"name":"a","tags":["x",7]}`:          "/tags/1",
		`{"id":1,"name":"a","at":{"lat":91}}`:         "/at/lat",
		`{"id":1,"name":"a","at":{}}`:                 "/at",
		`{"id":1,"name":"a","state":"ajar"}`:          "/state",
		`{"id":1,"name":null}`:                        "/name",
		`[]`:                                          "",
		`null`:                                        "",
	} {
		body := `{"content":[],"structuredContent":` + structured + `,"_meta":{"theirs":1.0}}`
		out := refuse.checkOutput("report", session.Outcome{Body: []byte(body), Started: true})
		if out.Err == nil || out.Err.Kind != schema.KindProtocol || out.Err.Retryable || out.Body != nil || !out.Started || len(out.Err.Faults) == 0 || !strings.HasPrefix(out.Err.Faults[0].Pointer, pointer) {
			t.Errorf("refuse: %s ends as %+v", structured, out.Err)
		}
		out = mark.checkOutput("report", session.Outcome{Body: []byte(body), Started: true})
		var marked struct {
			StructuredContent json.RawMessage `json:"structuredContent"`
			Meta              struct {
				Theirs json.RawMessage `json:"theirs"`
				Faults []schema.Fault  `json:"com.callyard/outputFaults"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal(out.Body, &marked); err != nil || out.Err != nil || len(marked.Meta.Faults) == 0 || string(marked.Meta.Theirs) != "1.0" || !strings.Contains(string(out.Body), `"structuredContent":`+structured) {
			t.Errorf("mark: %s became %s (%v, %v)", structured, out.Body, err, out.Err)
		}
		if out = off.checkOutput("report", session.Outcome{Body: []byte(body)}); string(out.Body) != body || out.Err != nil {
			t.Errorf("off: %s became %s", structured, out.Body)
		}
	}
}

func TestOtherResultsKeepTheirBytes(t *testing.T) {
	h := holdsReport(t, config.ResultsRefuse)
	for name, c := range map[string]struct {
		tool string
		out  session.Outcome
	}{
		"one that fits":                  {"report", session.Outcome{Body: []byte(`{"structuredContent": {"id":9007199254740993,"name":"a"}, "content":[]}`)}},
		"one of the tool's errors":       {"report", session.Outcome{Body: []byte(`{"content":[],"isError":true}`), ToolError: true}},
		"a question":                     {"report", session.Outcome{Body: []byte(`{"resultType":"input_required"}`), Input: true}},
		"one of a tool without":          {"plain", session.Outcome{Body: []byte(`{"structuredContent":7}`)}},
		"one with a schema that is none": {"broken", session.Outcome{Body: []byte(`{"structuredContent":7}`)}},
		"one of an unknown tool":         {"none", session.Outcome{Body: []byte(`{}`)}},
	} {
		if out := h.checkOutput(c.tool, c.out); string(out.Body) != string(c.out.Body) || out.Err != nil {
			t.Errorf("%s became %s, %v", name, out.Body, out.Err)
		}
	}
	if out := h.checkOutput("report", session.Outcome{Body: []byte(`{"content":[]}`)}); out.Err == nil {
		t.Error("a result without structuredContent was not found")
	}
}

// BenchmarkCheckOutput uses schemas like those of most tools. Some keywords, such as bounds of a
// number that is not an integer, need the full validator, which is several times slower.
func BenchmarkCheckOutput(b *testing.B) {
	h := holdsReport(b, config.ResultsRefuse)
	body := []byte(`{"content":[{"type":"text","text":"see the structured content"}],"structuredContent":{"id":9007199254740993,"name":"quarterly report","tags":["finance","q3","draft","2026"],"at":{"lat":48.137154},"state":"open"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if out := h.checkOutput("usual", session.Outcome{Body: body}); out.Err != nil {
			b.Fatal(out.Err)
		}
	}
	b.ReportMetric(float64(len(body)), "bytes")
}
