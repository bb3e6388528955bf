package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// ForwarderAddress is the listen address of a forwarder, on the loopback network that it shares
// with one sandbox.
const ForwarderAddress = "127.0.0.1:3128"

// RunForwarder carries connections of the listener over the two pipes until in ends, then closes the
// listener. It makes no decisions; the worker at the other end of the pipes does.
func RunForwarder(l net.Listener, in io.ReadCloser, out io.WriteCloser) error {
	line := newPipes(in, out, func() { in.Close(); out.Close() })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: &protocols, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return line, nil },
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	defer func() { _ = line.Close() }() // it cannot fail
	work.Go(func() {
		<-line.ended
		cancel()
		l.Close()
	})

	ready, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+readyPath, http.NoBody)
	if err != nil {
		return err
	}
	// Do not use the connection pool of the transport: it does not know the connection yet when the
	// first request is answered, so the next request would open a second pair of pipes.
	worker, err := transport.NewClientConn(ctx, "http", "worker:80")
	if err != nil {
		l.Close()
		return fmt.Errorf("connecting to the worker: %w", err)
	}
	defer func() { _ = worker.Close() }() // the pipes close with line
	answer, err := worker.RoundTrip(ready)
	if err != nil {
		l.Close()
		return fmt.Errorf("reporting to the worker that the forwarder is ready: %w", err)
	}
	answer.Body.Close()
	places := make(chan struct{}, mostOpen)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("listening: %w", err)
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			conn.Close()
			return nil
		}
		work.Go(func() {
			defer func() { <-places }()
			carry(ctx, worker, conn)
		})
	}
}

// carry carries one connection.
func carry(ctx context.Context, worker *http.ClientConn, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	// The HTTP client must not close the connection: it would do so when the other end has finished
	// sending, while data may still have to be copied.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+openPath, io.NopCloser(conn))
	if err != nil {
		return
	}
	answer, err := worker.RoundTrip(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(conn, answer.Body) // either end may close it
	conn.Close()                      // close it first, since closing the response waits for pending reads
	answer.Body.Close()
}
