package ui

import (
	"crypto/hmac"
	"net/http"
	"strings"
)

// Done returns the value of the query parameter done, with which a page confirms an act of its
// visitor. It has a proof of the act, because others can make links too. proof returns an
// unforgeable token of a text for the visitor and the page.
func Done(act string, proof func(text string) string) string { return act + "." + proof("done "+act) }

// DoneOf returns the act that the page of this request confirms, or "" if the visitor has not done it.
func DoneOf(r *http.Request, proof func(text string) string) string {
	done := r.URL.Query().Get("done")
	act, _, _ := strings.Cut(done, ".")
	if !hmac.Equal([]byte(done), []byte(Done(act, proof))) {
		return ""
	}
	return act
}
