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

// lane opens one connection after the other to one address.
type lane struct {
	addr    string
	patient time.Duration // time limit of a response
	conn    net.Conn
	from    *bufio.Reader
}

// answer is the response to one request.
type answer struct {
	// status is 0 if the connection was closed without a response, and -1 if
	// there was none within the patience.
	status int
	header http.Header
	body   []byte // of an error response; at most maxRead bytes
	// headOnly reports that the request allows no response body.
	headOnly bool
}

const (
	// maxRead limits the part of a response that is read.
	maxRead = 1 << 20
	// dialTimeout limits the time to establish a connection.
	dialTimeout = 30 * time.Second
)

// errGarbled is the error for a response that is not HTTP.
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

// dial connects to a loopback address.
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
		_ = tcp.SetLinger(0) // otherwise thousands of connections would remain in TIME_WAIT
	}
	_ = l.conn.Close() // the peer may have closed it
	l.conn, l.from = nil, nil
}

// send sends a request and reads its response. The connection is kept for the next
// request if the end of this one is well-defined. An error is a network error
// or errGarbled.
func (l *lane) send(ctx context.Context, r Request) (answer, error) {
	reused := l.conn != nil
	for {
		if err := l.open(ctx); err != nil {
			return answer{}, err
		}
		a, err := l.exchange(r)
		// The peer may have closed a kept connection before it received the request.
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
		if resp != nil { // last: closing a body reads it to its end, which may never arrive
			_ = resp.Body.Close()
		}
	}()
	_ = l.conn.SetDeadline(time.Now().Add(l.patient))
	_, err = l.conn.Write(r.Wire)
	// There may be a response although the rest of the request was refused.
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
		return a, nil // closed without a response, which is status 0
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

// final reads the final response after interim ones.
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

// judge returns the violation of a response, or "". jsonrpc allows JSON-RPC errors.
func (a answer) judge(jsonrpc bool) string {
	for _, internal := range []string{"goroutine ", ".go:", "runtime error", "panic"} {
		if bytes.Contains(a.body, []byte(internal)) {
			return fmt.Sprintf("a %d tells of internals: it has %q", a.status, internal)
		}
	}
	switch a.status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return "" // sent by the HTTP server itself, about a transfer encoding or a version
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

// shown returns the head of a request for people, without long parts.
func shown(wire []byte) string {
	text := strconv.QuoteToASCII(string(wire[:min(len(wire), 600)]))
	return strings.ReplaceAll(text, `\r\n`, "⏎")
}
