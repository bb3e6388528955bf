package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
)

// answerWithin limits one request. It exceeds the longest wait for a call in any test.
const answerWithin = 90 * time.Second

// door is a running front door, in the view of its callers.
type door struct {
	*process
	url  string
	http *http.Client
	only *http.Client // for tests that observe its connections
}

// open creates the client of the door and waits until the door accepts calls.
func (d *door) open(t testing.TB, url string) {
	t.Helper()
	d.url, d.http = url, client(t)
	d.eventually(t, startWithin, "being ready", func() error {
		a, err := d.try("GET", "/readyz", "")
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("/readyz answers %d: %s", a.status, a.body)
		}
		return err
	})
}

// client returns an HTTP client that uses no proxy and is closed with the test.
func client(t testing.TB) *http.Client { return proc.Client(t, answerWithin) }

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// try sends a request; headers are "Name: value".
func (d *door) try(method, path, body string, headers ...string) (answer, error) {
	return send(d.http, d.url, method, path, body, headers...)
}

func send(c *http.Client, base, method, path, body string, headers ...string) (answer, error) {
	return sendTraced(nil, c, base, method, path, body, headers...)
}

// sendTraced is send with a trace of the connection.
func sendTraced(trace *httptrace.ClientTrace, c *http.Client, base, method, path, body string, headers ...string) (answer, error) {
	ctx := context.Background()
	if trace != nil {
		ctx = httptrace.WithClientTrace(ctx, trace)
	}
	status, header, text, err := proc.Send(ctx, c, method, base+path, body, headers...)
	return answer{status: status, header: header, body: text}, err
}

// ask sends a request that must get a response, with any status.
func (d *door) ask(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	a, err := d.try(method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// get returns the body of a GET that must succeed.
func (d *door) get(t testing.TB, path string) []byte {
	t.Helper()
	a := d.ask(t, "GET", path, "")
	if a.status != http.StatusOK {
		t.Fatalf("GET %s answered %d: %s", path, a.status, a.body)
	}
	return a.body
}

// read decodes the answer of a GET that must succeed.
func (d *door) read(t testing.TB, path string, v any) {
	t.Helper()
	decode(t, d.get(t, path), v)
}

func decode(t testing.TB, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("decoding %.500s: %v", text, err)
	}
}

// toolPath is the path of a tool call.
func toolPath(server, tool string) string {
	return "/servers/" + url.PathEscape(server) + "/tools/" + url.PathEscape(tool)
}

// tryCall calls a tool.
func (d *door) tryCall(server, tool, arguments string, headers ...string) (answer, error) {
	return d.try("POST", toolPath(server, tool), arguments, headers...)
}

// call calls a tool, which must return a result, and returns the bytes of the result.
func (d *door) call(t testing.TB, server, tool, arguments string) []byte {
	t.Helper()
	a, err := d.tryCall(server, tool, arguments)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d: %.2000s", a.status, a.body)
	}
	if err != nil {
		t.Fatalf("calling %s of %s: %v", tool, server, err)
	}
	return a.body
}

// text returns the text of the first block of a result.
func text(t testing.TB, result []byte) string {
	t.Helper()
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	decode(t, result, &r)
	if len(r.Content) == 0 || r.Content[0].Type != "text" {
		t.Fatalf("the result has no text: %.500s", result)
	}
	return r.Content[0].Text
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Error     string `json:"error"`
	CallID    string `json:"call_id"`
	Retryable bool   `json:"retryable"`
	Errors    []struct {
		Pointer *string `json:"pointer"`
		Message string  `json:"message"`
	} `json:"errors"`
	RPC *struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"rpc"`
}

// problem checks that the response is a valid problem document with the status and
// kind, and returns it.
func (a answer) problem(t testing.TB, status int, kind string) problem {
	t.Helper()
	if got := a.header.Get("Content-Type"); a.status != status || got != "application/problem+json" {
		t.Fatalf("the answer is %d %s, want %d application/problem+json: %.2000s", a.status, got, status, a.body)
	}
	var p problem
	decode(t, a.body, &p)
	if p.Type != "/problems/"+kind || p.Status != status {
		t.Errorf("the problem is %s with status %d, want /problems/%s with %d: %s", p.Type, p.Status, kind, status, a.body)
	}
	if p.Title == "" || p.Detail == "" || p.Error != p.Detail {
		t.Errorf("title, detail and error are to be sentences, the last two the same: %s", a.body)
	}
	after := a.header.Get("Retry-After")
	if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && after == "" {
		t.Errorf("a %d says when to come back: there is no Retry-After", status)
	}
	return p
}
