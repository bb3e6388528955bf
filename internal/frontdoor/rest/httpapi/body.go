package httpapi

import (
	"errors"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// ReadBody reads the whole body, of at most limit bytes. A missing body is not an error, but a
// declared media type other than JSON is.
func (x *Exchange) ReadBody(r *http.Request, limit int) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	body, within, err := x.shared.bodies.ReadRequest(&x.reservation, x.ResponseWriter, r, limit)
	if err == nil {
		return body, nil
	}
	switch {
	case errors.Is(err, bodies.ErrTooLong):
		return nil, ErrBodyTooLarge(limit)
	case errors.Is(err, bodies.ErrFull):
		x.Set("Connection", "close")
		return nil, ErrBodiesFull()
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.Set("Connection", "close")
		return nil, schema.Errorf(problem.KindBodyTimeout, "The body did not arrive within %s.", within)
	}
	x.Set("Connection", "close")
	return nil, schema.Errorf(schema.KindInvalidRequest, "The body could not be read completely: it is shorter than announced, or the connection was closed.")
}

// Memory budgets of all bodies that are being read or processed: for bodies of up to 64 KiB, and
// for the rest of larger ones.
const (
	smallBodies = 32 << 20
	largeBodies = 96 << 20
)

// NewBudget returns the memory budget for the bodies of all requests.
func NewBudget() *bodies.Budget { return bodies.New(smallBodies, largeBodies) }

// ErrBodiesFull returns the error for a body that does not fit in the memory budget at the moment.
func ErrBodiesFull() error {
	return schema.Errorf(schema.KindUnavailable, "The front door reached its memory limit for large bodies; the request was not processed. Send it again in a moment.").RetryableAfter(time.Second)
}

// ErrBodyTooLarge returns the error for a body, or a line of one, over its limit.
func ErrBodyTooLarge(limit int) error {
	return schema.Errorf(schema.KindTooLarge, "The body exceeds the limit of %d bytes; send less, or ask the operator to raise the limit.", limit)
}

// checkMediaType accepts JSON and bodies without a media type.
func checkMediaType(h http.Header) error {
	values := h["Content-Type"]
	if len(values) == 0 || len(values) == 1 && (values[0] == "application/json" || values[0] == "") {
		return nil
	}
	if len(values) == 1 {
		media, _, err := mime.ParseMediaType(values[0])
		if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
			return nil
		}
	}
	return schema.Errorf(problem.KindMediaType, "The body must be JSON: send Content-Type: application/json. curl --json 'BODY' does, curl -d does not.")
}
