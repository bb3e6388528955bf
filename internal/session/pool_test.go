package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestArgumentsAndResultsKeepTheirBytes(t *testing.T) {
	for _, mode := range []string{"legacy", "modern"} {
		t.Run(mode, func(t *testing.T) {
			p := open(t, Config{Spec: scripted(mode)})
			args := `{ "z":9007199254740993, "a":1.0,"é":"\u00e9 <&>","a2":[1e400]}`
			got := must(t, p.call("echo", args))
			if want := `{"content":[{"type":"text","text":"ok"}],"args":` + args + `}`; string(got.Body) != want {
				t.Errorf("got  %s\nwant %s", got.Body, want)
			}
			if !got.Started || got.Took <= 0 || got.ToolError {
				t.Errorf("got %+v", got)
			}
			odd := must(t, p.call("odd", ""))
			if want := `{ "z":1.0,"content":[{"type":"hologram","n":9007199254740993}] , "_meta":{"x":1e2},"a":"\u00e9" }`; string(odd.Body) != want {
				t.Errorf("got  %s\nwant %s", odd.Body, want)
			}
			if o := must(t, p.call("toolerror", "{}")); !o.ToolError {
				t.Error("isError:true was not seen")
			}
		})
	}
}

func TestLineBreaksInArgumentsDoNotSplitTheMessage(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	got := must(t, p.call("echo", "{\n\t\"a\" : [\r\n1,\n2]\r}"))
	if want := "\"args\":{ \t\"a\" : [  1, 2] }}"; !strings.HasSuffix(string(got.Body), want) {
		t.Errorf("got %s, want it to end with %s", got.Body, want)
	}
}

func TestParamsThatAreNotAnObjectAreNotSent(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	for _, args := range []string{`[]`, `{}},"method":"x"`, `{`, `null`, `{"a":}`} {
		wantKind(t, p.call("echo", args), schema.KindInvalidRequest, false)
	}
}

func TestMetaOfRequestsInEachEra(t *testing.T) {
	line := func(p *watched, req *Request) string {
		req.Name = "line"
		_, wait := p.begin(req)
		var out struct{ Line string }
		if err := json.Unmarshal(must(t, wait()).Body, &out); err != nil {
			t.Fatal(err)
		}
		return out.Line
	}
	legacy := open(t, Config{Spec: scripted("legacy")})
	legacy.ready()
	bare := line(legacy, &Request{Params: []byte(`{"a":1}`)})
	if want := `"method":"tools/call","params":{"name":"line","arguments":{"a":1}}}`; !strings.HasSuffix(bare, want) {
		t.Errorf("legacy: got %s, want it to end with %s", bare, want)
	}
	full := line(legacy, &Request{Trace: schema.Trace{Parent: "00-aa-bb-01", State: "x=1"}, Progress: func([]byte) {}})
	if want := `"traceparent":"00-aa-bb-01","tracestate":"x=1"}}}`; !strings.HasSuffix(full, want) || !strings.Contains(full, `"_meta":{"progressToken":42`) {
		t.Errorf("legacy with trace: got %s", full)
	}
	modern := open(t, Config{Spec: scripted("modern")})
	s := modern.ready()
	if s.Protocol != "2026-07-28" || s.Title != "modern" || s.Version != "7" {
		t.Errorf("got %+v", s)
	}
	got := line(modern, &Request{Trace: schema.Trace{Parent: "00-aa-bb-01"}})
	for _, want := range []string{`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"callyard"`, `,"traceparent":"00-aa-bb-01"}}}`} {
		if !strings.Contains(got, want) {
			t.Errorf("modern: got %s, want %s in it", got, want)
		}
	}
	if strings.Contains(got, "progressToken") {
		t.Errorf("modern: progress was asked for: %s", got)
	}
}

