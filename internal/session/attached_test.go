package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// attachPool is a pool for attached programs, with the address where they attach.
type attachPool struct {
	*watched
	url string
}

func openAttachPool(t *testing.T, cfg Config, ping time.Duration) *attachPool {
	t.Helper()
	cfg.Spec, cfg.Attached = launch.Spec{ID: "prices", Type: "attach"}, true
	if cfg.Sessions == 0 {
		cfg.Sessions = 10
	}
	p := &attachPool{watched: openNoClose(t, cfg)}
	var serving sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		program, err := attach.ReadProgram(r.Header)
		if err == nil {
			err = p.Attach(program, func(most int) (*attach.Conn, error) {
				return attach.Accept(w, r, attach.Options{MaxMessage: most, PingEvery: ping})
			})
		}
		if err != nil {
			problem.Write(w, err)
		}
	}))
	t.Cleanup(func() {
		p.close(t)
		serving.Wait()
		server.Close()
	})
	p.url = "ws" + strings.TrimPrefix(server.URL, "http")
	return p
}

// attach attaches a program and kills it when the test ends.
func (p *attachPool) attach(program *attachtest.Program) *attachtest.Attached {
	p.t.Helper()
	a, err := program.Attach(p.t.Context(), p.url, "prices", "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(a.Kill)
	return a
}

// attachReady attaches the only program and waits until it is in use. It attaches the program again
// where the start took longer than a short StartTimeout, as on a busy machine.
func (p *attachPool) attachReady(program *attachtest.Program) *attachtest.Attached {
	p.t.Helper()
	for {
		a, ended := p.attach(program), make(chan struct{})
		go func() {
			a.Wait()
			close(ended)
		}()
		ready := false
		polltest.Until(p.t, "the program is ready or was refused", func() bool {
			if ready = p.Snapshot().Sessions == 1; ready {
				return true
			}
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		if ready {
			return a
		}
	}
}

func (p *attachPool) sessions(n int) schema.Server {
	p.t.Helper()
	return p.until(fmt.Sprintf("%d programs are attached", n), func(s schema.Server) bool { return s.Sessions == n })
}

// held is a program whose calls wait until they are released.
type held struct {
	attachtest.Program
	came chan string
	goOn chan struct{}
}

func newHeld(instance string, inFlight int) *held {
	h := &held{came: make(chan string, 100), goOn: make(chan struct{})}
	h.Instance, h.InFlight = instance, inFlight
	h.Call = func(ctx context.Context, _ string, arguments json.RawMessage) string {
		h.came <- string(arguments)
		select {
		case <-h.goOn:
			return `{"content":[],"structuredContent":{"from":"` + instance + `"}}`
		case <-ctx.Done():
			return ""
		}
	}
	return h
}

func TestAttachedProgramsServeCalls(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 8}, 0)
	if s := p.Snapshot(); s.State != schema.StateStarting || s.Slots != 0 || !strings.Contains(s.Error, "No program is attached") {
		t.Fatalf("without a program: %+v", s)
	}
	wantKind(t, p.call("echo", `{}`), schema.KindUnavailable, false)
	p.attach(&attachtest.Program{InFlight: 3})
	p.attach(&attachtest.Program{InFlight: 100})
	s := p.sessions(2)
	if s.State != schema.StateInitialized || s.Slots != 3+8 || s.Transport != "attach" {
		t.Errorf("with two: %+v", s)
	}
	big := `{"n":12345678901234567890123,"text":"` + strings.Repeat("x", 300_000) + `"}`
	for _, args := range []string{`{"a":1}`, big} {
		if o := must(t, p.call("echo", args)); string(o.Body) != `{"content":[],"structuredContent":`+args+`}` {
			t.Errorf("got %.200s", o.Body)
		}
	}
}

func TestDrainingProgramFinishesItsCallsAndGetsNoNewOnes(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 1}, 0)
	old := newHeld("old", 1)
	a := p.attach(&old.Program)
	p.sessions(1)
	_, first := p.begin(&Request{Name: "echo", Params: []byte(`{"n":1}`)})
	<-old.came
	_, second := p.begin(&Request{Name: "echo", Params: []byte(`{"n":2}`)}) // waits for a place
	code := make(chan int, 1)
	go func() { code <- a.Drain() }()
	p.sessions(0)
	p.attach(&attachtest.Program{Instance: "next"})
	if o := must(t, second()); string(o.Body) != `{"content":[],"structuredContent":{"n":2}}` {
		t.Errorf("the second call got %s", o.Body)
	}
	close(old.goOn)
	if o := must(t, first()); !strings.Contains(string(o.Body), "old") {
		t.Errorf("the first call got %s", o.Body)
	}
	if got := <-code; got != attach.CodeDone {
		t.Errorf("closed with %d", got)
	}
	select {
	case args := <-old.came:
		t.Errorf("the draining program got %s", args)
	default:
	}
	if s := p.Snapshot(); s.Restarts != 0 {
		t.Errorf("a drained program counts as %d restarts", s.Restarts)
	}
}

