package attach

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
)

// wireBuffer is the size of the read and write buffers, in bytes.
const wireBuffer = 16 << 10

// gathering is the connection below the WebSocket. The library writes each frame separately;
// gathering sends several waiting messages in one system call.
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

// hold buffers writes until release.
func (g *gathering) hold() {
	g.mu.Lock()
	g.holding = true
	g.mu.Unlock()
}

// release sends the buffered writes.
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

// hijacked inserts a gathering connection below the WebSocket that the library creates from a response.
type hijacked struct {
	http.ResponseWriter
	conn *gathering
}

// Hijack implements [http.Hijacker].
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &gathering{Conn: conn}
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		_ = conn.Close() // the first error counts
		return nil, nil, err
	}
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), wireBuffer)
	if _, err := reader.Peek(len(early)); err != nil { // the library asks for the buffered bytes
		_ = conn.Close()
		return nil, nil, err
	}
	return h.conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(h.conn, wireBuffer)), nil
}
