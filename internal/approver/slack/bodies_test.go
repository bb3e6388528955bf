package slack_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver/slack"
)

// Anybody who can reach the endpoint can send bodies whose last byte never arrives.
func TestBodiesWithoutSignatureShareABoundedMemory(t *testing.T) {
	r := open(t, nil)
	const most = 1 << 20
	status := func(body io.Reader, length int64) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.http.URL+slack.InteractionsPath, body)
		if err != nil {
			t.Error(err)
			return 0
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := r.client.Do(req)
		if err != nil {
			return 0 // the answer arrived while the body was being sent, and the connection was closed
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	const all = 40
	answers := make(chan int, all)
	for range all {
		from, into := io.Pipe()
		defer into.Close()
		go func() { answers <- status(from, most) }()
		go func() { _, _ = into.Write(bytes.Repeat([]byte("x"), most-1)) }()
	}
	refused := 0
	for range all / 2 {
		if got := <-answers; got == http.StatusServiceUnavailable || got == 0 {
			refused++
		}
	}
	if got := status(strings.NewReader("payload=x"), -1); got != http.StatusUnauthorized {
		t.Errorf("a small request next to them: %d", got)
	}
	if refused < all/2 {
		t.Errorf("only %d of %d were refused while others were held back", refused, all)
	}
}
