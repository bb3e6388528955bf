package launch

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// An Authorizer adds a credential to the requests for one remote server. It is safe for concurrent
// use. Its errors hold no secrets. If an error wraps a *schema.Error, the call ends with that one.
type Authorizer interface {
	// Authorize sets the credential headers on h, the headers of a request to the server's own
	// origin.
	Authorize(ctx context.Context, h http.Header) error
	// Refused handles a response with status 401 or 403. It reports whether another credential is
	// available now, so that the request is worth repeating. It must not read the response body.
	Refused(ctx context.Context, answer Refusal) (again bool, err error)
}

// ErrRefused is in the error of an [Authorizer] that has no other credential for the server. The
// server itself is up and serves other callers.
var ErrRefused = errors.New("the server refused the caller's credential")

// A Refusal is a response with status 401 or 403.
type Refusal struct {
	Status int
	Header http.Header // of the response
	Sent   http.Header // of the request
	URL    string      // of the request
}

// drained limits how much of a refusal is read so that its connection can be reused, in bytes.
const drained = 64 << 10

// authorized sends a request with its credential. After a 401 or 403 it sends it once more for each
// of the two statuses if the authorizer has another credential. It changes the header of req.
func authorized(auth Authorizer, req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	renewed := make(map[int]bool, 2) // by status
	for {
		if err := auth.Authorize(req.Context(), req.Header); err != nil {
			if req.Body != nil {
				req.Body.Close() // as every RoundTripper must
			}
			return nil, err
		}
		resp, err := send(req)
		if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		if renewed[resp.StatusCode] || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return resp, nil
		}
		renewed[resp.StatusCode] = true
		again, err := auth.Refused(req.Context(), Refusal{Status: resp.StatusCode, Header: resp.Header, Sent: req.Header, URL: req.URL.String()})
		if err == nil && !again {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, drained))
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		next := *req
		next.Header = req.Header.Clone()
		if req.GetBody != nil {
			if next.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		req = &next
	}
}
