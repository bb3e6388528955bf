package authserver

import (
	"cmp"
	"net/http"
	"net/url"
	"time"
)

// ReadDocument reads a metadata document.
func ReadDocument(id string, text []byte) (*Client, error) { return readDocument(id, text) }

// NoRedirect rejects redirects, like the HTTP client for documents.
func NoRedirect(*http.Request, []*http.Request) error { return errRedirect }

// AssertionReader returns a function that parses assertions for a server with that issuer and
// returns the claimed client.
func AssertionReader(issuer string) func(url.Values) (string, error) {
	s := &Server{o: Options{Issuer: issuer, Now: time.Now}}
	return func(form url.Values) (string, error) {
		a, err := s.readAssertion(form)
		if a == nil {
			return "", cmp.Or(err, error(errAssertion))
		}
		return a.client, err
	}
}
