package authserver

import "net/http"

// ReadDocument reads a metadata document.
func ReadDocument(id string, text []byte) (*Client, error) { return readDocument(id, text) }

// NoRedirect is how a client of documents follows redirects.
func NoRedirect(*http.Request, []*http.Request) error { return errRedirect }
