package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/callyard/callyard/internal/kit/truncate"
)

const (
	// PingEvery is the time between pings. A program that sends nothing for twice that time is
	// disconnected.
	PingEvery = 10 * time.Second

	keepBuffer = 256 << 10 // a larger read buffer is not reused
	firstRead  = 4 << 10
)

// Errors of [Conn.Read]. Any other error means that the connection broke.
var (
	ErrTooLong = errors.New("it sent a message that exceeds the limit")
	ErrBinary  = errors.New("it sent a binary frame; MCP messages are text")
	ErrClosed  = errors.New("it closed the connection")
)

// errSilent ends the connection of a program that sends nothing.
var errSilent = errors.New("it sent nothing and answered no ping")

// Options are the limits of a connection.
type Options struct {
	MaxMessage int           // maximum size of a received message, in bytes
	PingEvery  time.Duration // 0 means [PingEvery]
}

// Conn is a connection to an attached program, or to a server that was dialed. Read and Write may
// each be called by one goroutine at a time. The other methods are safe for concurrent use.
type Conn struct {
	ws    *websocket.Conn
	wire  *gathering // nil if this end dialed; each message is sent separately then
	ping  time.Duration
	heard atomic.Uint64 // number of signs of life
	buf   []byte
}

// Accept upgrades a request whose headers [ReadProgram] has read. If it returns an error, the
// response was written.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	c := newConn(&o)
	var err error
	wire := &hijacked{ResponseWriter: w}
	c.ws, err = websocket.Accept(wire, r, &websocket.AcceptOptions{
		Subprotocols:   []string{Subprotocol},
		OnPingReceived: func(context.Context, []byte) bool { c.hear(); return true },
		OnPongReceived: func(context.Context, []byte) { c.hear() },
	})
	if err != nil {
		return nil, err
	}
	c.wire = wire.conn
	c.ws.SetReadLimit(int64(o.MaxMessage))
	return c, nil
}

func newConn(o *Options) *Conn {
	c := &Conn{ping: o.PingEvery}
	if c.ping <= 0 {
		c.ping = PingEvery
	}
	return c
}

func (c *Conn) hear() { c.heard.Add(1) }

// Read returns the next message, which is valid until the next call. Do not call it again after an
// error.
func (c *Conn) Read() ([]byte, error) {
	kind, from, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, readError(err)
	}
	if kind != websocket.MessageText {
		return nil, ErrBinary
	}
	if cap(c.buf) > keepBuffer {
		c.buf = nil
	}
	b := c.buf[:0]
	for {
		if len(b) == cap(b) {
			next := make([]byte, len(b), max(2*cap(b), firstRead))
			copy(next, b)
			b = next
		}
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if n > 0 {
			c.hear()
		}
		switch {
		case errors.Is(err, io.EOF):
			c.buf = b
			return b, nil
		case err != nil:
			return nil, readError(err)
		}
	}
}

// readError replaces an error of the library, whose text may repeat content of the program.
func readError(err error) error {
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return ErrTooLong
	}
	if code := websocket.CloseStatus(err); code >= 0 {
		return fmt.Errorf("%w with code %d", ErrClosed, code)
	}
	var network *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("its connection ended")
	case errors.As(err, &network):
		return fmt.Errorf("its connection broke: %w", network.Err)
	}
	return errors.New("its connection broke, or it sent frames that are not WebSocket")
}

// Write sends messages: the first starts at from in b, and each ends at one of the given offsets.
// They are sent together, in as few system calls as possible. It blocks while the program does not
// read; [Conn.Abort] unblocks it.
func (c *Conn) Write(b []byte, from int, ends []int) error {
	if len(ends) > 1 && c.wire != nil {
		c.wire.hold()
	}
	for _, end := range ends {
		if err := c.ws.Write(context.Background(), websocket.MessageText, b[from:end]); err != nil {
			return err
		}
		from = end
	}
	if c.wire == nil {
		return nil
	}
	return c.wire.release()
}

// maxMissed is the number of consecutive periods without a sign of life after which a program is
// disconnected. Periods count, and not their time: if this process was stopped meanwhile, what the program
// has sent waits to be read.
const maxMissed = 2

// KeepAlive pings the program until ctx ends, when it returns nil, or until the program stops
// responding.
func (c *Conn) KeepAlive(ctx context.Context) error {
	tick := time.NewTicker(c.ping)
	defer tick.Stop()
	heard := c.heard.Load()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now := c.heard.Load(); now != heard {
			heard, missed = now, 0
		} else if missed++; missed >= maxMissed {
			return errSilent
		}
		brief, cancel := context.WithTimeout(ctx, c.ping)
		err := c.ws.Ping(brief) // a program that is slow to answer a ping may still send other messages
		cancel()
		if errors.Is(err, net.ErrClosed) {
			return nil // the reader returns the error
		}
	}
}

// Close codes of a worker.
const (
	CodeDone    = int(websocket.StatusNormalClosure) // the program drained and its calls are answered
	CodeAway    = int(websocket.StatusGoingAway)     // the worker ends, or its entry changed; dial again
	CodeBinary  = int(websocket.StatusUnsupportedData)
	CodePolicy  = int(websocket.StatusPolicyViolation)
	CodeFailed  = int(websocket.StatusInternalError) // the MCP handshake failed
	CodeRestart = int(websocket.StatusServiceRestart)
	mostReason  = 123 // maximum bytes of a reason in a close frame (RFC 6455)
)

// Close closes the connection with a close handshake. It waits a few seconds for the program.
func (c *Conn) Close(code int, reason string) {
	_ = c.ws.Close(websocket.StatusCode(code), truncate.Head(reason, mostReason)) // it fails if the program has disconnected
}

// Abort closes the connection at once.
func (c *Conn) Abort() { _ = c.ws.CloseNow() }