func TestCancellationReachesADrainingProgram(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 2}, 0)
	old := newHeld("old", 2)
	canceled := make(chan struct{}, 2)
	old.Canceled = func() { canceled <- struct{}{} }
	a := p.attach(&old.Program)
	p.sessions(1)
	first, firstEnd := p.begin(&Request{Name: "echo", Params: []byte(`{"n":1}`)})
	second, secondEnd := p.begin(&Request{Name: "echo", Params: []byte(`{"n":2}`)})
	<-old.came
	<-old.came
	code := make(chan int, 1)
	go func() { code <- a.Drain() }()
	p.sessions(0)
	first.Cancel()
	wantKind(t, firstEnd(), schema.KindCanceled, true)
	wantSoon(t, canceled, "the program is told to stop the first call")
	second.Cancel() // the last call: the connection is closed then
	wantKind(t, secondEnd(), schema.KindCanceled, true)
	wantSoon(t, canceled, "the program is told to stop the second call")
	close(old.goOn)
	if got := <-code; got != attach.CodeDone {
		t.Errorf("closed with %d", got)
	}
}

func wantSoon(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("never: %s", what)
	}
}

func TestOnlySentCallsOfAKilledProgramHaveUnknownOutcome(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 2}, 0)
	old := newHeld("old", 2)
	a := p.attach(&old.Program)
	p.sessions(1)
	var written, waiting []func() Outcome
	for range 2 {
		_, wait := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
		written = append(written, wait)
		<-old.came
	}
	for range 3 {
		_, wait := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
		waiting = append(waiting, wait)
	}
	a.Kill()
	for _, wait := range written {
		wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	}
	p.attach(&attachtest.Program{})
	for _, wait := range waiting {
		must(t, wait())
	}
	if s := p.Snapshot(); s.Restarts != 1 {
		t.Errorf("%d restarts", s.Restarts)
	}
}

func TestQueuedCallsFailWhenNoProgramAttaches(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 1}, 0)
	old := newHeld("old", 1)
	a := p.attach(&old.Program)
	p.sessions(1)
	_, first := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
	<-old.came
	_, second := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
	a.Kill()
	wantKind(t, first(), schema.KindOutcomeUnknown, true)
	wantKind(t, second(), schema.KindUnavailable, false)
	wantKind(t, p.call("echo", `{}`), schema.KindUnavailable, false)
}

func TestProgramWithOtherDefinitionsGetsNoCalls(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 4}, 0)
	old := p.attach(&attachtest.Program{Version: "1"})
	digest := p.sessions(1).Digest
	next := p.attach(&attachtest.Program{Version: "2"})
	s := p.until("one waits", func(s schema.Server) bool { return s.OtherDefinitions == 1 })
	if s.Sessions != 1 || s.Digest != digest || s.Slots != 4 {
		t.Errorf("while it waits: %+v", s)
	}
	p.attach(&attachtest.Program{Version: "1"})
	p.sessions(2)
	old.Drain()
	if s := p.sessions(1); s.OtherDefinitions != 1 || s.Digest != digest {
		t.Errorf("with one old program left: %+v", s)
	}
	next.Kill()
	p.until("none waits", func(s schema.Server) bool { return s.OtherDefinitions == 0 })
}

