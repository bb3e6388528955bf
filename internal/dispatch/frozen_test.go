package dispatch

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// freezableProxy is a proxy in front of a NATS server. Once frozen, it accepts bytes and drops them, as if
// the server were stopped by SIGSTOP.
type freezableProxy struct {
	mu     sync.Mutex
	frozen bool
}

func (f *freezableProxy) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
}

// to returns a writer to w that drops all bytes while frozen.
func (f *freezableProxy) to(w io.Writer) io.Writer {
	return writer(func(b []byte) (int, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.frozen {
			return len(b), nil
		}
		return w.Write(b)
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func freezable(t *testing.T, srv *bustest.Server) *freezableProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := strings.TrimPrefix(srv.URL, "nats://")
	srv.URL = "nats://" + l.Addr().String()
	f := new(freezableProxy)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(f.to(to), from) // it ends with either connection
				to.Close()
				from.Close()
			}
			wait.Go(func() { pass(to, from) })
			wait.Go(func() { pass(from, to) })
		}
	})
	t.Cleanup(wait.Wait)
	t.Cleanup(func() { l.Close() })
	return f
}

func TestNoCallIsSentWhileNATSIsFrozen(t *testing.T) {
	srv := bustest.Start(t)
	f := freezable(t, srv)
	conn := srv.Connect(t, "router")
	r, err := New(conn, schema.NewID("router"), Options{WorkerWait: time.Millisecond}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	heard(t, conn)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := r.Do(ctx, call(false)); schema.KindOf(err) != schema.KindUnavailable || !strings.Contains(err.Error(), "No live worker") {
		t.Errorf("without a worker it ended as %v", err)
	}
	f.freeze()
	_, err = r.Do(ctx, call(false))
	if e := schema.AsError(err); e.Kind != schema.KindUnavailable || !e.Retryable || !strings.Contains(e.Detail, "NATS does not respond") {
		t.Errorf("while NATS is frozen it ended as %v", err)
	}
	gone, giveUp := context.WithCancel(ctx)
	giveUp()
	if _, err := r.Do(gone, call(false)); schema.KindOf(err) != schema.KindCanceled {
		t.Errorf("a call that its caller gave up ended as %v", err)
	}
	idle(t, r)
}

func TestErrorNamesNoWorkerIfAnyMayHaveRunTheCall(t *testing.T) {
	if e := errNoAnswer(call(false), anyWorker, time.Minute); !strings.Contains(e.Detail, "no worker answered within 1m0s") {
		t.Error(e)
	}
	if e := errNoAnswer(call(false), "w", time.Minute); !strings.Contains(e.Detail, "worker w did not answer within 1m0s") {
		t.Error(e)
	}
}