func TestUnusualAnswersAreReportedByKind(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	e := wantKind(t, p.call("rpcerror", "{}"), schema.KindProtocol, true)
	want := &schema.RPCError{Code: -32602, Message: "no such thing", Data: json.RawMessage(`{"n":9007199254740993}`)}
	if diff := cmp.Diff(want, e.RPC); diff != "" {
		t.Errorf("RPC (-want +got):\n%s", diff)
	}
	if e := wantKind(t, p.call("texterror", "{}"), schema.KindProtocol, true); e.RPC.Message != "the disk is full" || !strings.Contains(e.Detail, "no code") {
		t.Errorf("an error that is a text is reported as %+v: %s", e.RPC, e.Detail)
	}
	wantKind(t, p.call("input", "{}"), schema.KindInputRequired, true)
	wantKind(t, p.call("task", "{}"), schema.KindProtocol, true)
	wantKind(t, p.call("array", "{}"), schema.KindProtocol, true)
	wantKind(t, p.call("brokenjson", "{}"), schema.KindProtocol, true)
	wantKind(t, p.call("brokenend", "{}"), schema.KindProtocol, true)
	must(t, p.call("echo", "{}"))
}

func TestAServerMayWriteIDsAsFloatingPointNumbers(t *testing.T) {
	p := open(t, Config{Spec: scripted("floats")})
	p.ready()
	must(t, p.call("echo", "{}"))
}

func TestALogLineThatEndsWithAMessageIsNotAnAnswer(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	if o := must(t, p.call("loud", "{}")); string(o.Body) != `{"loud":true}` {
		t.Errorf("the result is %s", o.Body)
	}
	if n := p.Noise(); n != 2 {
		t.Errorf("%d of 2 lines count as unexpected", n)
	}
}

func TestProgressComesInOrderBeforeTheResult(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	var mu sync.Mutex
	var got []int
	_, wait := p.begin(&Request{Name: "progress", Params: []byte(`{"n":50}`), Progress: func(params []byte) {
		var v struct{ Progress int }
		if err := json.Unmarshal(params, &v); err != nil {
			t.Error(err)
		}
		mu.Lock()
		got = append(got, v.Progress)
		mu.Unlock()
	}})
	must(t, wait())
	mu.Lock()
	defer mu.Unlock()
	for i, v := range got {
		if v != i {
			t.Fatalf("progress %d came at place %d", v, i)
		}
	}
	if len(got) != 50 {
		t.Errorf("%d of 50 came before the result", len(got))
	}
}

func TestAServersOwnRequestsAreAnswered(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	if got := must(t, p.call("asks", `{"n":0}`)); string(got.Body) != `{"reply":{},"error":null}` {
		t.Errorf("ping: got %s", got.Body)
	}
	if got := must(t, p.call("asks", `{"n":1}`)); !strings.Contains(string(got.Body), `"code":-32601`) {
		t.Errorf("elicitation: got %s", got.Body)
	}
}

func TestDefinitionsKeepTheBytesFromTheServer(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	s := p.ready()
	defs, sum := p.Definitions()
	want := &schema.Definitions{Tools: []json.RawMessage{
		[]byte(`{"name":"echo",  "inputSchema":{"type":"object"},"x-page":0,"big":9007199254740993}`),
		[]byte(`{"name":"twin",  "inputSchema":{"type":"object"},"x-page":1,"big":9007199254740993}`),
	}, About: []byte(`{"serverInfo":{"name":"script","title":"A script","version":"1.2"}}`)}
	if diff := cmp.Diff(want, defs); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	if s.Digest != sum || sum == "" || s.Title != "A script" || s.Version != "1.2" || s.Protocol != "2025-11-25" || s.PID == 0 || s.Slots != 128 {
		t.Errorf("got %+v and digest %q", s, sum)
	}
	must(t, p.call("change", "{}"))
	p.until("the lists were read again", func(s schema.Server) bool { return s.Digest != sum })
	if defs, _ = p.Definitions(); len(defs.Tools) != 3 {
		t.Errorf("%d tools after the change, want 3", len(defs.Tools))
	}
}

