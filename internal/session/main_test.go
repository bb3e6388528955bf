package session

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// scriptVariable makes the test binary run one of the servers of script_test.go.
const scriptVariable = "SESSION_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper())
	}
	if script := os.Getenv(scriptVariable); script != "" {
		runScript(script)
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// patience limits every wait of a test. Only failing tests reach it.
const patience = 30 * time.Second

func launcher(t testing.TB) *launch.Launcher {
	t.Helper()
	l, err := launch.New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func scripted(script string) launch.Spec {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return launch.Spec{ID: "scripted", Type: "stdio", Command: exe, Env: map[string]string{
		scriptVariable: script,
		"GORACE":       "atexit_sleep_ms=0", // otherwise each exit takes a second under -race
	}}
}

// watched is a pool whose changes a test can wait for.
type watched struct {
	*Pool
	t     testing.TB
	flips chan struct{}
}

func open(t testing.TB, cfg Config) *watched {
	t.Helper()
	w := openNoClose(t, cfg)
	t.Cleanup(func() { w.close(t) })
	return w
}

func (w *watched) close(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func openNoClose(t testing.TB, cfg Config) *watched {
	t.Helper()
	var l *launch.Launcher
	if cfg.Spec.Type == "" || cfg.Spec.Type == "stdio" {
		l = launcher(t)
	}
	return openWith(t, l, cfg)
}

func openWith(t testing.TB, l *launch.Launcher, cfg Config) *watched {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("SESSION_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w := &watched{t: t, flips: make(chan struct{}, 1)}
	w.Pool = Open(cfg, l, log, func() {
		select {
		case w.flips <- struct{}{}:
		default:
		}
	})
	return w
}

// until waits until ok accepts the snapshot, and returns it.
func (w *watched) until(what string, ok func(schema.Server) bool) schema.Server {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		s := w.Snapshot()
		if ok(s) {
			return s
		}
		select {
		case <-w.flips:
		case <-deadline:
			w.t.Fatalf("waited in vain until %s; it is %+v", what, s)
		}
	}
}

func (w *watched) ready() schema.Server {
	w.t.Helper()
	return w.until("ready", func(s schema.Server) bool { return s.Sessions > 0 && s.Digest != "" })
}

// begin starts a call and returns a function that waits for its outcome.
func (w *watched) begin(req *Request) (*Running, func() Outcome) {
	w.t.Helper()
	ends := make(chan Outcome, 2)
	r := w.Do(req, func(got *Request, o Outcome) {
		if got != req {
			w.t.Error("done got another request")
		}
		ends <- o
	})
	return r, func() Outcome {
		w.t.Helper()
		select {
		case o := <-ends:
			return o
		case <-time.After(patience):
			w.t.Fatalf("the call of %q did not end", req.Name)
			return Outcome{}
		}
	}
}

// call runs a tool to its end.
func (w *watched) call(tool, args string) Outcome {
	w.t.Helper()
	_, wait := w.begin(&Request{Name: tool, Params: []byte(args)})
	return wait()
}

// must fails the test unless the call returned a result.
func must(t testing.TB, o Outcome) Outcome {
	t.Helper()
	if o.Err != nil {
		t.Fatalf("the call failed: %s: %s", o.Err.Kind, o.Err.Detail)
	}
	return o
}

// wantKind fails the test unless the call failed with this kind.
func wantKind(t testing.TB, o Outcome, kind schema.Kind, started bool) *schema.Error {
	t.Helper()
	if o.Err == nil {
		t.Fatalf("the call succeeded with %s, want %s", o.Body, kind)
	}
	if o.Err.Kind != kind || o.Started != started {
		t.Fatalf("the call ended with %s, started %v (%s); want %s, started %v", o.Err.Kind, o.Started, o.Err.Detail, kind, started)
	}
	return o.Err
}
