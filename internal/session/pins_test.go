package session

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/pkg/schema"
)

// digestOf returns the digest of a tool as the pool knows it.
func (w *watched) digestOf(tool string) string {
	w.t.Helper()
	defs, _ := w.Definitions()
	for _, raw := range defs.Tools {
		if member(raw, "name") == tool {
			return schema.Digest(raw)
		}
	}
	w.t.Fatalf("there is no tool %q in %s", tool, defs.Tools)
	return ""
}

// calls runs a tool with the digest of the definition that the call was checked against.
func (w *watched) calls(tool, digest string) Outcome {
	w.t.Helper()
	_, wait := w.begin(&Request{Name: tool, Params: []byte(`{}`), Digest: digest})
	return wait()
}

func TestACallRunsOnlyWithTheDefinitionThatItWasCheckedAgainst(t *testing.T) {
	w := open(t, Config{Spec: scripted("good"), Pinned: true})
	w.ready()
	echo := w.digestOf("echo")
	must(t, w.calls("echo", echo))
	for name, digest := range map[string]string{"echo": "sha256:00", "hang": echo} {
		e := wantKind(t, w.calls(name, digest), schema.KindUnavailable, false)
		if !e.Retryable || !strings.Contains(e.Detail, "did not start") {
			t.Errorf("%+v", e)
		}
	}
	must(t, w.calls("echo", "")) // no check was made; the worker refuses such a call
}

// A caller's own session has nothing that reads the lists in the background.
func TestOwnSessionOfAPinnedServerReadsTheToolsAgainAfterAChange(t *testing.T) {
	o := OpenOwn(Config{Spec: scripted("eager"), Pinned: true}, launcher(t), slog.New(slog.DiscardHandler))
	t.Cleanup(o.Close)
	one := takeOwn(t, o, askableCaller("a"))
	defs, _ := one.Definitions()
	echo := schema.Digest(defs.Tools[0])
	call := func(tool, digest string) Outcome {
		over := make(chan Outcome, 1)
		one.Do(&Request{Name: tool, Params: []byte(`{}`), Digest: digest}, func(_ *Request, out Outcome) { over <- out })
		return <-over
	}
	must(t, call("echo", echo)) // the server reported a change while its tools were read
	must(t, call("change", ""))
	must(t, call("echo", echo))
	wantKind(t, call("echo", "sha256:00"), schema.KindUnavailable, false)
	o.Release(one, true)
}

// A call that arrives after the server reported a change of its tools waits until they were read,
// and runs only if its own tool is unchanged.
func TestCallsWaitWhileToolsOfAPinnedServerAreReloaded(t *testing.T) {
	w := open(t, Config{Spec: scripted("good"), Pinned: true})
	w.ready()
	echo, before := w.digestOf("echo"), w.Snapshot().Digest
	must(t, w.call("change", `{}`)) // the notification arrives before the answer
	_, wait := w.begin(&Request{Name: "echo", Params: []byte(`{}`), Digest: echo})
	must(t, wait())
	if w.Snapshot().Digest == before {
		t.Error("the call ran before the changed tools were read")
	}
}

func TestReplacedToolDoesNotRunCallsForTheOldOne(t *testing.T) {
	tool := func(version string) native.Tool {
		return native.Tool{
			Name: "pay", Definition: json.RawMessage(`{"name":"pay","description":"` + version + `","inputSchema":{"type":"object"}}`),
			Call: func(context.Context, *native.Call) (native.Result, error) { return native.Text(version), nil },
		}
	}
	server, err := native.New(native.Info{Name: "bank"}, tool("one"))
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, Config{Spec: launch.Spec{ID: "bank", Type: "native"}, Sessions: 2, Pinned: true,
		Native: func(*slog.Logger) (*native.Server, func(), error) { return server, nil, nil }})
	w.until("both sessions", func(s schema.Server) bool { return s.Sessions == 2 && s.Digest != "" })
	one := w.digestOf("pay")
	must(t, w.calls("pay", one))
	server.Remove("pay")
	if err := server.Add(tool("two")); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		wantKind(t, w.calls("pay", one), schema.KindUnavailable, false)
	}
	must(t, w.calls("pay", w.digestOf("pay")))
}

// Each session reads the tools before its first call, because a restarted process may be another
// version of the server.
func TestASessionOfAPinnedServerReadsTheToolsBeforeItsFirstCall(t *testing.T) {
	for _, pinned := range []bool{true, false} {
		p := newPool(Config{Spec: scripted("good"), Pinned: pinned}, slog.New(slog.DiscardHandler), func() {})
		l := launcher(t)
		p.start = func() (*Process, error) {
			child, err := l.Start(p.cfg.Spec)
			if err != nil {
				return nil, err
			}
			return &Process{Program: child, Stdin: child.Stdin, Stdout: child.Stdout}, nil
		}
		p.offers.defs = &schema.Definitions{} // an earlier session read other tools
		s, _, err := p.attempt(eraUnknown, p.cfg.ProbeTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if read := s.pins.last.Load() != nil; read != pinned {
			t.Errorf("pinned %v: the tools were read: %v", pinned, read)
		}
		s.failed.Store(true)
		s.close()
		p.cancel()
	}
}