func TestDefinitionsErrorsAndProgressAreMadeValidUTF8(t *testing.T) {
	p := open(t, Config{Spec: scripted("latin")})
	p.ready()
	defs, _ := p.Definitions()
	if got := string(defs.Tools[0]); !strings.Contains(got, "caf\ufffd") {
		t.Errorf("the definition is %+q", got)
	}
	var progress string
	_, wait := p.begin(&Request{Name: "latin", Progress: func(params []byte) { progress = string(params) }})
	e := wantKind(t, wait(), schema.KindProtocol, true)
	if e.RPC.Message != "caf\ufffd" || string(e.RPC.Data) != "\"caf\ufffd\"" {
		t.Errorf("the error is %+q, %+q", e.RPC.Message, e.RPC.Data)
	}
	if !strings.Contains(progress, "caf\ufffd") {
		t.Errorf("the progress is %+q", progress)
	}
}

func TestAChildKilledInMidCallIsReplaced(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	pid := p.ready().PID
	_, wait := p.begin(&Request{Name: "hang"})
	must(t, p.call("echo", "{}")) // thus the other session has left as well
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e := wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	if !strings.Contains(e.Detail, "killed") || e.Retryable {
		t.Errorf("got %q, retryable %v", e.Detail, e.Retryable)
	}
	began := time.Now()
	must(t, p.call("echo", "{}"))
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("the next call took %v", d)
	}
	if s := p.Snapshot(); s.Restarts != 1 || s.PID == pid {
		t.Errorf("got %+v", s)
	}
}

func TestIncompleteAnswerIsAnUnknownOutcome(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	e := wantKind(t, p.call("halfanswer", "{}"), schema.KindOutcomeUnknown, true)
	if !strings.Contains(e.Detail, "exited with code 7") {
		t.Errorf("got %q", e.Detail)
	}
	// Only the line feed is missing.
	if o := must(t, p.call("noend", "{}")); string(o.Body) != `{"content":[]}` {
		t.Errorf("got %s", o.Body)
	}
}

func TestImmediateExitIsReportedWithTheStderrTail(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("exits")})
	_, wait := p.begin(&Request{Name: "echo"})
	e := wantKind(t, wait(), schema.KindServerFailed, false)
	if !e.Retryable || !strings.Contains(e.Detail, "exited with code 3") {
		t.Errorf("got %+v", e)
	}
	s := p.until("an error", func(s schema.Server) bool { return s.State == schema.StateError })
	if !strings.Contains(s.StderrTail, "no licence found") || !strings.Contains(s.Error, "code 3") {
		t.Errorf("got %+v", s)
	}
	began := time.Now()
	wantKind(t, p.call("echo", "{}"), schema.KindServerFailed, false)
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("with the breaker open a call took %v to fail", d)
	}
}

func TestToolListErrorIncludesTheServerMessage(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("listless")})
	s := p.until("an error", func(s schema.Server) bool { return s.State == schema.StateError })
	if want := `The server "scripted" did not start: reading tools/list: the server answered with the JSON-RPC error -32603: the database is down.`; s.Error != want {
		t.Errorf("got  %s\nwant %s", s.Error, want)
	}
}

func TestTextsOfAServerInTheAnnouncementAreBounded(t *testing.T) {
	t.Parallel()
	for mode, state := range map[string]schema.InitializationState{"wordy": schema.StateError, "named": schema.StateInitialized} {
		t.Run(mode, func(t *testing.T) {
			p := open(t, Config{Spec: scripted(mode)})
			s := p.until(string(state), func(s schema.Server) bool { return s.State == state })
			for _, text := range []string{s.Error, s.Title, s.Version, s.Protocol} {
				if len(text) > 2<<10 || !utf8.ValidString(text) {
					t.Errorf("a text of %d bytes, valid UTF-8 %v", len(text), utf8.ValidString(text))
				}
			}
			if mode == "wordy" && !strings.Contains(s.Error, "no licence") {
				t.Errorf("got %q", s.Error)
			}
		})
	}
}

