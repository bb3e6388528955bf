package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connections between a forwarder and its worker are HTTP/2 streams over one pair of pipes, because
// its flow control keeps one connection from blocking the others.
const (
	readyPath   = "/ready"
	openPath    = "/open"
	mostStreams = 64
	mostOpen    = mostStreams - 4 // fewer than the streams, or the client would open a second pair of pipes
	chunk       = 32 << 10
)

// pipes is a connection made of the two pipes of a program.
type pipes struct {
	io.Reader
	io.Writer
	close func()
	once  sync.Once
	ended chan struct{} // closed by the first error of Read, or by Close
	end   sync.Once
}

func newPipes(r io.Reader, w io.Writer, closes func()) *pipes {
	return &pipes{Reader: r, Writer: w, close: closes, ended: make(chan struct{})}
}

func (p *pipes) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil {
		p.end.Do(func() { close(p.ended) })
	}
	return n, err
}

func (p *pipes) Close() error {
	p.once.Do(p.close)
	p.end.Do(func() { close(p.ended) })
	return nil
}

func (*pipes) LocalAddr() net.Addr              { return pipeAddress{} }
func (*pipes) RemoteAddr() net.Addr             { return pipeAddress{} }
func (*pipes) SetDeadline(time.Time) error      { return nil } // the owner of the program ends it
func (*pipes) SetReadDeadline(time.Time) error  { return nil }
func (*pipes) SetWriteDeadline(time.Time) error { return nil }

type pipeAddress struct{}

func (pipeAddress) Network() string { return "pipe" }
func (pipeAddress) String() string  { return "forwarder" }

// Tunnel is a [net.Listener] for the connections that a forwarder accepts. It is safe for
// concurrent use.
type Tunnel struct {
	line   *pipes
	server *http.Server
	conns  chan net.Conn
	ready  chan struct{}
	once   sync.Once
	done   chan struct{}
	served sync.WaitGroup

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // added to under mu while not closed
}

// OpenTunnel returns the worker's end of a forwarder's standard streams when the forwarder listens.
// stdout is read until it ends. Closing the Tunnel closes both streams and ends the forwarder.
// After an error nothing is left.
func OpenTunnel(ctx context.Context, stdin io.WriteCloser, stdout io.ReadCloser) (*Tunnel, error) {
	t := &Tunnel{conns: make(chan net.Conn), ready: make(chan struct{}), done: make(chan struct{})}
	t.line = newPipes(stdout, stdin, func() { stdin.Close(); stdout.Close() })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	t.server = &http.Server{
		Handler: http.HandlerFunc(t.handle), Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostStreams},
		ReadHeaderTimeout: headerTime, ErrorLog: log.New(io.Discard, "", 0),
	}
	t.served.Go(func() { _ = t.server.Serve(&single{conn: t.line, done: t.done}) }) // it ends with the Tunnel
	select {
	case <-t.ready:
		return t, nil
	case <-t.line.ended:
		_ = t.Close() // it cannot fail
		return nil, errors.New("the forwarder ended before it was ready")
	case <-ctx.Done():
		_ = t.Close() // it cannot fail
		return nil, fmt.Errorf("waiting for the forwarder: %w", ctx.Err())
	}
}

func (t *Tunnel) handle(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.work.Add(1)
	t.mu.Unlock()
	defer t.work.Done()
	if r.URL.Path == readyPath {
		t.once.Do(func() { close(t.ready) })
		return
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	select {
	case t.conns <- theirs:
	case <-t.done:
		return
	}
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	if flush() != nil {
		return
	}
	var in sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(ours, r.Body)
		ours.Close()
	})
	defer in.Wait()
	defer r.Body.Close()
	buffer := make([]byte, chunk)
	for {
		n, err := ours.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil || flush() != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	ours.Close()
}

// Accept returns the next connection.
func (t *Tunnel) Accept() (net.Conn, error) {
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.done:
		return nil, net.ErrClosed
	case <-t.line.ended:
		return nil, net.ErrClosed
	}
}

// Addr returns a name, because there is no address.
func (t *Tunnel) Addr() net.Addr { return pipeAddress{} }

// Close closes the connections and both pipes, and waits for everything that the Tunnel started.
func (t *Tunnel) Close() error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.done)
	}
	t.mu.Unlock()
	_ = t.line.Close()   // it cannot fail
	_ = t.server.Close() // it has no listener that could fail
	t.work.Wait()
	t.served.Wait()
	return nil
}

// single is a listener of one connection.
type single struct {
	conn net.Conn
	done chan struct{}
	once sync.Once
}

func (s *single) Accept() (net.Conn, error) {
	var c net.Conn
	s.once.Do(func() { c = s.conn })
	if c != nil {
		return c, nil
	}
	<-s.done
	return nil, net.ErrClosed
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return pipeAddress{} }
