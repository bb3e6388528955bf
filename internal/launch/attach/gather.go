package attach

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
)

// wireBuffer is the size of the buffers on both ways, in bytes.
const wireBuffer = 16 << 10

// gathering is the connection below the WebSocket. The library writes each frame by itself;
// several messages that wait together leave in one system call through it.
type gathering struct {
	net.Conn

	mu      sync.Mutex
	holding bool
	buf     []byte
}

// Write sends p, or keeps a copy while the connection is holding.
func (g *gathering) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holding && len(g.buf)+len(p) <= keepBuffer {
		g.buf = append(g.buf, p...)
		return len(p), nil
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// hold keeps what is written from now on, until release.
func (g *gathering) hold() {
	g.mu.Lock()
	g.holding = true
	g.mu.Unlock()
}

// release sends what was kept.
func (g *gathering) release() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = false
	return g.flush()
}

func (g *gathering) flush() error {
	if len(g.buf) == 0 {
		return nil
	}
	_, err := g.Conn.Write(g.buf)
	g.buf = g.buf[:0]
	return err
}

// hijacked puts a gathering connection below the WebSocket that the library makes of a
// response.
type hijacked struct {
	http.ResponseWriter
	conn *gathering
}

// Hijack is [http.Hijacker].
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &gathering{Conn: conn}
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		_ = conn.Close() // the error counts
		return nil, nil, err
	}
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), wireBuffer)
	if _, err := reader.Peek(len(early)); err != nil { // the library asks for what is buffered
		_ = conn.Close()
		return nil, nil, err
	}
	return h.conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(h.conn, wireBuffer)), nil
}
