// Package bodies limits the memory that request bodies use at once.
//
// The bodies that are read with a [Budget], and held until their [Reservation] is released, never
// exceed the budget. Large bodies cannot use the memory of small ones: a client that sends a few
// kilobytes is served even while others send, or start to send and then stall, as much as they may.
// Memory is reserved for received bytes, not for announced ones.
//
// The package never waits: a body for which no memory is left is refused at once.
package bodies

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrFull means that the budget currently has no memory left for the body.
var ErrFull = errors.New("bodies: no memory is left for the body now")

// ErrTooLong means that a body exceeds its maximum length.
var ErrTooLong = errors.New("bodies: the body is too long")

// maxSmall is the maximum size of a small body.
const maxSmall = 64 << 10

// first is the initial reservation for a body of unknown length.
const first = 4 << 10

// Budget is the memory that bodies may use at once. It is safe for concurrent use.
type Budget struct {
	small, large atomic.Int64 // remaining bytes
}

// New returns a budget of small bytes for small bodies of at most 64 KiB, and of large bytes for
// the part of larger bodies beyond that.
func New(small, large int64) *Budget {
	b := &Budget{}
	b.small.Store(small)
	b.large.Store(large)
	return b
}

// Left returns the bytes that are free, for tests and metrics.
func (b *Budget) Left() (small, large int64) { return b.small.Load(), b.large.Load() }

// Reservation is the memory that one request uses of a budget. The zero value uses none. It must be
// used by one goroutine only.
type Reservation struct {
	budget       *Budget
	small, large int64
}

// Grow extends the reservation to at least size bytes. It returns false if the budget does not have
// them. A reservation must always be used with the same budget.
func (r *Reservation) Grow(b *Budget, size int) bool {
	small := min(int64(size), maxSmall) - r.small
	large := int64(size) - maxSmall - r.large
	if small > 0 && !take(&b.small, small) {
		return false
	}
	if large > 0 && !take(&b.large, large) {
		if small > 0 {
			b.small.Add(small)
		}
		return false
	}
	r.budget = b
	r.small += max(small, 0)
	r.large += max(large, 0)
	return true
}

func take(left *atomic.Int64, n int64) bool {
	if left.Add(-n) >= 0 {
		return true
	}
	left.Add(n)
	return false
}

// Release returns all memory. It may be called more than once.
func (r *Reservation) Release() {
	if r.budget == nil {
		return
	}
	r.budget.small.Add(r.small)
	r.budget.large.Add(r.large)
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
		end, size = length, maxSmall
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
