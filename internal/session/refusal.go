package session

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/callyard/callyard/internal/kit/lines"
)

// answers records why a remote server's last answer makes the handshake fail. The SDK's error has
// neither the status code nor the fix, and usually names the wrong request. It also limits the size
// of answers that are not event streams, which the SDK reads without a limit.
type answers struct {
	base  http.RoundTripper
	max   int
	fault atomic.Pointer[string] // nil if the last answer can be an MCP answer
}

// recordAnswers returns a copy of client whose answers are recorded, and have at most max bytes.
func recordAnswers(client *http.Client, max int) (*http.Client, *answers) {
	a := &answers{base: client.Transport, max: max}
	if a.base == nil {
		a.base = http.DefaultTransport
	}
	with := *client
	with.Transport = a
	return &with, a
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.base.RoundTrip(req)
	if err != nil {
		a.fault.Store(nil)
		return resp, err
	}
	a.fault.Store(refusal(resp))
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body = &limitedBody{resp.Body, a.max}
	}
	return resp, nil
}

// limitedBody is a body that fails after a number of bytes.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read returns [lines.ErrTooLong] if the body is larger than allowed.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, lines.ErrTooLong
	}
	return n, err
}

// refusal returns the reason why an answer cannot be an MCP answer.
func refusal(resp *http.Response) *string {
	fault := ""
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		fault = fmt.Sprintf("it answered with HTTP %d %s; check the credentials in its entry", code, http.StatusText(code))
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		fault = fmt.Sprintf("it answered with HTTP %d %s; check its address", code, http.StatusText(code))
	case code >= http.StatusInternalServerError:
		fault = fmt.Sprintf("it answered with HTTP %d %s", code, http.StatusText(code))
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		fault = "it answered with a web page, not with MCP; check its address"
	default:
		return nil
	}
	return &fault
}
