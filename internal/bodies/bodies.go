// Package bodies limits the memory that request bodies use at once.
//
// The bodies that are read with a [Budget], and held until their [Reservation] is released, never
// exceed the budget. Large bodies cannot use the memory of small ones: a client that sends a few
// kilobytes is served even while others send, or start to send and then stall, as much as they may.
// Memory is reserved for received bytes, not for announced ones. No caller gets more than three
// quarters of it, however many requests it sends.
//
// The package never waits: a body for which no memory is left is refused at once.
package bodies

import (
	"errors"
	"io"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// ErrFull means that the budget currently has no memory left for the body.
var ErrFull = errors.New("bodies: no memory is left for the body now")

// ErrTooLong means that a body exceeds its maximum length.
var ErrTooLong = errors.New("bodies: the body is too long")

// maxSmall is the maximum size of a small body.
const maxSmall = 64 << 10

// first is the initial reservation for a body.
const first = 4 << 10

// Budget is the memory that bodies may use at once. It is safe for concurrent use.
type Budget struct {
	all, each memory // the limits of all callers, and of each

	mu   sync.Mutex
	used memory
	by   map[schema.PrincipalID]memory // used by each caller; no zero entries
}

// memory is a number of bytes of small bodies, and of the part of larger ones beyond that.
type memory struct{ small, large int64 }

func (m memory) add(n memory) memory { return memory{m.small + n.small, m.large + n.large} }

func (m memory) negative() memory { return memory{-m.small, -m.large} }

// exceeds reports whether adding n to m leads beyond a limit. A part to which n adds nothing does not
// count.
func (m memory) exceeds(n, limit memory) bool {
	return n.small > 0 && m.small+n.small > limit.small || n.large > 0 && m.large+n.large > limit.large
}

// New returns a budget of small bytes for small bodies of at most 64 KiB, and of large bytes for
// the part of larger bodies beyond that.
func New(small, large int64) *Budget {
	return &Budget{all: memory{small, large}, each: memory{small - small/4, large - large/4}, by: make(map[schema.PrincipalID]memory)}
}

// Left returns the bytes that are free, for tests and metrics.
func (b *Budget) Left() (small, large int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.all.add(b.used.negative())
	return left.small, left.large
}

// take adds n, which may be negative, to what a caller uses. It returns false if a limit forbids it. An
// unknown caller has no limit of its own.
func (b *Budget) take(by schema.PrincipalID, n memory) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, known := b.by[by], by != (schema.PrincipalID{})
	if b.used.exceeds(n, b.all) || known && own.exceeds(n, b.each) {
		return false
	}
	b.used = b.used.add(n)
	if !known {
		return true
	}
	if own = own.add(n); own == (memory{}) {
		delete(b.by, by)
	} else {
		b.by[by] = own
	}
	return true
}

// Reservation is the memory that one request uses of a budget. The zero value uses none. It must be
// used by one goroutine only.
type Reservation struct {
	budget *Budget
	by     schema.PrincipalID // zero if the caller is unknown
	held   memory
}

// By sets the caller of the request, before its body is read. The callers of a tenant other than the
// default one count as one, so that no tenant can use the memory of the others.
func (r *Reservation) By(who *schema.Principal) {
	if r.by = who.ID(); r.by.Tenant != "" {
		r.by.Name = ""
	}
}

// Grow extends the reservation to at least size bytes. It returns false if the budget does not have
// them. A reservation must always be used with the same budget.
func (r *Reservation) Grow(b *Budget, size int) bool {
	small := max(min(int64(size), maxSmall)-r.held.small, 0)
	more := memory{small, max(int64(size)-maxSmall-r.held.large, 0)}
	if more == (memory{}) {
		return true
	}
	if !b.take(r.by, more) {
		return false
	}
	r.budget, r.held = b, r.held.add(more)
	return true
}

// Release returns all memory. It may be called more than once.
func (r *Reservation) Release() {
	if r.budget == nil {
		return
	}
	r.budget.take(r.by, r.held.negative())
	*r = Reservation{}
}

// Read reads a body into memory of the reservation: length bytes, or all if length is negative.
// Errors: [ErrFull], [ErrTooLong] for more than limit bytes, [io.ErrUnexpectedEOF] for less than
// length bytes, and those of the reader.
func (b *Budget) Read(r *Reservation, from io.Reader, length int64, limit int) ([]byte, error) {
	if length > int64(limit) {
		return nil, ErrTooLong
	}
	end := int64(limit) + 1 // one byte more reveals that the body is too long
	size := int64(first)
	if length >= 0 {
		end = length
	}
	var body []byte
	for n := 0; ; {
		if n == len(body) {
			if int64(n) == end {
				return body, nil
			}
			size = min(size, end)
			if !r.Grow(b, int(size)) {
				return nil, ErrFull
			}
			grown := make([]byte, size)
			copy(grown, body)
			body, size = grown, 2*size
		}
		got, err := from.Read(body[n:])
		n += got
		switch {
		case length < 0 && n > limit:
			return nil, ErrTooLong
		case int64(n) == length:
			return body[:n], nil
		case errors.Is(err, io.EOF) && length < 0:
			return body[:n], nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
	}
}
