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

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// problem is what clients read of a problem document.
type problem struct {
	Type      string `json:"type"`
	Detail    string `json:"detail"`
	CallID    string `json:"call_id"`
	Retryable bool   `json:"retryable"`
}

func (a answer) problem() (p problem) {
	_ = json.Unmarshal(a.body, &p) // what is none has no type
	return p
}

// Error shows an answer that is not what was asked for.
func (a answer) Error() string { return fmt.Sprintf("%d %.600s", a.status, a.body) }

func client(t testing.TB) *http.Client { return proc.Client(t, 2*time.Minute) }

func send(c *http.Client, method, url, body string, headers ...string) (answer, error) {
	status, header, text, err := proc.Send(context.Background(), c, method, url, body, headers...)
	return answer{status, header, text}, err
}

// honest is a client as a careful caller writes one. It sends a request again
//
//   - after 429 and 503, which say that nothing was started, when the time that
//     Retry-After names has ended: any request;
//   - when no connection to the process came about, so that nothing was sent: any
//     request, to the next process that is ready;
//   - when the connection broke while the answer was awaited, or the answer is a
//     problem that says "retryable": only a request that may be repeated (a read, a
//     tool that is safe to repeat, one with an idempotency key, a decision).
//
// It gives up after patience. Everything else is an answer.
type honest struct {
	b    *proc.Balancer
	http *http.Client
	// again counts what was sent again, by reason.
	refused, broken, repeated atomic.Int64
}

// patience is how long a caller retries one request: more than any part of
// the fabric is away.
const patience = 90 * time.Second

// errNobody says that no process of the role was ready for as long as a client tries.
var errNobody = errors.New("no process is ready")

// do sends a request until it is answered.
func (h *honest) do(repeat bool, method, path, body string, headers ...string) (answer, error) {
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

// notSent says that the request did not leave: no connection came about.
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

// rest is the pause that a client makes before it tries again.
func rest(d time.Duration) { <-time.After(d) }
