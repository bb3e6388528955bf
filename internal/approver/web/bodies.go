package web

import (
	"errors"
	"mime"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// maxEnvelope limits the size of a body without the arguments, in bytes.
const maxEnvelope = 64 << 10

// Memory budgets for all bodies that are being read or processed: one for bodies of up to 64 KiB,
// and one for the excess of larger bodies.
const (
	smallBodies = 16 << 20
	largeBodies = 32 << 20
)

// reservationKey is the context key of the memory reservation for a request body.
type reservationKey struct{}

// visitors is the caller of all requests of people who have not signed in. They must not use up the
// memory for the decisions of others. An API key is known later; see [attribute].
var visitors = &schema.Principal{Name: "(visitors)"}

// sender returns the principal whose body is read.
func (h *Handler) sender(r *http.Request) *schema.Principal {
	if in, ok := h.access.session(h.access.cookie(r), false); ok {
		return &in.who
	}
	return visitors
}

// attribute lets the body of a request, which must not be read yet, count as one of the principal.
func attribute(r *http.Request, who *schema.Principal) {
	if reservation, ok := r.Context().Value(reservationKey{}).(*bodies.Reservation); ok {
		reservation.By(who)
	}
}

// bodyReader reads bodies within one memory budget for all requests. It is safe for
// concurrent use.
type bodyReader struct{ budget *bodies.Budget }

func newBodyReader() *bodyReader { return &bodyReader{bodies.New(smallBodies, largeBodies)} }

// json reads a JSON body of at most limit bytes.
func (b *bodyReader) json(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != "application/json" {
		return nil, schema.Errorf(problem.KindMediaType, "The Content-Type must be application/json.")
	}
	return b.read(w, r, limit, "The body exceeds the limit of %d bytes; send less, or ask the operator to raise argument_bytes.", limit)
}

// read reads a body of at most limit bytes. tooLarge is the format of the error for a longer one,
// with named as its number.
func (b *bodyReader) read(w http.ResponseWriter, r *http.Request, limit int, tooLarge string, named int) ([]byte, error) {
	reservation, ok := r.Context().Value(reservationKey{}).(*bodies.Reservation)
	if !ok {
		return nil, schema.Errorf(schema.KindInternal, "The body has no memory reservation.")
	}
	body, err := b.budget.Read(reservation, r.Body, r.ContentLength, limit)
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, bodies.ErrTooLong):
		w.Header().Set("Connection", "close")
		return nil, schema.Errorf(schema.KindTooLarge, tooLarge, named)
	case errors.Is(err, bodies.ErrFull):
		w.Header().Set("Connection", "close")
		return nil, schema.Errorf(schema.KindUnavailable, "The approver is handling too many large requests; nothing was done. Retry in a moment.").RetryableAfter(time.Second)
	}
	return nil, schema.Errorf(schema.KindInvalidRequest, "The body arrived incomplete; send it again.")
}
