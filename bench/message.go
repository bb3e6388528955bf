package bench

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	stampLen = 16
	// MinSize is the size of the smallest message in bytes, with a stamp at both ends.
	MinSize = 2*stampLen + 8
	// MaxSize is the size of the largest message, which is the limit of results.
	MaxSize = 64 << 20

	argumentsHead = `{"message":"`
	argumentsTail = `"}`
)

// checkSize returns an error if a message cannot have the size.
func checkSize(size int) error {
	if size < MinSize || size > MaxSize {
		return fmt.Errorf("a message cannot have %d bytes; choose a size from %d to %d", size, MinSize, MaxSize)
	}
	return nil
}

var errNotWhole = errors.New("the answer does not hold the whole message of this call")

// message is the text that is sent and must be returned. Both ends carry the
// numbers of the lane and of the call, which detects a truncated answer or the answer to
// another call. It consists of letters and digits only, so it has the same bytes in every
// JSON encoding.
type message struct {
	text []byte
	lane uint32
	call uint32
}

// newMessage creates a message in text, which it keeps and modifies.
func newMessage(text []byte, lane int) *message {
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	m := &message{text: text, lane: uint32(lane)}
	m.next()
	return m
}

// next turns m into the message of the next call.
func (m *message) next() {
	m.call++
	stamp(m.text[:stampLen], m.lane, m.call)
	stamp(m.text[len(m.text)-stampLen:], m.call, m.lane)
}

// in returns an error unless text contains the whole message.
func (m *message) in(text []byte) error {
	at := bytes.Index(text, m.text[:stampLen])
	if at < 0 || !bytes.HasPrefix(text[at:], m.text) {
		return errNotWhole
	}
	return nil
}

func stamp(to []byte, high, low uint32) {
	const digits = "0123456789ABCDEF"
	both := uint64(high)<<32 | uint64(low)
	for i := range to {
		to[i] = digits[both>>(60-4*i)&15]
	}
}

// echoArguments returns the arguments object of the echo tool between two texts, and
// the message inside it.
func echoArguments(before, after string, lane, size int) ([]byte, *message) {
	from := len(before) + len(argumentsHead)
	text := make([]byte, from+size+len(argumentsTail)+len(after))
	copy(text, before+argumentsHead)
	copy(text[from+size:], argumentsTail+after)
	return text, newMessage(text[from:from+size:from+size], lane)
}
