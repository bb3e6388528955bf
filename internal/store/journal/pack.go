package journal

import (
	"bytes"
	"encoding/binary"

	"github.com/callyard/callyard/pkg/bus/frame"
)

// MethodRefused is the method of a line of a batch that was no call: it has its place
// in the log, its arguments are the error, and it never runs.
const MethodRefused = "callyard/refused"

// packedVersion begins messages in which refused lines are written shortly: after a
// whole frame, one with nothing but tagRepeat stands for that many more like it, those of
// results at the indexes that follow; and one with tagSame has the payload of the frame
// before. Versions that do not know it say so.
const packedVersion = 2

// mostRepeated is far more than a message holds.
const mostRepeated = 1 << 16

const (
	tagRepeat = 41
	tagSame   = 42
)

// packMessage writes a message shortly where lines that were refused for the same
// reason follow each other: a body of bad lines must not take many times its size.
// What it returns holds the same records; without such lines it is msg itself.
func packMessage(msg []byte) []byte {
	if len(msg) < 2 || msg[0] != recordVersion || Log(msg[1]) == LogIntents {
		return msg
	}
	log := Log(msg[1])
	_, _, rest, err := frame.Next(msg[2:])
	if err != nil {
		return msg
	}
	var out []byte // nil as long as nothing was saved
	var before refusedLine
	run := uint64(0)
	var payload []byte // of the frame before
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
			// The frame before was not looked at: it had another payload before it.
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

// refusedLine is what is compared of the head of a refused line.
type refusedLine struct {
	ok    bool
	index uint64
	rest  []byte // the head without the index
}

// refusedOf reads a head; ok is false for that of anything else.
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
			named = true // refused lines have no id of their own
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

// appendFrame appends a head, and a mark that stands for its payload.
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

// unpacked is the state of a reader of a message: it gives each record once.
type unpacked struct {
	packed        bool
	head, payload []byte // of the frame before
	plus          uint64 // how many records after that frame the next one is
	left          uint64 // of a repetition
}

// next returns the next record: a head, how far its index is behind the one in the
// head, and its payload.
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
