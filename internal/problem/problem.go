// Package problem writes an error as the RFC 9457 document that every HTTP
// interface of Callyard answers with: a stable type, a sentence, and nothing of
// what the caller sent.
//
// It promises that one kind of error has one status, the same as at the front
// door, and that the cause of an error never reaches a caller. It refuses to
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

// Kinds of failure that exist only in HTTP.
const (
	KindMethod    schema.Kind = "method-not-allowed"     // the path exists, the method does not
	KindMediaType schema.Kind = "unsupported-media-type" // the body is declared as something else than is read
)

// MediaType is what the documents are sent as.
const MediaType = "application/problem+json"

// Document is what is sent.
type Document struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Error     string         `json:"error"`
	CallID    string         `json:"call_id,omitempty"`
	Retryable bool           `json:"retryable"`
	Errors    []schema.Fault `json:"errors,omitempty"`
}

// Of returns the document of an error.
func Of(err error) Document {
	e := schema.AsError(err)
	k := e.Kind
	status, title := row(k)
	if status == http.StatusInternalServerError {
		k = schema.KindInternal
	}
	return Document{
		Type: "/problems/" + string(k), Title: title, Status: status, Detail: e.Detail, Error: e.Detail,
		CallID: e.CallID, Retryable: e.Retryable, Errors: e.Faults,
	}
}

// Status returns the HTTP status of a kind of error; one that is not known is a
// fault of ours.
func Status(k schema.Kind) int {
	status, _ := row(k)
	return status
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

// row is the one place where a kind meets a status outside the front door.
func row(k schema.Kind) (status int, title string) {
	switch k {
	case schema.KindInvalidRequest:
		return http.StatusBadRequest, "The request cannot be read"
	case schema.KindUnauthenticated:
		return http.StatusUnauthorized, "No valid credential"
	case schema.KindForbidden:
		return http.StatusForbidden, "Not allowed"
	case schema.KindDisabled:
		return http.StatusForbidden, "The tool is switched off"
	case schema.KindNotFound:
		return http.StatusNotFound, "Not found"
	case KindMethod:
		return http.StatusMethodNotAllowed, "The method is not allowed"
	case schema.KindConflict:
		return http.StatusConflict, "Conflict"
	case schema.KindInputRequired:
		return http.StatusConflict, "The tool asks for input"
	case schema.KindExpired:
		return http.StatusGone, "Its time is over"
	case schema.KindTooLarge:
		return http.StatusRequestEntityTooLarge, "The request is too large"
	case KindMediaType:
		return http.StatusUnsupportedMediaType, "Unsupported media type"
	case schema.KindInvalidArguments:
		return http.StatusUnprocessableEntity, "The arguments do not fit the tool's schema"
	case schema.KindKeyReused:
		return http.StatusUnprocessableEntity, "The Idempotency-Key was used before"
	case schema.KindQuota:
		return http.StatusTooManyRequests, "Your quota is used up"
	case schema.KindCanceled:
		return 499, "Canceled" // what a caller that went away would have read
	case schema.KindServerFailed, schema.KindProtocol, schema.KindResultTooLarge:
		return http.StatusBadGateway, "The MCP server failed"
	case schema.KindUnavailable:
		return http.StatusServiceUnavailable, "No capacity at the moment"
	case schema.KindOutcomeUnknown:
		return http.StatusGatewayTimeout, "The outcome is not known"
	}
	return http.StatusInternalServerError, "A fault of Callyard"
}