func TestNewDefinitionsApplyAfterTheLastOldProgramDetaches(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 4}, 0)
	old := p.attach(&attachtest.Program{Version: "1"})
	digest := p.sessions(1).Digest
	for range 2 {
		p.attach(&attachtest.Program{Version: "2"})
	}
	p.until("two wait", func(s schema.Server) bool { return s.OtherDefinitions == 2 })
	old.Drain()
	s := p.until("two are in use", func(s schema.Server) bool { return s.Sessions == 2 })
	if s.OtherDefinitions != 0 || s.Digest == digest || s.Version != "2" {
		t.Errorf("got %+v", s)
	}
	must(t, p.call("echo", `{}`))
}

func TestProgramThatChangesItsToolsIsDetached(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 4}, 0)
	changing := &attachtest.Program{}
	a := p.attach(changing)
	digest := p.sessions(1).Digest
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	changing.Tools = `[{"name":"other","inputSchema":{"type":"object"}}]`
	a.Send(changed)
	alone := p.until("its change counts", func(s schema.Server) bool { return s.Digest != digest }).Digest
	p.attach(&attachtest.Program{Tools: changing.Tools})
	p.sessions(2)
	changing.Tools = `[{"name":"third","inputSchema":{"type":"object"}}]`
	a.Send(changed)
	if code := a.Wait(); code != attach.CodeRestart {
		t.Errorf("closed with %d", code)
	}
	if s := p.sessions(1); s.Digest != alone {
		t.Errorf("got %+v", s)
	}
}

func TestReattachedProgramReplacesItsOldConnection(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 1, Sessions: 1}, 0)
	old := newHeld("same", 1)
	a := p.attach(&old.Program)
	p.sessions(1)
	_, first := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
	<-old.came
	_, second := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
	p.attach(&attachtest.Program{Instance: "same"})
	a.Wait()
	wantKind(t, first(), schema.KindOutcomeUnknown, true)
	must(t, second())
	_, err := (&attachtest.Program{Instance: "one too many"}).Attach(t.Context(), p.url, "prices", "")
	var refused *attachtest.Refusal
	if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("a program over the limit: %v", err)
	}
}

func TestAProgramThatDoesNotAnswerPingsIsDetached(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 1}, 2*time.Second)
	mute := newHeld("mute", 1)
	a := p.attach(&mute.Program)
	p.sessions(1)
	_, call := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
	<-mute.came
	p.attach(&attachtest.Program{Instance: "well"})
	p.sessions(2)
	a.Mute()
	e := wantKind(t, call(), schema.KindOutcomeUnknown, true)
	if !strings.Contains(e.Detail, "answered no ping") {
		t.Errorf("got %s", e.Detail)
	}
	p.sessions(1)
	must(t, p.call("echo", `{}`))
}

func TestAFailedHandshakeIsReportedToTheProgram(t *testing.T) {
	p := openAttachPool(t, Config{StartTimeout: 100 * time.Millisecond}, 0)
	a := p.attach(&attachtest.Program{Silent: true})
	if code := a.Wait(); code != attach.CodeFailed {
		t.Errorf("closed with %d", code)
	}
	p.attachReady(&attachtest.Program{})
}

// A program that is never ready connects again every few seconds, for days.
func TestAProgramThatIsNotReadyIsLoggedOnceForEachReason(t *testing.T) {
	p := openAttachPool(t, Config{StartTimeout: 100 * time.Millisecond}, 0)
	var log logtest.Log
	p.log = slog.New(slog.NewTextHandler(&log, nil)) // nothing is attached, so nothing logs yet
	attempts := func(program *attachtest.Program, n int) {
		t.Helper()
		for range n {
			if code := p.attach(program).Wait(); code != attach.CodeFailed {
				t.Fatalf("closed with %d", code)
			}
		}
	}
	attempts(&attachtest.Program{Instance: "a", Silent: true}, 3)
	attempts(&attachtest.Program{Instance: "b", Silent: true}, 2)
	if n := log.Count("did not become ready"); n != 2 {
		t.Errorf("two programs are logged %d times:\n%s", n, log.String())
	}
	p.attachReady(&attachtest.Program{Instance: "a"}).Kill()
	p.sessions(0)
	attempts(&attachtest.Program{Instance: "a", Silent: true}, 2)
	if n := log.Count("did not become ready"); n != 3 {
		t.Errorf("a program that was ready in between is logged %d times, want 3:\n%s", n, log.String())
	}
}