func TestMissingCommandIsNamed(t *testing.T) {
	t.Parallel()
	spec := scripted("legacy")
	spec.Command = "no-such-command-here"
	p := open(t, Config{Spec: spec})
	if e := wantKind(t, p.call("echo", "{}"), schema.KindServerFailed, false); !strings.Contains(e.Detail, "no-such-command-here") {
		t.Errorf("got %q", e.Detail)
	}
}

func TestASilentServerTimesOut(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("silent"), StartTimeout: 600 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond})
	s := p.until("a timeout", func(s schema.Server) bool { return s.State == schema.StateTimeout })
	if !strings.Contains(s.Error, "600ms") {
		t.Errorf("got %q", s.Error)
	}
}

func TestServerThatIgnoresDiscoverIsTreatedAsLegacy(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"ignores", "poisoned"} {
		t.Run(mode, func(t *testing.T) {
			p := open(t, Config{Spec: scripted(mode), ProbeTimeout: 200 * time.Millisecond, StartTimeout: 6 * time.Second})
			if s := p.ready(); s.Protocol != "2025-11-25" {
				t.Errorf("got %+v", s)
			}
			// The pool remembers the era: after a crash there is no second wait.
			wantKind(t, p.call("crash", "{}"), schema.KindOutcomeUnknown, true)
			must(t, p.call("echo", "{}"))
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.guess != eraLegacy || p.probes != 1 {
				t.Errorf("guess %v after %d probes", p.guess, p.probes)
			}
		})
	}
}

func TestASilentServerIsNotStoppedBeforeItsStartTimeout(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	spec := scripted("starter")
	spec.Env[startsVariable] = starts
	// On a busy machine a start can take longer than its timeout.
	polltest.Until(t, "it is started once", func() bool {
		if err := os.WriteFile(starts, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		// The start takes more than half of its timeout, and the server reads nothing in that time.
		p := openNoClose(t, Config{Spec: spec, ProbeTimeout: 50 * time.Millisecond, StartTimeout: 6*slowStart + 2*time.Second})
		defer p.close(t)
		p.ready()
		got, err := os.ReadFile(starts)
		if err != nil {
			t.Fatal(err)
		}
		return string(got) == "started\n"
	})
}

func TestLateDiscoverAnswerKeepsTheServerModern(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("late"), ProbeTimeout: 50 * time.Millisecond})
	if s := p.ready(); s.Protocol != "2026-07-28" || s.Sessions != 1 {
		t.Errorf("got %+v", s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guess == eraLegacy {
		t.Error("it is remembered as an older one")
	}
}

func TestUnexpectedLinesAreCountedAndAFloodReplacesTheSession(t *testing.T) {
	p := open(t, Config{Spec: scripted("talks")})
	p.ready()
	if n := p.Noise(); n != 902 {
		t.Errorf("noise is %d, want 902", n)
	}
	must(t, p.call("echo", "{}"))
	e := wantKind(t, p.call("flood", `{"n":1000}`), schema.KindOutcomeUnknown, true)
	if !strings.Contains(e.Detail, "1000 lines") {
		t.Errorf("got %q", e.Detail)
	}
	must(t, p.call("echo", "{}"))
}

func TestAServerThatOnlyPrintsGarbageDoesNotStart(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("garbage")})
	if e := wantKind(t, p.call("echo", "{}"), schema.KindServerFailed, false); !strings.Contains(e.Detail, "not MCP") {
		t.Errorf("got %q", e.Detail)
	}
}

