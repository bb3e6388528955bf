// Package bodies bounds the memory that bodies of requests take at once.
//
// A [Budget] promises that what is read with it, and held until its [Reservation] is
// released, is never more than it was made for, and that large bodies cannot take the
// memory of small ones: a client that sends a few kilobytes is served while others send, or
// begin to send and then wait with, as much as they may. Memory is taken for bytes
// that have come, and not for those that were announced.
//
// It refuses to wait: a body for which no memory is left is refused at once.
package bodies

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrFull says that the budget has no memory left for more of a body now.
var ErrFull = errors.New("bodies: no memory is left for the body now")

// ErrTooLong says that a body is longer than it may be.
var ErrTooLong = errors.New("bodies: the body is too long")

// smallMost is up to where a body is small.
const smallMost = 64 << 10

// first is what is taken for a body that does not say how long it is.
const first = 4 << 10

// Budget is the memory that bodies may take at once. It is safe for concurrent use.
type Budget struct {
	small, large atomic.Int64 // what is left
}

// New returns a budget of small bytes for small bodies, of at most 64 KiB, and of large
// bytes for what large ones take beyond that.
func New(small, large int64) *Budget {
	b := &Budget{}
	b.small.Store(small)
	b.large.Store(large)
	return b
}

// Left returns the bytes that are free, for tests and metrics.
func (b *Budget) Left() (small, large int64) { return b.small.Load(), b.large.Load() }

// Reservation is the memory that one request takes of a budget. The zero value takes
// nothing. It is used by one goroutine.
type Reservation struct {
	budget       *Budget
	small, large int64
}

// Grow makes the reservation hold at least size bytes; false says that they are not left.
// A reservation belongs to one budget.
func (r *Reservation) Grow(b *Budget, size int) bool {
	small := min(int64(size), smallMost) - r.small
	large := int64(size) - smallMost - r.large
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

// Release gives all memory back. It may be called more than once.
func (r *Reservation) Release() {
	if r.budget == nil {
		return
	}
	r.budget.small.Add(r.small)
	r.budget.large.Add(r.large)
	*r = Reservation{}
}

// Read reads a body into memory of the reservation: length bytes of it, or all where that is
// below zero. The error is [ErrFull], [ErrTooLong] for more than limit bytes,
// [io.ErrUnexpectedEOF] for less than length, or that of the reader.
func (b *Budget) Read(r *Reservation, from io.Reader, length int64, limit int) ([]byte, error) {
	if length > int64(limit) {
		return nil, ErrTooLong
	}
	end := int64(limit) + 1 // one more shows that it is too long
	size := int64(first)
	if length >= 0 {
		end, size = length, smallMost
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
