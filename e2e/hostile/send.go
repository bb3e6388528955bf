package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// lane is one connection after the other to one address.
type lane struct {
	addr    string
	patient time.Duration // how long an answer may take
	conn    net.Conn
	from    *bufio.Reader
}

// answer is the answer to one request.
type answer struct {
	// status is 0 where the connection was closed without an answer, and -1 where
	// nothing came within the patience.
	status int
	header http.Header
	body   []byte // of a refusal; at most maxRead bytes
	// headOnly says that there is no body by the nature of the request.
	headOnly bool
}

const (
	// maxRead is what is read of an answer.
	maxRead = 1 << 20
	// dialTimeout bounds the making of a connection.
	dialTimeout = 30 * time.Second
)

// errGarbled is an answer that is no HTTP.
var errGarbled = errors.New("the answer is no HTTP")

func (l *lane) open(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	conn, err := dial(ctx, l.addr)
	if err != nil {
		return err
	}
	l.conn, l.from = conn, bufio.NewReader(conn)
	return nil
}

// dial connects to an address of loopback.
func dial(ctx context.Context, addr string) (*net.TCPConn, error) {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is not an address of loopback, and only such are attacked", addr)
	}
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return conn.(*net.TCPConn), nil
}

func (l *lane) close() {
	if l.conn == nil {
		return
	}
	if tcp, ok := l.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // thousands of connections would wait for their last packet
	}
	_ = l.conn.Close() // it may be closed by the other side
	l.conn, l.from = nil, nil
}

// send sends a request and reads its answer. The connection is kept for the next
// request where both sides know where this one ends. An error is of the network,
// or errGarbled.
func (l *lane) send(ctx context.Context, r Request) (answer, error) {
	reused := l.conn != nil
	for {
		if err := l.open(ctx); err != nil {
			return answer{}, err
		}
		a, err := l.exchange(r)
		// A kept connection may have been closed before the request came.
		if reused && err == nil && a.status == 0 {
			reused = false
			l.close()
			continue
		}
		return a, err
	}
}

func (l *lane) exchange(r Request) (a answer, err error) {
	keep := false
	var resp *http.Response
	defer func() {
		if !keep {
			l.close()
		}
		if resp != nil { // last: closing a body reads it to its end, which may never come
			_ = resp.Body.Close()
		}
	}()
	_ = l.conn.SetDeadline(time.Now().Add(l.patient))
	_, err = l.conn.Write(r.Wire)
	// An answer may stand there although the rest of the request was not wanted.
	wrote := err == nil
	if wrote && !r.Framed {
		_ = l.conn.(*net.TCPConn).CloseWrite()
	}
	resp, err = l.final(r.Method)
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		return answer{status: -1}, nil
	case errors.Is(err, errGarbled):
		return a, err
	case err != nil:
		return a, nil // closed without an answer: status 0 says so
	}
	a.status, a.header, a.headOnly = resp.StatusCode, resp.Header, r.Method == http.MethodHead
	kind := resp.Header.Get("Content-Type")
	if kind == "text/event-stream" || kind == "application/x-ndjson" {
		return a, nil // it may have no end
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRead))
	if errors.As(err, &late) && late.Timeout() {
		return answer{status: -1}, nil
	}
	if a.status >= 400 {
		a.body = body
	}
	keep = err == nil && wrote && r.Framed && !resp.Close && len(body) < maxRead && l.from.Buffered() == 0
	return a, nil
}

// final reads the answer behind interim ones.
func (l *lane) final(method string) (*http.Response, error) {
	for {
		head, err := l.from.Peek(5)
		if err != nil && len(head) == 0 {
			return nil, err
		}
		if !bytes.HasPrefix(head, []byte("HTTP/")) {
			return nil, fmt.Errorf("%w: it begins with %q", errGarbled, head)
		}
		resp, err := http.ReadResponse(l.from, &http.Request{Method: method})
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
}

// judge says what is wrong with an answer; "" when nothing is. jsonrpc says that
// faults may come as JSON-RPC errors.
func (a answer) judge(jsonrpc bool) string {
	for _, internal := range []string{"goroutine ", ".go:", "runtime error", "panic"} {
		if bytes.Contains(a.body, []byte(internal)) {
			return fmt.Sprintf("a %d tells of internals: it has %q", a.status, internal)
		}
	}
	switch a.status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return "" // said by the HTTP server, of a transfer encoding or a version
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
			return fmt.Sprintf("a %d does not say when to come back", a.status)
		}
	case http.StatusBadGateway, http.StatusGatewayTimeout:
	default:
		if a.status >= 500 {
			return fmt.Sprintf("the answer is %d", a.status)
		}
		return ""
	}
	var p struct {
		Status int             `json:"status"`
		Type   string          `json:"type"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		if a.headOnly {
			return ""
		}
		return fmt.Sprintf("a %d without a problem document", a.status)
	}
	if p.Type == "/problems/internal" || p.Status != a.status && (!jsonrpc || p.Error == nil) {
		return fmt.Sprintf("a %d whose document does not fit it: %.300s", a.status, a.body)
	}
	return ""
}

// shown is a request for people: its head, without what is long.
func shown(wire []byte) string {
	text := strconv.QuoteToASCII(string(wire[:min(len(wire), 600)]))
	return strings.ReplaceAll(text, `\r\n`, "⏎")
}