// Other calls of the session have their own answers.
func TestAnEnormousLineEndsItsOwnCallOnly(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), MaxResult: 1 << 20})
	p.ready()
	for _, tool := range []string{"huge", "hugelast"} {
		pid := p.Snapshot().PID
		_, other := p.begin(&Request{Name: "sleep", Params: []byte(`{"n":300}`)})
		wantKind(t, p.call(tool, fmt.Sprintf(`{"n":%d}`, 10<<20)), schema.KindResultTooLarge, true)
		must(t, other())
		if got := p.Snapshot().PID; got != pid {
			t.Errorf("%s cost the session", tool)
		}
	}
	_, other := p.begin(&Request{Name: "hang"})
	wantKind(t, p.call("endless", "{}"), schema.KindResultTooLarge, true)
	wantKind(t, other(), schema.KindOutcomeUnknown, true)
	p.ready()
	_, first := p.begin(&Request{Name: "hang"})
	wantKind(t, p.call("nameless", "{}"), schema.KindOutcomeUnknown, true)
	wantKind(t, first(), schema.KindOutcomeUnknown, true)
	must(t, p.call("echo", "{}"))
}

func TestAnEnormousLineWithoutAnIDIsTheAnswerOfTheOnlyCall(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), MaxResult: 1 << 20})
	p.ready()
	wantKind(t, p.call("nameless", "{}"), schema.KindResultTooLarge, true)
	must(t, p.call("echo", "{}"))
}

func TestAResultOverTheLimitIsRefusedAndTheNextCallWorks(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), MaxResult: 1 << 20})
	must(t, p.call("huge", fmt.Sprintf(`{"n":%d}`, 1<<20-100)))
	pid := p.Snapshot().PID
	e := wantKind(t, p.call("huge", fmt.Sprintf(`{"n":%d}`, 1<<20)), schema.KindResultTooLarge, true)
	if !strings.Contains(e.Detail, "1048576") {
		t.Errorf("got %q", e.Detail)
	}
	if got := p.Snapshot().PID; got != pid {
		t.Error("a result little over the limit cost the session")
	}
	wantKind(t, p.call("endless", "{}"), schema.KindResultTooLarge, true)
	must(t, p.call("echo", "{}"))
	if got := p.Snapshot().PID; got == pid {
		t.Error("the session with the endless line was kept")
	}
}

func TestTimeoutEndsTheCallAndNotifiesTheServer(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	p.ready()
	send := func() Outcome {
		_, wait := p.begin(&Request{CallID: "call_1", Name: "hang", Timeout: 50 * time.Millisecond})
		return wait()
	}
	o := send()
	for !o.Started && o.Err != nil { // on a busy machine the time may be over before it is sent
		o = send()
	}
	e := wantKind(t, o, schema.KindOutcomeUnknown, true)
	if e.CallID != "call_1" || !strings.Contains(e.Detail, "50ms") {
		t.Errorf("got %+v", e)
	}
	must(t, p.call("echo", "{}")) // the notification was sent before
	p.mu.Lock()
	child := p.live[0].child
	p.mu.Unlock()
	polltest.Until(t, "the server heard of it", func() bool {
		return strings.Contains(child.StderrTail(), `"reason":"timeout"`)
	})
	// The late answer is ignored.
	r, wait := p.begin(&Request{Name: "sleep", Params: []byte(`{"n":1000}`)})
	r.expire() // as its timer does
	wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	must(t, p.call("sleep", `{"n":1050}`))
	if n := p.Noise(); n != 0 {
		t.Errorf("noise is %d", n)
	}
}

func TestCancelEndsQueuedAndRunningCalls(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), InFlight: 1})
	p.ready()
	running, waitRunning := p.begin(&Request{Name: "hang"})
	queued, waitQueued := p.begin(&Request{Name: "echo"})
	if n := p.InFlight(); n != 2 {
		t.Errorf("%d in flight, want 2", n)
	}
	queued.Cancel()
	if e := wantKind(t, waitQueued(), schema.KindCanceled, false); !e.Retryable {
		t.Error("a call that never left is not retryable")
	}
	running.Cancel()
	running.Cancel()
	wantKind(t, waitRunning(), schema.KindCanceled, true)
	must(t, p.call("echo", "{}"))
	if n := p.InFlight(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
}

