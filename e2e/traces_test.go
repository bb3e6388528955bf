package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/telemetry/tracetest"
)

// secretText is in arguments and results, and must not be in any span.
const secretText = "hunter2-in-the-arguments"

// soonSent makes processes export spans sooner than by default.
const soonSent = "OTEL_BSP_SCHEDULE_DELAY=50"

// collector returns a receiver of traces that ends with the test.
func collector(t testing.TB) *tracetest.Receiver {
	t.Helper()
	r := tracetest.Start()
	t.Cleanup(r.Close)
	return r
}

var parentForm = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$`)

// traceOf returns the trace ID of a response.
func traceOf(t testing.TB, a answer) string {
	t.Helper()
	m := parentForm.FindStringSubmatch(a.header.Get("Traceparent"))
	if m == nil {
		t.Fatalf("the answer %d has the traceparent %q", a.status, a.header.Get("Traceparent"))
	}
	return m[1]
}

// wantTree waits until the trace has the expected spans.
func wantTree(t testing.TB, r *tracetest.Receiver, trace, want string) []tracetest.Span {
	t.Helper()
	want = strings.NewReplacer("@door", "@callyard-frontdoor", "@worker", "@callyard-worker", "@approver", "@callyard-approver").Replace(strings.TrimLeft(want, "\n"))
	eventually(t, soon, "the trace", func() error {
		if got := tracetest.Tree(r.Of(trace)); got != want {
			return fmt.Errorf("it is\n%swant\n%s", got, want)
		}
		return nil
	})
	return r.Of(trace)
}

// named returns the span with the name.
func named(t testing.TB, spans []tracetest.Span, name string) tracetest.Span {
	t.Helper()
	i := slices.IndexFunc(spans, func(s tracetest.Span) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no span %q:\n%s", name, tracetest.Tree(spans))
	}
	return spans[i]
}

// arrived returns the traceparent that a mirror saw in the _meta of a call, and the whole _meta.
func arrived(t testing.TB, shown string) (parent string, meta map[string]any) {
	t.Helper()
	var line struct {
		Params struct {
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	decode(t, []byte(shown), &line)
	parent, _ = line.Params.Meta["traceparent"].(string)
	return parent, line.Params.Meta
}

const calledOverREST = `
server POST /servers/{id}/tools/{tool} @door
  internal admit @door
  producer send SERVER @door
    consumer process SERVER @worker
      client tools/call show @worker
