package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Slow configures connections that occupy resources: some never complete their
// head, some never their body, some request an endless response and never read it, and some
// send nothing at all.
type Slow struct {
	Target Target
	// Each is the number of connections of each kind.
	Each int
	// Every is the interval between the bytes of a dripping connection (1 s).
	Every time.Duration
	// Streams are requests with endless responses, and Bodies requests with a body.
	Streams, Bodies []Golden
}

// Crowd is a set of held connections. Stop closes them.
type Crowd struct {
	stop    context.CancelFunc
	wait    sync.WaitGroup
	mu      sync.Mutex
	conns   []net.Conn
	refused int
}

// Hold opens the connections and returns when each has sent its beginning.
// Dripping connections continue to send bytes until [Crowd.Stop].
func (s *Slow) Hold(ctx context.Context) (*Crowd, error) {
	every := s.Every
	if every <= 0 {
		every = time.Second
	}
	ctx, stop := context.WithCancel(ctx)
	c := &Crowd{stop: stop}
	host := s.Target.Addr
	for i := range s.Each {
		kinds := []struct{ first, drip string }{
			{"", ""},
			{"GET / HTTP/1.1\r\nHost: " + host + "\r\nX-", "a"},
		}
		if len(s.Bodies) > 0 {
			g := s.Bodies[i%len(s.Bodies)]
			body := g.Body
			g.Body = nil
			head := string(g.bytes(host))
			head = head[:len(head)-2]
			kinds = append(kinds,
				struct{ first, drip string }{head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)+100_000) + string(body[:len(body)/2]), " "},
				struct{ first, drip string }{head + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"},
			)
		}
		if len(s.Streams) > 0 {
			kinds = append(kinds, struct{ first, drip string }{string(s.Streams[i%len(s.Streams)].bytes(host)), ""})
		}
		for _, k := range kinds {
			conn, err := dial(ctx, host)
			if err != nil {
				c.Stop()
				return nil, fmt.Errorf("holding connections at %s: %w", s.Target.Name, err)
			}
			_ = conn.SetReadBuffer(2048) // unread data must wait at the peer
			c.mu.Lock()
			c.conns = append(c.conns, conn)
			c.mu.Unlock()
			if _, err := io.WriteString(conn, k.first); err != nil || k.drip == "" {
				continue
			}
			c.wait.Go(func() {
				for rest(ctx, every) {
					if _, err := io.WriteString(conn, k.drip); err != nil {
						c.mu.Lock()
						c.refused++ // the peer closed it
						c.mu.Unlock()
						return
					}
				}
			})
		}
	}
	return c, nil
}

// Size returns the number of opened connections, and the number of dripping ones that the
// peer has closed.
func (c *Crowd) Size() (opened, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns), c.refused
}

// Stop closes all connections and waits for the goroutines of dripping ones.
func (c *Crowd) Stop() {
	c.stop()
	c.mu.Lock()
	for _, conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close() // the peer may have closed it
	}
	c.mu.Unlock()
	c.wait.Wait()
}

// Closed waits until the peer has closed every connection that sends nothing
// or drips its head, because a server must not wait for those forever. It returns the number
// that is still open when ctx ends.
func Closed(ctx context.Context, addr string, first string) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, first); err != nil {
		return nil // closed
	}
	_, err = io.Copy(io.Discard, conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("a connection that never ended its request is still open: %w", context.Cause(ctx))
	}
	return nil
}

// Stall opens n connections that each send all but the last byte of a body of size bytes,
// and then wait. It returns when each has sent that, or was refused.
func Stall(ctx context.Context, t Target, g Golden, size, n int) (*Crowd, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &Crowd{stop: stop}
	body := g.Body
	g.Body = nil
	head := g.bytes(t.Addr)
	head = fmt.Appendf(head[:len(head)-2:len(head)-2], "Content-Length: %d\r\n\r\n", size)
	filler := make([]byte, 256<<10)
	for i := range filler {
		filler[i] = ' '
	}
	var sending sync.WaitGroup
	for range n {
		conn, err := dial(ctx, t.Addr)
		if err != nil {
			sending.Wait()
			c.Stop()
			return nil, fmt.Errorf("holding bodies at %s: %w", t.Name, err)
		}
		c.conns = append(c.conns, conn)
		sending.Go(func() {
			left := size - 1
			for _, part := range [][]byte{head, body[:min(len(body)/2, left)]} {
				if _, err := conn.Write(part); err != nil {
					return // refused, which is also a valid response
				}
			}
			for left -= min(len(body)/2, left); left > 0 && ctx.Err() == nil; left -= min(left, len(filler)) {
				if _, err := conn.Write(filler[:min(left, len(filler))]); err != nil {
					return
				}
			}
		})
	}
	sending.Wait()
	return c, nil
}