func TestCallsBeyondCapacityAreQueuedThenRefused(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), Sessions: 2, InFlight: 1, Queue: 1})
	p.until("both are there", func(s schema.Server) bool { return s.Sessions == 2 })
	a, waitA := p.begin(&Request{Name: "hang"})
	b, waitB := p.begin(&Request{Name: "hang"})
	_, waitC := p.begin(&Request{Name: "echo"})
	e := wantKind(t, p.call("echo", "{}"), schema.KindUnavailable, false)
	if !e.Retryable || !strings.Contains(e.Detail, "busy") {
		t.Errorf("got %+v", e)
	}
	a.Cancel()
	must(t, waitC())
	b.Cancel()
	wantKind(t, waitA(), schema.KindCanceled, true)
	wantKind(t, waitB(), schema.KindCanceled, true)
}

func TestAServerThatHangsIsReplacedAfterAFailedHealthCheck(t *testing.T) {
	p := open(t, Config{Spec: scripted("pingless"), checkTime: 200 * time.Millisecond})
	pid := p.ready().PID
	for range 3 {
		r, wait := p.begin(&Request{Name: "hang"})
		r.expire() // as its timer does, after it was sent
		wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	}
	p.until("it was replaced", func(s schema.Server) bool { return s.Restarts == 1 && s.PID != pid && s.PID != 0 })
	must(t, p.call("echo", "{}"))
}

func TestASlowServerThatAnswersPingsIsKept(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	pid := p.ready().PID
	p.mu.Lock()
	s := p.live[0]
	p.mu.Unlock()
	for range maxLate {
		r, wait := p.begin(&Request{Name: "hang"})
		r.expire() // as its timer does, after it was sent
		wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	}
	polltest.Until(t, "the check was passed", func() bool { return s.late.Load() == 0 })
	if got := p.Snapshot(); got.PID != pid || got.Restarts != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestServerThatStopsReadingDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("legacy")})
	p.ready()
	_, waitStop := p.begin(&Request{Name: "stopreading", Timeout: 2 * time.Second})
	big := []byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	var waits []func() Outcome
	began := time.Now()
	for range 10 {
		_, wait := p.begin(&Request{Name: "echo", Params: big, Timeout: 5 * time.Second})
		waits = append(waits, wait)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("Do blocked: 10 calls took %v to start", d)
	}
	for _, wait := range waits {
		wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	}
	wantKind(t, waitStop(), schema.KindOutcomeUnknown, true)
}

func TestUnsentCallsRunOnTheNextSession(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	pid := p.ready().PID
	_, waitStop := p.begin(&Request{Name: "stopreading"})
	// More than any pipe holds, so that later calls stay in our buffer.
	big := []byte(`{"a":"` + strings.Repeat("x", 4<<20) + `"}`)
	_, waitBig := p.begin(&Request{Name: "echo", Params: big})
	var waits []func() Outcome
	for range 5 {
		_, wait := p.begin(&Request{Name: "pid"})
		waits = append(waits, wait)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantKind(t, waitStop(), schema.KindOutcomeUnknown, true)
	wantKind(t, waitBig(), schema.KindOutcomeUnknown, true)
	for _, wait := range waits {
		if o := must(t, wait()); string(o.Body) == fmt.Sprintf(`{"pid":%d}`, pid) {
			t.Error("the killed server answered")
		}
	}
}

// slowWriter delays the return of a failed write, as a goroutine on a busy machine does.
type slowWriter struct{ io.WriteCloser }

func (w slowWriter) Write(b []byte) (int, error) {
	n, err := w.WriteCloser.Write(b)
	if err != nil {
		time.Sleep(100 * time.Millisecond)
	}
	return n, err
}

func TestUnsentCallsRunAgainWhenTheWriteReturnsLate(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	pid := p.ready().PID
	p.mu.Lock()
	link := p.live[0].link.(*pipeLink)
	p.mu.Unlock()
	link.child.Stdin = slowWriter{link.child.Stdin}
	_, waitStop := p.begin(&Request{Name: "stopreading"})
	// More than any pipe holds; the rest is in one write with the later calls.
	big := []byte(`{"a":"` + strings.Repeat("x", 4<<20) + `"}`)
	link.s.mu.Lock()
	link.busy = true // as while another goroutine writes
	link.s.mu.Unlock()
	_, waitBig := p.begin(&Request{Name: "echo", Params: big})
	_, wait := p.begin(&Request{Name: "pid"})
	link.signal()
	polltest.Until(t, "all is in one write", func() bool {
		link.s.mu.Lock()
		defer link.s.mu.Unlock()
		return link.writing && len(link.buf) == 0
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantKind(t, waitStop(), schema.KindOutcomeUnknown, true)
	wantKind(t, waitBig(), schema.KindOutcomeUnknown, true)
	must(t, wait())
}

func TestIdleServerThatHangsIsReplaced(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), HealthEvery: 100 * time.Millisecond, checkTime: 200 * time.Millisecond})
	pid := p.ready().PID
	for err := syscall.Kill(pid, syscall.SIGSTOP); err != nil; err = syscall.Kill(pid, syscall.SIGSTOP) {
		pid = p.until("there is another", func(s schema.Server) bool { return s.PID != 0 && s.PID != pid }).PID // it was replaced on a busy machine
	}
	p.until("it was replaced", func(s schema.Server) bool { return s.PID != 0 && s.PID != pid })
	must(t, p.call("echo", "{}"))
}