`

// openTracedFleet is a front door, a worker and an approver, with a mirror of each protocol version.
func openTracedFleet(t testing.TB, r *tracetest.Receiver) *approvalFleet {
	t.Helper()
	b := openApprovalFleet(t, staff{
		doors: 1, approvers: 1, workers: 1, servers: map[string]entry{"old": risky(1, mirrored(legacy)), "new": risky(1, mirrored(modern))},
		env: []string{"CALLYARD_TRACES_ENDPOINT=" + r.URL(), "CALLYARD_TRACES_BATCH_RATIO=1", soonSent},
	})
	b.doors[0].waitServers(t, 1, "old", "new")
	return b
}

func TestATraceRunsFromTheCallerToTheMCPServer(t *testing.T) {
	r := collector(t)
	b := openTracedFleet(t, r)
	door := b.doors[0]
	secret := fmt.Sprintf(`{"text":%q}`, secretText)

	t.Run("REST", func(t *testing.T) {
		for _, server := range []string{"old", "new"} {
			a := door.ask(t, "POST", toolPath(server, "show"), secret, "baggage: a=b")
			trace := traceOf(t, a)
			spans := wantTree(t, r, trace, strings.ReplaceAll(calledOverREST, "SERVER", server))
			parent, meta := arrived(t, text(t, a.body))
			client := named(t, spans, "tools/call show")
			if parent != client.Parented() {
				t.Errorf("the server %s saw the parent %q, and the span is %s", server, parent, client.Parented())
			}
			if meta["baggage"] != nil {
				t.Errorf("the baggage went along: %v", meta)
			}
			id := a.header.Get("Callyard-Call-Id")
			for _, s := range spans {
				if s.Attributes["callyard.call.id"] != id {
					t.Errorf("%s is of call %q, want %q", s.Name, s.Attributes["callyard.call.id"], id)
				}
			}
			for key, want := range map[string]string{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "show", "network.transport": "pipe", "mcp.protocol.version": map[string]string{"old": legacy, "new": modern}[server]} {
				if got := client.Attributes[key]; got != want {
					t.Errorf("%s: %s is %q, want %q", server, key, got, want)
				}
			}
		}
	})

	t.Run("the caller's parent", func(t *testing.T) {
		const trace = "0af7651916cd43dd8448eb211c80319c"
		a := door.ask(t, "POST", toolPath("old", "show"), secret, "traceparent: 00-"+trace+"-b7ad6b7169203331-01", "tracestate: vendor=1")
		if traceOf(t, a) != trace {
			t.Errorf("the answer names the trace %s", traceOf(t, a))
		}
		_, meta := arrived(t, text(t, a.body))
		if meta["tracestate"] != "vendor=1" {
			t.Errorf("the server saw %v", meta)
		}
		want := "?\n  " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(calledOverREST), "SERVER", "old"), "\n", "\n  ") + "\n"
		spans := wantTree(t, r, trace, want)
		if spans[0].Parent != "b7ad6b7169203331" {
			t.Errorf("the parent is %s", spans[0].Parent)
		}
	})

	t.Run("one that is not sampled", func(t *testing.T) {
		const trace = "11111111111111111111111111111111"
		a := door.ask(t, "POST", toolPath("old", "show"), secret, "traceparent: 00-"+trace+"-b7ad6b7169203331-00")
		parent, _ := arrived(t, text(t, a.body))
		if !strings.HasPrefix(parent, "00-"+trace) || !strings.HasSuffix(parent, "-00") {
			t.Errorf("the server saw %q", parent)
		}
		wantTree(t, r, traceOf(t, door.ask(t, "GET", "/servers", "")), "\nserver GET /servers @door\n") // which ended later
		if got := r.Of(trace); len(got) > 0 {
			t.Errorf("it was traced:\n%s", tracetest.Tree(got))
		}
	})

	for _, era := range []string{legacy, modern} {
		t.Run("MCP "+era, func(t *testing.T) {
			trace := strings.Repeat("2", 31) + era[3:4]
			s := door.mcpClient(t, "/mcp/new", era, nil)
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{
				Name: "show", Arguments: map[string]any{"text": secretText}, Meta: mcp.Meta{"traceparent": "00-" + trace + "-b7ad6b7169203331-01", "baggage": "a=b", "example.org/kept": 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			parent, meta := arrived(t, resultText(res))
			spans := wantTree(t, r, trace, "?\n  server tools/call show @door\n    internal admit @door\n    producer send new @door\n      consumer process new @worker\n        client tools/call show @worker\n")
			if client := spans[len(spans)-1]; parent != client.Parented() {
				t.Errorf("the server saw the parent %q, and the span is %s", parent, client.Parented())
			}
			if meta["baggage"] != nil || meta["example.org/kept"] == nil {
				t.Errorf("the server saw %v", meta)
			}
			if at := spans[0].Attributes; at["mcp.protocol.version"] != era || at["gen_ai.tool.name"] != "show" {
				t.Errorf("the request is described as %v", at)
			}
		})
	}

	t.Run("confirmed by its caller", func(t *testing.T) {
		a := door.ask(t, "POST", toolPath(callersServer, "effect"), fmt.Sprintf(`{"path":%q,"id":"traced"}`, b.effects))
		var h held
		decode(t, a.body, &h)
		asked := traceOf(t, a)
		wantTree(t, r, asked, "\nserver POST /servers/{id}/tools/{tool} @door\n  internal admit @door\n")
		trace := traceOf(t, door.confirm(t, h.ID, "true"))
		spans := wantTree(t, r, trace, `
server POST /confirmations/{id} @door
  internal run approved call @door
    producer send pay @door
      consumer process pay @worker
        client tools/call effect @worker
