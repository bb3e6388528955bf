// Package frame implements the binary format that is shared by messages on the wire (pkg/bus)
// and the records of journals (internal/store/journal). A frame is
//
//	uint32 head length | uint32 payload length | head | payload
//
// in big endian. The head is a list of fields (tag byte, uvarint length, bytes). A reader skips
// unknown tags, so that versions can be mixed during an upgrade. The package that writes a tag
// defines its meaning.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// overhead is the number of bytes of a frame in addition to its head and its payload.
const overhead = 8

// ErrShort means that a message ends inside a frame.
var ErrShort = errors.New("the message ends inside a frame")

// Begin begins a frame in dst. Append the fields of its head next, and finish it by calling
// [End] with the returned start.
func Begin(dst []byte) (_ []byte, start int) {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0), len(dst)
}

// End finishes the frame that begins at start with its payload.
func End(dst []byte, start int, payload []byte) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-overhead))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(len(payload)))
	return append(dst, payload...)
}

// Next splits the first frame off rest. head, payload and after share its memory.
func Next(rest []byte) (head, payload, after []byte, err error) {
	if len(rest) < overhead {
		return nil, nil, nil, ErrShort
	}
	h, p := uint64(binary.BigEndian.Uint32(rest)), uint64(binary.BigEndian.Uint32(rest[4:]))
	rest = rest[overhead:]
	if h+p > uint64(len(rest)) {
		return nil, nil, nil, ErrShort
	}
	return rest[:h:h], rest[h : h+p : h+p], rest[h+p:], nil
}

// AppendString appends a field, unless s is empty.
func AppendString[S ~string | ~[]byte](dst []byte, tag byte, s S) []byte {
	if len(s) == 0 {
		return dst
	}
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// Bit returns flag if set is true, and 0 otherwise. It is for the flags of [AppendUint].
func Bit(flag uint64, set bool) uint64 {
	if set {
		return flag
	}
	return 0
}

// AppendUint appends a field as a uvarint, unless v is 0.
func AppendUint(dst []byte, tag byte, v uint64) []byte {
	if v == 0 {
		return dst
	}
	var tmp [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(tmp[:], v)
	dst = append(dst, tag, byte(n))
	return append(dst, tmp[:n]...)
}

// AppendFixed appends a field of 8 bytes.
func AppendFixed(dst []byte, tag byte, v uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, tag, 8), v)
}

// AppendDuration appends a field in microseconds, unless d is 0 or less.
func AppendDuration(dst []byte, tag byte, d time.Duration) []byte {
	if d <= 0 {
		return dst
	}
	return AppendUint(dst, tag, uint64(max(d.Microseconds(), 1)))
}

// AppendTime appends a field in Unix nanoseconds, unless t is zero.
func AppendTime(dst []byte, tag byte, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return AppendUint(dst, tag, uint64(max(t.UnixNano(), 1)))
}

// Fields calls each for every field of a head and stops at its first error. The strings share
// one copy of the head.
func Fields(head []byte, each func(tag byte, value string) error) error {
	s := string(head)
	for i := 0; i < len(s); {
		tag := s[i]
		n, w := uvarint(s[i+1:])
		if w <= 0 || n > uint64(len(s)-i-1-w) {
			return ErrShort
		}
		i += 1 + w
		if err := each(tag, s[i:i+int(n)]); err != nil {
			return err
		}
		i += int(n)
	}
	return nil
}

func uvarint(s string) (uint64, int) {
	var v uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		b := s[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// Uint reads the value of a field that [AppendUint] wrote. It returns 0 if the value is invalid.
func Uint(value string) uint64 {
	v, _ := uvarint(value)
	return v
}

// Int is Uint for a count. It returns at most 2^30.
func Int(value string) int { return int(min(Uint(value), 1<<30)) }

// Size is Uint for a number of bytes.
func Size(value string) int64 { return int64(min(Uint(value), 1<<62)) }

// Fixed reads the value of a field that [AppendFixed] wrote.
func Fixed(value string) (uint64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("sequence number of %d bytes: %w", len(value), ErrShort)
	}
	return binary.BigEndian.Uint64([]byte(value)), nil
}

// Duration reads the value of a field that [AppendDuration] wrote.
func Duration(value string) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(Uint(value), most)) * time.Microsecond
}

// Time reads the value of a field that [AppendTime] wrote. It returns the zero time if the value
// is invalid.
func Time(value string) time.Time {
	v := Uint(value)
	if v == 0 || v > 1<<63-1 {
		return time.Time{}
	}
	return time.Unix(0, int64(v)).UTC()
}