func TestInvalidFramesEndOnlyTheirConnection(t *testing.T) {
	p := openAttachPool(t, Config{MaxResult: 1 << 10}, 0)
	p.attach(&attachtest.Program{Instance: "good"})
	p.sessions(1)
	for name, c := range map[string]struct {
		send func(*attachtest.Attached)
		code int
	}{
		"binary":   {func(a *attachtest.Attached) { a.SendBinary([]byte(`{"jsonrpc":"2.0"}`)) }, attach.CodeBinary},
		"a batch":  {func(a *attachtest.Attached) { a.Send(` [{"jsonrpc":"2.0","method":"x"}]`) }, attach.CodePolicy},
		"too long": {func(a *attachtest.Attached) { a.Send(`{"x":"` + strings.Repeat("x", 70<<10) + `"}`) }, 1009},
	} {
		a := p.attach(&attachtest.Program{})
		p.sessions(2)
		c.send(a)
		if code := a.Wait(); code != c.code {
			t.Errorf("%s: closed with %d, want %d", name, code, c.code)
		}
		p.sessions(1)
	}
	a := p.attach(&attachtest.Program{})
	p.sessions(2)
	for range maxUnexpected {
		a.Send("noise")
	}
	a.Wait()
	p.sessions(1)
	must(t, p.call("echo", `{}`))
}

func TestExpelledProgramFinishesItsCalls(t *testing.T) {
	p := openAttachPool(t, Config{}, 0)
	h := newHeld("h", 1)
	a := p.attach(&h.Program)
	p.sessions(1)
	_, call := p.begin(&Request{Name: "echo", Params: []byte(`{}`)})
	<-h.came
	p.Expel(func(attach.Program) bool { return false })
	p.sessions(0)
	close(h.goOn)
	must(t, call())
	if code := a.Wait(); code != attach.CodeAway {
		t.Errorf("closed with %d", code)
	}
}

func TestCallsRunExactlyOnceWhileProgramsAttachAndDrain(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 4, Queue: 10_000, Sessions: 50}, 0)
	var mu sync.Mutex
	runs := map[string]int{}
	program := func() *attachtest.Program {
		return &attachtest.Program{InFlight: 4, Call: func(_ context.Context, _ string, arguments json.RawMessage) string {
			mu.Lock()
			runs[string(arguments)]++
			mu.Unlock()
			return `{"content":[]}`
		}}
	}
	p.attach(program())
	p.attach(program())
	p.sessions(2)
	const calls = 4000
	var unknown, failed atomic.Int64
	var ended sync.WaitGroup
	ended.Add(calls)
	places := make(chan struct{}, 64)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for i := range calls {
			places <- struct{}{}
			p.Do(&Request{Name: "echo", Params: fmt.Appendf(nil, `{"n":%d}`, i)}, func(_ *Request, o Outcome) {
				switch {
				case o.Err == nil:
				case o.Err.Kind == schema.KindOutcomeUnknown:
					unknown.Add(1)
				default:
					failed.Add(1)
				}
				<-places
				ended.Done()
			})
		}
	}()
	for i := range 20 { // each drains under load
		a := p.attach(program())
		p.until("one more is attached", func(s schema.Server) bool { return s.Sessions >= 3 })
		if code := a.Drain(); code != attach.CodeDone {
			t.Errorf("drain %d: closed with %d", i, code)
		}
	}
	drained := unknown.Load()
	for range 20 {
		a := p.attach(program())
		p.until("one more is attached", func(s schema.Server) bool { return s.Sessions >= 3 })
		a.Kill()
	}
	<-fed
	ended.Wait()
	if drained != 0 {
		t.Errorf("%d calls were lost while programs drained", drained)
	}
	if n := failed.Load(); n != 0 {
		t.Errorf("%d calls failed that had another program to go to", n)
	}
	mu.Lock()
	defer mu.Unlock()
	for args, n := range runs {
		if n > 1 {
			t.Errorf("%s ran %d times", args, n)
		}
	}
	if missing := calls - len(runs); int64(missing) > unknown.Load() {
		t.Errorf("%d calls did not run, and %d are unknown", missing, unknown.Load())
	}
	t.Logf("%d calls, %d unknown", calls, unknown.Load())
}
