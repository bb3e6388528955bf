package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dialTimeout limits the time to establish one connection.
const dialTimeout = 10 * time.Second

// Endpoint is a [Target] that is reached over HTTP: the arguments object is the body of
// a POST, and the response with status 200 holds the result of the tool.
type Endpoint struct {
	name    string
	url     *url.URL
	headers map[string]string
	fixed   []byte    // the arguments; if nil, a message of the size is sent
	around  [2]string // the text before and after the arguments in the body
	accept  string
	pids    map[string]int
}

// NewEndpoint returns the target at an http or https URL. Headers are sent with
// every call; their values are never shown. A fragment "#pid=123" of the
// URL names the process whose CPU time is measured.
func NewEndpoint(name, address string, headers map[string]string) (*Endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the URL of %q is not an http or https address such as http://127.0.0.1:8080/servers/everything/tools/echo", name)
	}
	for key, value := range headers {
		if key == "" || strings.ContainsAny(key, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("a header for %q cannot be sent: its name or value holds characters that headers may not have", name)
		}
	}
	e := &Endpoint{name: name, url: u, headers: headers, accept: "application/json"}
	if tag, ok := strings.CutPrefix(u.Fragment, "pid="); ok {
		pid, err := strconv.Atoi(tag)
		if err != nil || pid < 1 {
			return nil, fmt.Errorf("the process in the URL of %q is not a number; write #pid=123", name)
		}
		e.pids = map[string]int{name: pid}
	}
	return e, nil
}

// Name returns the name given.
func (e *Endpoint) Name() string { return e.name }

// PIDs returns the process in the URL's fragment, if any.
func (e *Endpoint) PIDs() map[string]int { return e.pids }

// Close does nothing, because the bench did not start the endpoint.
func (e *Endpoint) Close() error { return nil }

// Dial opens the connection of one lane.
func (e *Endpoint) Dial(ctx context.Context, n, size int) (Lane, error) {
	l := &endpointLane{ctx: ctx, at: e}
	if e.fixed != nil {
		l.request = append([]byte(e.head(len(e.fixed))), e.fixed...)
	} else {
		if err := checkSize(size); err != nil {
			return nil, err
		}
		body := len(e.around[0]) + len(argumentsHead) + size + len(argumentsTail) + len(e.around[1])
		l.request, l.message = echoArguments(e.head(body)+e.around[0], e.around[1], n, size)
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// head returns the head of a request whose body has length bytes.
func (e *Endpoint) head(length int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", e.url.RequestURI(), e.url.Host)
	b.WriteString("User-Agent: callyard-bench\r\nAccept: " + e.accept + "\r\nContent-Type: application/json\r\n")
	for _, key := range slices.Sorted(maps.Keys(e.headers)) {
		fmt.Fprintf(&b, "%s: %s\r\n", key, e.headers[key])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", length)
	return b.String()
}

func (e *Endpoint) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host := e.url.Host
	if e.url.Port() == "" {
		host = net.JoinHostPort(e.url.Hostname(), e.url.Scheme)
	}
	if e.url.Scheme == "https" {
		d := tls.Dialer{Config: &tls.Config{ServerName: e.url.Hostname(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}}
		return d.DialContext(ctx, "tcp", host)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", host)
}

// endpointLane is a closed loop over one keep-alive connection. The request is
// encoded once and stamped for each call.
type endpointLane struct {
	ctx     context.Context // the lifetime of the lane, see Target.Dial
	at      *Endpoint
	request []byte
	message *message // inside request; nil for fixed arguments

	conn   net.Conn // if nil, the next call opens it
	answer *answerReader
	unhook func() bool
}

func (l *endpointLane) open() error {
	conn, err := l.at.connect(l.ctx)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", l.at.name, withoutAddress(err))
	}
	l.conn = conn
	if l.answer == nil {
		l.answer = newAnswerReader(conn)
	} else {
		l.answer.source, l.answer.from, l.answer.to = conn, 0, 0
	}
	// One hook per connection, so that a call costs nothing.
	l.unhook = context.AfterFunc(l.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return nil
}

func (l *endpointLane) Call() error {
	if l.message != nil {
		l.message.next()
	}
	a, err := l.exchange()
	switch {
	case err != nil:
		return err
	case a.status != 200:
		return refusal(a)
	case l.message != nil:
		return l.message.in(a.body)
	}
	return toolError(a.body)
}

// exchange sends the request and reads its response, which is valid until the next one.
func (l *endpointLane) exchange() (answer, error) {
	if l.conn == nil {
		if err := l.open(); err != nil {
			return answer{}, err
		}
	}
	if _, err := l.conn.Write(l.request); err != nil {
		return answer{}, l.broken("sending a call", err)
	}
	a, err := l.answer.next()
	if err != nil {
		return answer{}, l.broken("reading an answer", err)
	}
	if !a.keep {
		_ = l.Close()
	}
	return a, nil
}

// broken drops the connection and adds the operation to the error.
func (l *endpointLane) broken(doing string, err error) error {
	_ = l.Close()
	if l.ctx.Err() != nil {
		err = context.Cause(l.ctx)
	}
	return fmt.Errorf("%s: %w", doing, withoutAddress(err))
}

func (l *endpointLane) Close() error {
	if l.conn == nil {
		return nil
	}
	l.unhook()
	err := l.conn.Close()
	l.conn = nil
	return err
}

// withoutAddress removes the local port from network errors, so that equal
// failures have the same text.
func withoutAddress(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// refusal returns an error for a status other than 200. It quotes only the detail of a
// problem document, which contains no arguments.
func refusal(a answer) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	switch {
	case a.status == 202:
		return errors.New("status 202: the call is held or runs later; load a tool that runs at once")
	case json.Unmarshal(a.body, &problem) == nil && problem.Detail != "":
		return fmt.Errorf("status %d: %s", a.status, problem.Detail)
	}
	return fmt.Errorf("status %d", a.status)
}

var errTool = errors.New("the tool answered with isError")

// toolError returns an error if the result of an arbitrary tool is a tool error.
func toolError(body []byte) error {
	var result struct {
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return errors.New("the answer is not a JSON object")
	}
	if result.IsError {
		return errTool
	}
	return nil
}
