package launch

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// An Authorizer gives the requests for one remote server their credential. It is safe for
// concurrent use. Its errors hold no secrets; a *schema.Error among them is what the call
// ends with.
type Authorizer interface {
	// Authorize sets the headers of the credential on h, which belong to a request for the
	// server's own origin.
	Authorize(ctx context.Context, h http.Header) error
	// Refused is told of a request that was answered with 401 or 403. It reports whether
	// another credential is there now, so that the request is worth sending again. It must
	// leave the body of the answer alone.
	Refused(ctx context.Context, answer Refusal) (again bool, err error)
}

// ErrRefused is in the error of an [Authorizer] that has no other credential for the server: the
// server is there, and answers others.
var ErrRefused = errors.New("the server refused the caller's credential")

// A Refusal is an answer with the status 401 or 403.
type Refusal struct {
	Status int
	Header http.Header // of the answer
	Sent   http.Header // of the request
	URL    string      // of the request
}

// drained bounds what is read of a refusal, so that its connection can be used again.
const drained = 64 << 10

// authorized sends a request with its credential, and once more for each of the two
// statuses when the authorizer has another credential after the refusal. The header of req
// is changed.
func authorized(auth Authorizer, req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	renewed := make(map[int]bool, 2) // by status
	for {
		if err := auth.Authorize(req.Context(), req.Header); err != nil {
			if req.Body != nil {
				req.Body.Close() // a RoundTripper does so in any case
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
