package rolling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
)

// answer is an HTTP response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// problem holds the fields of a problem document that clients use.
type problem struct {
	Type      string `json:"type"`
	Detail    string `json:"detail"`
	CallID    string `json:"call_id"`
	Retryable bool   `json:"retryable"`
}

func (a answer) problem() (p problem) {
	_ = json.Unmarshal(a.body, &p) // anything else has no type
	return p
}

// Error shows an unexpected response.
func (a answer) Error() string { return fmt.Sprintf("%d %.600s", a.status, a.body) }

func client(t testing.TB) *http.Client { return proc.Client(t, 2*time.Minute) }

func send(c *http.Client, method, url, body string, headers ...string) (answer, error) {
	status, header, text, err := proc.Send(context.Background(), c, method, url, body, headers...)
	return answer{status, header, text}, err
}

// retryingClient is a client that behaves like a careful caller. It retries a request
//
//   - after 429 and 503, which mean that nothing was started, when the time of
//     Retry-After has passed: any request;
//   - if no connection to the process was established, so that nothing was sent: any
//     request, to the next process that is ready;
//   - if the connection broke before the response, or the response is a
//     problem with "retryable": only a request that is safe to repeat (a read, a
//     tool that is safe to repeat, one with an idempotency key, a decision).
//
// It gives up after patience. It returns every other response.
type retryingClient struct {
	b    *proc.Balancer
	http *http.Client
	// counts of retries, by reason
	refused, broken, repeated atomic.Int64
}

// patience limits the time that a caller retries one request. It exceeds the downtime of
// every part of the fabric: elections of NATS take tens of seconds if its nodes share two cores
// with other programs.
const patience = 4 * time.Minute

// errNobody reports that no process of the role was ready during the patience of a client.
var errNobody = errors.New("no process is ready")

// do sends a request until it gets a response.
func (h *retryingClient) do(repeat bool, method, path, body string, headers ...string) (answer, error) {
	deadline := time.Now().Add(patience)
	var last error
	for {
		pause := proc.LookEvery
		if url := h.b.Pick(); url == "" {
			last = errors.Join(errNobody, last)
		} else {
			a, err := send(h.http, method, url+path, body, headers...)
			switch {
			case err == nil && (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests):
				h.refused.Add(1)
				last, pause = a, retryAfter(a)
			case err == nil && repeat && a.status >= 400 && a.problem().Retryable:
				h.repeated.Add(1)
				last = a
			case err == nil:
				return a, nil
			case repeat || notSent(err):
				h.broken.Add(1)
				last = err
			default:
				return answer{}, err
			}
		}
		if time.Until(deadline) < pause {
			return answer{}, fmt.Errorf("given up: %w", last)
		}
		rest(pause)
	}
}

// notSent reports that the request was not sent because no connection was established.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func retryAfter(a answer) time.Duration {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil {
		return proc.LookEvery
	}
	return time.Duration(seconds) * time.Second
}

// rest pauses before a retry.
func rest(d time.Duration) { <-time.After(d) }