func TestAServerThatIsBusyWithACallIsKept(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), HealthEvery: 100 * time.Millisecond, checkTime: 200 * time.Millisecond})
	// The call waits for the server, so that the server is never idle: on a busy machine an idle one
	// may be too slow for the check.
	_, wait := p.begin(&Request{Name: "busy", Params: []byte(`{"n":1500}`)}) // longer than a check may take
	must(t, wait())
	if s := p.Snapshot(); s.Restarts != 0 {
		t.Errorf("it was replaced: %+v", s)
	}
}

func TestFailingServerDoesNotAffectOtherServers(t *testing.T) {
	t.Parallel()
	l := launcher(t)
	good := openWith(t, l, Config{Spec: scripted("legacy")})
	defer good.close(t)
	good.ready()
	for _, mode := range []string{"garbage", "exits", "deaf", "silent", "legacy"} {
		bad := openWith(t, l, Config{Spec: scripted(mode), MaxResult: 1 << 20})
		defer bad.close(t)
		bad.Do(&Request{Name: "endless", Timeout: 2 * time.Second}, func(*Request, Outcome) {})
	}
	for range 200 {
		must(t, good.call("echo", `{"a":1}`))
	}
	if s := good.Snapshot(); s.Restarts != 0 || good.Noise() != 0 {
		t.Errorf("the good server became %+v", s)
	}
}

func TestAToolThatAlwaysCrashesDoesNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("legacy")})
	for range openBreaker + 2 {
		wantKind(t, p.call("crash", "{}"), schema.KindOutcomeUnknown, true)
	}
	must(t, p.call("echo", "{}"))
}

func TestRestartDelayGrowsWithFailuresAndIsBounded(t *testing.T) {
	firstPause, longPause := pauses.First, pauses.Max
	for n, want := range []time.Duration{firstPause, firstPause, 2 * firstPause, 4 * firstPause, 8 * firstPause, longPause, longPause} {
		for range 100 {
			if d := pause(n); d < want/2 || d > want {
				t.Fatalf("pause(%d) is %v, want %v to %v", n, d, want/2, want)
			}
		}
	}
}

func TestAGrandchildThatKeepsStdoutOpenDoesNotKeepTheSession(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Spec: scripted("legacy")})
	p.ready()
	var out struct{ PID int }
	if err := json.Unmarshal(must(t, p.call("grandchild", "{}")).Body, &out); err != nil {
		t.Fatal(err)
	}
	wantKind(t, p.call("crash", "{}"), schema.KindOutcomeUnknown, true)
	must(t, p.call("echo", "{}"))
	polltest.Until(t, "the grandchild is gone", func() bool { return syscall.Kill(out.PID, 0) != nil })
}

