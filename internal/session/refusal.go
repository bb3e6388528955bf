package session

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// answers records why a remote server's last answer makes the handshake fail. The SDK's error has
// neither the status code nor the fix, and usually names the wrong request.
type answers struct {
	base  http.RoundTripper
	fault atomic.Pointer[string] // nil if the last answer can be an MCP answer
}

// recordAnswers returns a copy of client whose answers are recorded.
func recordAnswers(client *http.Client) (*http.Client, *answers) {
	a := &answers{base: client.Transport}
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
	return resp, nil
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
