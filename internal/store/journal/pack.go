package journal

import (
	"bytes"
	"encoding/binary"

	"github.com/callyard/callyard/pkg/bus/frame"
)

// MethodRefused is the method of a refused batch line. The line has an index in the log, its arguments
// are the error, and it never runs.
const MethodRefused = "callyard/refused"

// packedVersion is the version of messages in which refused lines are compressed. After a complete
// frame, a frame with only tagRepeat stands for that number of equal frames; those of results have
// consecutive indexes. A frame with tagSame has the payload of the previous frame. Older programs
// return an error for this version.
const packedVersion = 2

// mostRepeated is more than a message can hold.
const mostRepeated = 1 << 16

const (
	tagRepeat = 41
	tagSame   = 42
)

// packMessage compresses runs of lines that were refused for the same reason, so that a body of bad
// lines does not take many times its size. The result holds the same records. Without such lines it
// returns msg unchanged.
func packMessage(msg []byte) []byte {
	if len(msg) < 2 || msg[0] != recordVersion || Log(msg[1]) == LogIntents {
		return msg
	}
	log := Log(msg[1])
	_, _, rest, err := frame.Next(msg[2:])
	if err != nil {
		return msg
	}
	var out []byte // nil until a frame was compressed
	var before refusedLine
	run := uint64(0)
	var payload []byte // of the previous frame
	for len(rest) > 0 {
		head, body, after, err := frame.Next(rest)
		if err != nil {
			return msg
		}
		frame := rest[:len(rest)-len(after)]
		same := len(body) > 0 && bytes.Equal(body, payload)
		var line refusedLine
		if same {
			line = refusedOf(log, head)
		}
		if line.ok && out == nil {
			out = append(make([]byte, 0, len(msg)), msg[:len(msg)-len(rest)]...)
			out[0] = packedVersion
			// The previous frame was not inspected, because the payload before it was different.
			before = refusedLine{}
		}
		switch {
		case line.ok && before.ok && line.follows(&before, log):
			run++
		case line.ok:
			out = appendRepeat(out, run)
			run = 0
			out = appendFrame(out, head, tagSame)
		case out != nil:
			out = appendRepeat(out, run)
			run = 0
			out = append(out, frame...)
		}
		before, payload, rest = line, body, after
	}
	if out == nil {
		return msg
	}
	return appendRepeat(out, run)
}

// refusedLine holds the compared parts of the head of a refused line.
type refusedLine struct {
	ok    bool
	index uint64
	rest  []byte // the head without the index
}

// refusedOf decodes a head. ok is false unless it is that of a refused line.
func refusedOf(log Log, head []byte) (l refusedLine) {
	l.rest = head
	if log == LogResults && len(head) > 1 && head[0] == tagIndex {
		v, w := binary.Uvarint(head[2:])
		if w <= 0 || w != int(head[1]) {
			return l
		}
		l.index, l.rest = v, head[2+w:]
	}
	isError, named := false, false
	err := frame.Fields(head, func(tag byte, value string) error {
		switch {
		case log == LogCalls && tag == tagMethod:
			l.ok = value == MethodRefused
		case log == LogResults && tag == tagID:
			named = true // refused lines have no id
		case log == LogResults && tag == tagFlags:
			isError = frame.Uint(value)&flagError != 0
		}
		return nil
	})
	if log == LogResults {
		l.ok = isError && !named
	}
	l.ok = l.ok && err == nil
	return l
}

func (l *refusedLine) follows(before *refusedLine, log Log) bool {
	return bytes.Equal(l.rest, before.rest) && (log == LogCalls || l.index == before.index+1)
}

// appendFrame appends a head and a tag that stands for its payload.
func appendFrame(dst, head []byte, mark byte) []byte {
	dst, start := frame.Begin(dst)
	dst = append(dst, head...)
	dst = frame.AppendUint(dst, mark, 1)
	return frame.End(dst, start, nil)
}

func appendRepeat(dst []byte, n uint64) []byte {
	if n == 0 {
		return dst
	}
	dst, start := frame.Begin(dst)
	dst = frame.AppendUint(dst, tagRepeat, n)
	return frame.End(dst, start, nil)
}

// unpacked is the state of a decoder that expands compressed frames.
type unpacked struct {
	packed        bool
	head, payload []byte // of the previous frame
	plus          uint64 // records after the previous frame
	left          uint64 // remaining repetitions
}

// next returns the next record: its head, the number to add to the index in the head, and its payload.
func (u *unpacked) next(rest []byte) (head []byte, plus uint64, payload, after []byte, err error) {
	if u.left > 0 {
		u.left--
		u.plus++
		return u.head, u.plus, u.payload, rest, nil
	}
	head, payload, after, err = frame.Next(rest)
	if err != nil || !u.packed {
		return head, 0, payload, after, err
	}
	same := false
	err = frame.Fields(head, func(tag byte, value string) error {
		switch tag {
		case tagRepeat:
			u.left = frame.Uint(value)
		case tagSame:
			same = true
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, 0, nil, nil, err
	case u.left > 0 && (u.head == nil || u.left > mostRepeated):
		return nil, 0, nil, nil, errCount
	case u.left > 0:
		return u.next(after)
	case same:
		payload = u.payload
	}
	u.head, u.payload, u.plus = head, payload, 0
	return head, 0, payload, after, nil
}

func (u *unpacked) more(rest []byte) bool { return len(rest) > 0 || u.left > 0 }