func TestIdlePoolStopsAndRestartsOnDemand(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), IdleStop: 100 * time.Millisecond, Sessions: 2})
	// The definitions are known slightly before the session counts. Only both, without a process,
	// mean that it ran and was stopped.
	p.until("it stopped", func(s schema.Server) bool {
		return s.Sessions == 0 && s.PID == 0 && s.Digest != "" && s.State == schema.StateInitialized
	})
	must(t, p.call("echo", "{}"))
	p.until("it stopped again", func(s schema.Server) bool { return s.Sessions == 0 })
	if s := p.Snapshot(); s.Restarts != 0 {
		t.Errorf("a stop counted as %d restarts", s.Restarts)
	}
}

func TestOnDemandServerStartsOnceToReadDefinitions(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy"), OnDemand: true})
	p.until("definitions without a session", func(s schema.Server) bool { return s.Sessions == 0 && s.Digest != "" })
	must(t, p.call("echo", "{}"))
	if s := p.Snapshot(); s.Sessions != 1 || s.State != schema.StateInitialized {
		t.Errorf("got %+v", s)
	}
}

func TestCloseWaitsForRunningCalls(t *testing.T) {
	p := openNoClose(t, Config{Spec: scripted("legacy")})
	p.ready()
	_, wait := p.begin(&Request{Name: "sleep", Params: []byte(`{"n":200}`)})
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	must(t, wait())
	wantKind(t, p.call("echo", "{}"), schema.KindUnavailable, false)
}

func TestCloseEndsCallsThatDoNotFinishInTime(t *testing.T) {
	p := openNoClose(t, Config{Spec: scripted("stubborn"), InFlight: 1})
	p.ready()
	_, waitRunning := p.begin(&Request{Name: "hang"})
	_, waitQueued := p.begin(&Request{Name: "echo"})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); err == nil || !strings.Contains(err.Error(), "2 calls") {
		t.Errorf("Close returned %v", err)
	}
	wantKind(t, waitRunning(), schema.KindOutcomeUnknown, true)
	wantKind(t, waitQueued(), schema.KindUnavailable, false)
}

func TestCloseWhileStartingReturns(t *testing.T) {
	p := openNoClose(t, Config{Spec: scripted("silent"), Sessions: 3})
	_, wait := p.begin(&Request{Name: "echo"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Close(ctx); err == nil {
		t.Error("Close did not say that a call was cut off")
	}
	wantKind(t, wait(), schema.KindUnavailable, false)
}

func TestAFailedServerKeepsItsDefinitions(t *testing.T) {
	p := open(t, Config{Spec: scripted("legacy")})
	sum := p.ready().Digest
	p.mu.Lock()
	p.cfg.Spec.Command = "gone" // as if the program was removed
	p.mu.Unlock()
	wantKind(t, p.call("crash", "{}"), schema.KindOutcomeUnknown, true)
	p.until("an error", func(s schema.Server) bool { return s.State == schema.StateError })
	if defs, got := p.Definitions(); got != sum || len(defs.Tools) != 2 {
		t.Errorf("the definitions became %v", defs)
	}
}

func TestManyCallersShareTheSessions(t *testing.T) {
	p := open(t, Config{Spec: scripted("modern"), Sessions: 2, InFlight: 8, Queue: 1000})
	p.ready()
	var work sync.WaitGroup
	for i := range 200 {
		work.Go(func() {
			want := []byte(fmt.Sprintf(`{"i":%d}`, i))
			_, wait := p.begin(&Request{Name: "echo", Params: want})
			if o := wait(); o.Err != nil || !bytes.Contains(o.Body, want) {
				t.Errorf("call %d: got %s, %v", i, o.Body, o.Err)
			}
		})
	}
	work.Wait()
}
