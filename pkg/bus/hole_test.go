package bus_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// blackHoleProxy is a proxy in front of a server. When it opens, existing connections transmit no more data
// but stay open.
type blackHoleProxy struct {
	net.Listener
	mu    sync.Mutex
	open  chan struct{} // closed when the existing connections stop transmitting
	ends  []io.Closer
	wait  sync.WaitGroup
	until chan struct{} // closed at the end of the test
}

func before(t *testing.T, server string) *blackHoleProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &blackHoleProxy{Listener: l, open: make(chan struct{}), until: make(chan struct{})}
	h.wait.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				from.Close()
				continue
			}
			h.mu.Lock()
			h.ends = append(h.ends, from, to)
			open := h.open
			h.mu.Unlock()
			h.pass(from, to, open)
			h.pass(to, from, open)
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(h.until)
		h.mu.Lock()
		for _, end := range h.ends {
			end.Close()
		}
		h.mu.Unlock()
		h.wait.Wait()
	})
	return h
}

func (h *blackHoleProxy) pass(from, to net.Conn, open chan struct{}) {
	h.wait.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			select {
			case <-open:
				<-h.until
				return
			default:
			}
			if err != nil {
				to.Close()
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close()
				return
			}
		}
	})
}

// swallow opens the hole for the existing connections.
func (h *blackHoleProxy) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
	h.open = make(chan struct{})
}

// A partitioned node of a cluster accepts no bytes and reports nothing. By default the client waits
// a minute for each write, and then once more before it moves.
func TestStalledServerIsDisconnectedWithinSeconds(t *testing.T) {
	srv := bustest.Start(t)
	h := before(t, strings.TrimPrefix(srv.URL, "nats://"))
	c, err := bus.Connect(t.Context(), bus.Options{URL: "nats://" + h.Addr().String(), Name: "n", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	links := c.Links()
	h.swallow()
	ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
	defer stop()
	began, data := time.Now(), make([]byte, 16<<10)
	for c.Links() == links && ctx.Err() == nil {
		_ = c.Publish("nobody", data) // finally it returns that the write took too long
	}
	if c.Links() == links {
		t.Fatalf("after %v it still writes to a server that takes nothing", time.Since(began))
	}
	t.Logf("it was left after %v", time.Since(began).Round(time.Second))
}
