package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
)

// maxAnswer limits how much of a response body is read and dropped so that the connection can be
// reused, in bytes.
const maxAnswer = 64 << 10

// answer is the outcome of one request.
type answer struct {
	status     int
	retryAfter time.Duration
	// reason is set if there was no response. It is a sentence that names no address. final means
	// that another attempt would fail in the same way.
	reason string
	final  bool
}

// request is one attempt.
type request struct {
	id, url string
	body    []byte
}

// poster makes attempts over HTTP. Methods are safe for concurrent use.
type poster struct {
	client  *http.Client
	rules   Rules
	signer  signer
	timeout time.Duration
	now     func() time.Time
}

// post makes one attempt and returns within the timeout, or when ctx ends.
func (p *poster) post(ctx context.Context, r request) answer {
	// The rules may have changed after the delivery was accepted.
	if _, fault := parseURL(r.url, p.rules); fault != nil {
		return answer{reason: fault.Detail, final: true}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return answer{reason: "The URL cannot be requested.", final: true}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Callyard-Webhook/1")
	p.signer.sign(req.Header, r.id, p.now(), r.body)
	resp, err := p.client.Do(req)
	if err != nil {
		return p.fault(err)
	}
	defer resp.Body.Close()
	// Only the status counts. A body that is too long or does not end costs only the connection.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	return answer{status: resp.StatusCode, retryAfter: backoff.RetryAfter(resp.Header.Get("Retry-After"), p.now(), maxRetryAfter)}
}

// fault returns the reason why there was no response. The errors of net/http contain the URL and
// the resolved addresses, so they are not repeated.
func (p *poster) fault(err error) answer {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		timeout     interface{ Timeout() bool }
	)
	switch {
	case errors.Is(err, errInner):
		return answer{reason: "The receiver's host resolves to an address in the internal network: the operator has to allow the host.", final: true}
	case errors.As(err, &dns) && dns.IsNotFound:
		return answer{reason: "The receiver's host has no address."}
	case errors.As(err, &dns):
		return answer{reason: "The receiver's host could not be resolved."}
	case errors.As(err, &certificate):
		return answer{reason: "The receiver's certificate cannot be trusted."}
	case errors.As(err, &record):
		return answer{reason: "The receiver does not use TLS at this address."}
	case errors.Is(err, syscall.ECONNREFUSED):
		return answer{reason: "The receiver refused the connection."}
	case errors.Is(err, context.DeadlineExceeded):
		return answer{reason: "The receiver did not answer within " + seconds(p.timeout) + " s."}
	case errors.As(err, &timeout) && timeout.Timeout():
		return answer{reason: "The connection to the receiver could not be established within " + seconds(min(p.timeout, dialTimeout)) + " s."}
	}
	return answer{reason: "The connection to the receiver failed before it answered."}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', 4, 64) }
