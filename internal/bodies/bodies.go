// Package bodies bounds the memory that bodies of requests take at once.
//
// A [Room] promises that what is read with it, and held until its [Lot] is given
// back, is never more than it was made for, and that large bodies cannot take the
// room of small ones: who sends a few kilobytes is served while others send, or
// begin to send and then wait with, as much as they may. Memory is taken for bytes
// that have come, and not for those that were announced.
//
// It refuses to wait: a body for which there is no room is refused at once.
package bodies

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrFull says that there is no room for more of a body now.
var ErrFull = errors.New("bodies: there is no room for the body now")

// ErrTooLong says that a body is longer than it may be.
var ErrTooLong = errors.New("bodies: the body is too long")

// smallMost is up to where a body is small.
const smallMost = 64 << 10

// first is what is taken for a body that does not say how long it is.
const first = 4 << 10

// Room is how much bodies may take at once. It is safe for concurrent use.
type Room struct {
	small, large atomic.Int64 // what is left
}

// New returns a room of that many bytes for small bodies, of at most 64 KiB, and of
// that many for what large ones take beyond.
func New(small, large int64) *Room {
	r := &Room{}
	r.small.Store(small)
	r.large.Store(large)
	return r
}

// Left is how much of the room is free, for tests and metrics.
func (r *Room) Left() (small, large int64) { return r.small.Load(), r.large.Load() }

// Lot is what one request takes of a room. The zero value takes nothing. It is used
// by one goroutine.
type Lot struct {
	room         *Room
	small, large int64
}

// Grow makes the lot hold size bytes at least; false says that there is no room.
// A lot belongs to one room.
func (l *Lot) Grow(r *Room, size int) bool {
	small := min(int64(size), smallMost) - l.small
	large := int64(size) - smallMost - l.large
	if small > 0 && !take(&r.small, small) {
		return false
	}
	if large > 0 && !take(&r.large, large) {
		if small > 0 {
			r.small.Add(small)
		}
		return false
	}
	l.room = r
	l.small += max(small, 0)
	l.large += max(large, 0)
	return true
}

func take(left *atomic.Int64, n int64) bool {
	if left.Add(-n) >= 0 {
		return true
	}
	left.Add(n)
	return false
}

// Release gives everything back. It may be called more than once.
func (l *Lot) Release() {
	if l.room == nil {
		return
	}
	l.room.small.Add(l.small)
	l.room.large.Add(l.large)
	*l = Lot{}
}

// Read reads a body into memory of the lot: length bytes of it, or all where that is
// below zero. The error is [ErrFull], [ErrTooLong] for more than limit bytes,
// [io.ErrUnexpectedEOF] for less than length, or that of the reader.
func (r *Room) Read(l *Lot, from io.Reader, length int64, limit int) ([]byte, error) {
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
			if !l.Grow(r, int(size)) {
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
