// Package problem writes an error as the RFC 9457 document that every HTTP
// interface of Callyard answers with: a stable type, a sentence, and nothing of
// what the caller sent.
//
// It promises that one kind of error has one status, here and at the front
// door ([Rows]), and that the cause of an error never reaches a caller. It refuses to
// log, and to decide what an error is.
package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// MediaType is what the documents are sent as.
const MediaType = "application/problem+json"

// Document is what is sent.
type Document struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Error     string `json:"error"`
	CallID    string `json:"call_id,omitempty"`
	Retryable bool   `json:"retryable"`
	// CancelRequested is true for a call that was asked to stop while it ran.
	CancelRequested bool           `json:"cancel_requested,omitempty"`
	Errors          []schema.Fault `json:"errors,omitempty"`
}

// Of returns the document of an error.
func Of(err error) Document {
	e := schema.AsError(err)
	r := row(e.Kind)
	return Document{
		Type: "/problems/" + string(r.Kind), Title: r.Title, Status: r.Status, Detail: e.Detail, Error: e.Detail,
		CallID: e.CallID, Retryable: e.Retryable, CancelRequested: e.CancelRequested, Errors: e.Faults,
	}
}

// Status returns the HTTP status of a kind of error; one that is not known is a
// fault of ours.
func Status(k schema.Kind) int {
	return row(k).Status
}

// Write answers a request with the document of err. Nothing may have been
// written before.
func Write(w http.ResponseWriter, err error) {
	d := Of(err)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if encErr := enc.Encode(d); encErr != nil {
		panic("problem: encoding a document: " + encErr.Error()) // texts and numbers always encode
	}
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Cache-Control", "no-store")
	if after := retryAfter(d.Status, schema.AsError(err).RetryAfter); after != "" {
		h.Set("Retry-After", after)
	}
	if d.CallID != "" {
		h.Set("Callyard-Call-Id", d.CallID)
	}
	if d.Status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", `Bearer realm="callyard"`)
	}
	w.WriteHeader(d.Status)
	_, _ = w.Write(b.Bytes()) // the caller went away; nobody is left to be told
}

// retryAfter is in whole seconds, at least one, and always there with 429 and 503.
func retryAfter(status int, after time.Duration) string {
	if after <= 0 && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return ""
	}
	return strconv.FormatInt(max(int64((after+time.Second-1)/time.Second), 1), 10)
}
