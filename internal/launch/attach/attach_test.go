package attach_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv(echoVariable) != "" {
		serveEcho()
		return
	}
	goleak.VerifyTestMain(m)
}

func headers(pairs ...string) http.Header {
	h := http.Header{"Sec-Websocket-Protocol": {"chat, mcp"}}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestProgramIsReadFromItsHeaders(t *testing.T) {
	p, err := attach.ReadProgram(headers("Callyard-Instance", "a-1", "Callyard-In-Flight", "16", "Callyard-Version", "1.2", "Callyard-Language", "python"))
	if want := (attach.Program{Instance: "a-1", InFlight: 16, Version: "1.2", Language: "python"}); err != nil || p != want {
		t.Errorf("got %+v, %v", p, err)
	}
	one, err := attach.ReadProgram(headers())
	other, otherErr := attach.ReadProgram(headers())
	if err != nil || otherErr != nil || one.Instance == "" || one.Instance == other.Instance || one.InFlight != 0 {
		t.Errorf("programs that say nothing: %+v, %+v", one, other)
	}
	for name, h := range map[string]http.Header{
		"no subprotocol": {}, "another": {"Sec-Websocket-Protocol": {"mcp2"}},
		"no number": headers("Callyard-In-Flight", "many"), "none at once": headers("Callyard-In-Flight", "0"), "too many": headers("Callyard-In-Flight", "100001"),
		"long": headers("Callyard-Instance", strings.Repeat("x", 65)), "a control character": headers("Callyard-Language", "a\x7f"),
	} {
		if _, err := attach.ReadProgram(h); schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzProgramHeaders(f *testing.F) {
	f.Add("mcp", "i", "16", "1", "go")
	f.Add("x,,mcp", "", "", "", "")
	f.Add("", "\x00", "-1", "é", strings.Repeat("x", 100))
	f.Fuzz(func(t *testing.T, protocol, instance, inFlight, version, language string) {
		h := http.Header{"Sec-Websocket-Protocol": {protocol}, "Callyard-Instance": {instance}, "Callyard-In-Flight": {inFlight}, "Callyard-Version": {version}, "Callyard-Language": {language}}
		p, err := attach.ReadProgram(h)
		switch {
		case err != nil && schema.KindOf(err) != schema.KindInvalidRequest:
			t.Errorf("not the program's fault: %v", err)
		case err == nil && (p.Instance == "" || len(p.Instance+p.Version+p.Language) > 3*64 || p.InFlight < 0):
			t.Errorf("got %+v", p)
		}
	})
}

// upgraded dials a server that accepts one program, and returns the raw connection of the
// program with the worker's end.
func upgraded(t *testing.T, most int) (net.Conn, *attach.Conn) {
	t.Helper()
	conn, c, _ := upgradedCounting(t, most)
	return conn, c
}

// countingListener counts what is written to the connections that it accepts, in calls.
type countingListener struct {
	net.Listener
	writes atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{conn, &l.writes}, nil
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// upgradedCounting is upgraded with the number of writes to the connection so far.
func upgradedCounting(t *testing.T, most int) (net.Conn, *attach.Conn, *atomic.Int64) {
	t.Helper()
	ends := make(chan *attach.Conn, 1)
	var serving sync.WaitGroup
	serving.Add(1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer serving.Done()
		c, err := attach.Accept(w, r, attach.Options{MaxMessage: most})
		if err != nil {
			t.Error(err)
		}
		ends <- c
	}))
	listener := &countingListener{Listener: server.Listener}
	server.Listener = listener
	server.Start()
	t.Cleanup(func() { serving.Wait(); server.Close() })
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	c := <-ends
	t.Cleanup(c.Abort)
	answer := make([]byte, 0, 256)
	one := make([]byte, 1)
	for !strings.HasSuffix(string(answer), "\r\n\r\n") {
		if _, err := conn.Read(one); err != nil {
			t.Fatal(err)
		}
		answer = append(answer, one[0])
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 101 ") || !strings.Contains(string(answer), "Sec-Websocket-Protocol: mcp\r\n") {
		t.Fatalf("the answer is %q", answer)
	}
	return conn, c, &listener.writes
}

func TestQueuedMessagesAreSentInOneWrite(t *testing.T) {
	conn, c, writes := upgradedCounting(t, 1000)
	var b, want []byte
	var ends []int
	for i := range 100 {
		b = fmt.Appendf(b, `{"id":%d}`, i)
		ends = append(ends, len(b))
	}
	for from, i := 0, 0; i < len(ends); from, i = ends[i], i+1 {
		want = append(append(want, text, byte(ends[i]-from)), b[from:ends[i]]...)
	}
	before := writes.Load()
	if err := c.Write(b, 0, ends); err != nil {
		t.Fatal(err)
	}
	if n := writes.Load() - before; n != 1 {
		t.Errorf("100 messages left in %d writes", n)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	long := bytes.Repeat([]byte("x"), 1<<20)
	go func() { _ = c.Write(long, 0, []int{10, len(long) - 10, len(long)}) }()
	const heads = 2 + 10 + 2
	got = make([]byte, len(long)+heads)
	if _, err := io.ReadFull(conn, got); err != nil || bytes.Count(got, []byte("x")) != len(long) {
		t.Errorf("of three messages, one of them long, %d bytes came: %v", bytes.Count(got, []byte("x")), err)
	}
}

// frame is a masked frame of a client, with the mask 0.
func frame(first byte, payload string) string {
	switch n := len(payload); {
	case n < 126:
		return string([]byte{first, 0x80 | byte(n), 0, 0, 0, 0}) + payload
	default:
		return string([]byte{first, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}) + payload
	}
}

const (
	text, binary, more, last, closing = 0x81, 0x82, 0x01, 0x80, 0x88
)

func TestInvalidFramesEndTheConnection(t *testing.T) {
	long := strings.Repeat("x", 1001)
	for name, c := range map[string]struct {
		sent string
		want error // nil for any
	}{
		"binary": {frame(binary, "{}"), attach.ErrBinary}, "too long": {frame(text, long), attach.ErrTooLong},
		"too long in parts": {frame(more, long[:600]) + frame(last, long[:600]), attach.ErrTooLong},
		"closed":            {frame(closing, "\x03\xe8"), attach.ErrClosed},
		"not masked":        {"\x81\x02{}", nil}, "a reserved opcode": {frame(0x83, ""), nil}, "a reserved bit": {frame(0xc1, "{}"), nil},
		"a part of nothing": {frame(last, "x"), nil}, "a long ping": {frame(0x89, strings.Repeat("x", 126)), nil}, "no WebSocket": {"GET / HTTP/1.1\r\n\r\n", nil},
	} {
		conn, c2 := upgraded(t, 1000)
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
		_, err := c2.Read()
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		c2.Abort()
		_ = conn.Close()
	}
}

func TestFragmentedMessagesAreReassembled(t *testing.T) {
	conn, c := upgraded(t, 1000)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	if _, err := io.WriteString(conn, frame(more, `{"a":`)+frame(0x89, "p")+frame(last, `1}`)+frame(text, `{"b":2}`)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"a":1}`, `{"b":2}`} {
		if got, err := c.Read(); err != nil || string(got) != want {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

func FuzzProgramFrames(f *testing.F) {
	f.Add(frame(text, `{"jsonrpc":"2.0"}`))
	f.Add(frame(more, "x") + frame(last, "y") + frame(binary, "z"))
	f.Add(frame(closing, "\x03\xe8bye"))
	f.Add("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, sent string) {
		const most = 1000
		conn, c := upgraded(t, most)
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.WriteString(conn, sent)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			_, _ = io.Copy(io.Discard, conn)
		}()
		for {
			message, err := c.Read()
			if err != nil {
				break
			}
			if len(message) > most {
				t.Errorf("a message of %d bytes", len(message))
			}
		}
		c.Abort()
		select {
		case <-drained:
		case <-time.After(time.Minute):
			t.Error("the connection is still open")
		}
	})
}
