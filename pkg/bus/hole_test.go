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

// hole stands before a server. What has connected to it by the time it opens gets
// nothing through any more, and is not told.
type hole struct {
	net.Listener
	mu    sync.Mutex
	open  chan struct{} // closed when the connections of now get nowhere
	ends  []io.Closer
	wait  sync.WaitGroup
	until chan struct{} // the end of the test
}

func before(t *testing.T, server string) *hole {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{Listener: l, open: make(chan struct{}), until: make(chan struct{})}
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

func (h *hole) pass(from, to net.Conn, open chan struct{}) {
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

// swallow opens the hole under the connections of now.
func (h *hole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
	h.open = make(chan struct{})
}

// A node of a cluster that is partitioned takes no bytes, and says nothing. The client
// waits a minute for each write by default, and then once more before it moves.
func TestAServerThatTakesNoBytesIsLeftWithinSeconds(t *testing.T) {
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
		_ = c.Publish("nobody", data) // in the end it says that the write took too long
	}
	if c.Links() == links {
		t.Fatalf("after %v it still writes to a server that takes nothing", time.Since(began))
	}
	t.Logf("it was left after %v", time.Since(began).Round(time.Second))
}