`)
		if run := named(t, spans, "run approved call"); !slices.Equal(run.Links, []string{asked}) {
			t.Errorf("the run links to %v, not to the request %s", run.Links, asked)
		}
	})

	t.Run("approved by people", func(t *testing.T) {
		q := b.asked(t, door, true, "traced too", 0)
		b.shown(t, b.approvers[0], q)
		if a, err := b.decides(b.approvers[0], q, deciders[0], "approve"); err != nil || a.status != 200 {
			t.Fatalf("%v %d %s", err, a.status, a.body)
		}
		if s := b.ended(t, door, q); s.State != "succeeded" {
			t.Fatalf("the call is %s", s.State)
		}
		var run, decided tracetest.Span
		eventually(t, soon, "the spans of the approval", func() error {
			run, decided = tracetest.Span{}, tracetest.Span{}
			for _, s := range r.Spans() {
				switch {
				case s.Attributes["callyard.approval.id"] != q.ApprovalID:
				case s.Name == "run approved call":
					run = s
				case s.Name == "decide approval":
					decided = s
				}
			}
			if run.ID == "" || decided.ID == "" {
				return fmt.Errorf("run: %v, decided: %v", run.ID != "", decided.ID != "")
			}
			return nil
		})
		if len(run.Links) != 1 || !slices.Equal(run.Links, decided.Links) {
			t.Fatalf("the run links to %v, the decision to %v", run.Links, decided.Links)
		}
		wantTree(t, r, run.Links[0], "\nserver POST /servers/{id}/tools/{tool} @door\n  internal admit @door\n")
		wantTree(t, r, decided.Trace, "\nserver POST /approvals/{id}/decisions @approver\n  internal decide approval @approver\n")
		wantTree(t, r, run.Trace, `
internal run approved call @door
  producer send grant @door
    consumer process grant @worker
      client tools/call effect @worker
`)
	})

	t.Run("stored", func(t *testing.T) {
		a := door.ask(t, "POST", toolPath("old", "show"), secret, "Idempotency-Key: traced")
		wantTree(t, r, traceOf(t, a), `
server POST /servers/{id}/tools/{tool} @door
  internal run stored call @door
    producer send old @door
      consumer process old @worker
        client tools/call show @worker
`)
	})

	t.Run("a batch", func(t *testing.T) {
		line := fmt.Sprintf(`{"server":"old","tool":"show","arguments":%s}`, secret) + "\n"
		a := door.ask(t, "POST", "/batches", strings.Repeat(line, 3), ndjsonType)
		var s batchState
		decode(t, a.body, &s)
		door.waitBatch(t, s.ID, answerWithin)
		asked := traceOf(t, a)
		wantTree(t, r, asked, "\nserver POST /batches @door\n")
		var runs []tracetest.Span
		eventually(t, soon, "the spans of the batch", func() error {
			runs = slices.DeleteFunc(r.Spans(), func(s tracetest.Span) bool { return s.Name != "run batch call" })
			if len(runs) != 3 {
				return fmt.Errorf("there are %d", len(runs))
			}
			return nil
		})
		for _, run := range runs {
			if !slices.Equal(run.Links, []string{asked}) || run.Attributes["callyard.batch.id"] != s.ID {
				t.Errorf("a call of the batch: %+v", run)
			}
			wantTree(t, r, run.Trace, "\ninternal run batch call @door\n  producer send old @door\n    consumer process old @worker\n      client tools/call show @worker\n")
		}
	})

	t.Run("a refusal", func(t *testing.T) {
		a := door.ask(t, "POST", toolPath("old", "nothing"), secret)
		spans := wantTree(t, r, traceOf(t, a), "\nserver POST /servers/{id}/tools/{tool} @door !\n  internal admit @door !\n")
		if got := spans[0].Attributes; got["error.type"] != "not-found" || got["http.response.status_code"] != "404" {
			t.Errorf("it is described as %v", got)
		}
	})

	t.Run("no secret in any", func(t *testing.T) {
		all, err := json.Marshal(r.Spans())
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{secretText, b.effects, "cyt_", deciders[0] + `"`} {
			if strings.Contains(string(all), secret) {
				t.Errorf("%q is in a span", secret)
			}
		}
	})
}

func TestHangingCollectorDelaysNeitherCallsNorShutdown(t *testing.T) {
	r := collector(t)
	came, release := make(chan struct{}, 1000), make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(release) })) // before the collector is closed
	r.Gate(func() {
		came <- struct{}{}
		<-release
	})
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"old": risky(1, mirrored(legacy))}), env: []string{quickStop, "CALLYARD_TRACES_ENDPOINT=" + r.URL(), "CALLYARD_TRACES_TIMEOUT=500ms", soonSent}})
	up.waitServers(t, 1, "old")
	for range 20 {
		up.call(t, "old", "show", `{}`)
	}
	<-came // one export hangs
	for range 20 {
		up.call(t, "old", "show", `{}`)
	}
	up.stop(t)
}
