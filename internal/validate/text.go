package validate

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	eachByte = 0x0101010101010101
	eachHigh = 0x8080808080808080
)

// nonPlainBits sets the highest bit of each of the eight bytes that ends a run of plain text: a control
// character, a quote, a backslash or a byte of a longer UTF-8 sequence. It may also set the bit of
// a plain byte, but only above such a byte. Long strings make up most bytes of large arguments.
func nonPlainBits(eight uint64) uint64 {
	quote := eight ^ (eachByte * '"')
	slash := eight ^ (eachByte * '\\')
	return (eight | (eight - eachByte*0x20) | (quote - eachByte) | (slash - eachByte)) & eachHigh
}

// text reads a string. escaped means that it contains a backslash.
func (s *scanner) text(i int) (end int, escaped bool) {
	raw := s.raw
	for i++; ; {
		for len(raw)-i >= 8 {
			if found := nonPlainBits(binary.LittleEndian.Uint64(raw[i:])); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		if i >= len(raw) {
			return s.fail(i, "a string does not end"), escaped
		}
		switch c := raw[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i = s.escape(i); i < 0 {
				return -1, escaped
			}
		case c < 0x20:
			return s.fail(i, "a control character in a string is not escaped"), escaped
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				return s.fail(i, "a string is not valid UTF-8"), escaped
			}
			i += size
		}
	}
}

// escape reads one escape sequence, or both halves of a surrogate pair.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.raw) {
		return s.fail(i, "a string does not end")
	}
	switch s.raw[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return s.fail(i, "an escape sequence is unknown")
	}
	unit, ok := hex4(s.raw, i+2)
	if !ok {
		return s.fail(i, "an escape sequence needs four hex digits")
	}
	if !utf16.IsSurrogate(rune(unit)) {
		return i + 6
	}
	if len(s.raw)-i >= 12 && s.raw[i+6] == '\\' && s.raw[i+7] == 'u' {
		if low, ok := hex4(s.raw, i+8); ok && utf16.DecodeRune(rune(unit), rune(low)) != utf8.RuneError {
			return i + 12
		}
	}
	return s.fail(i, "an escaped surrogate has no other half")
}

func hex4(raw []byte, i int) (unit uint16, ok bool) {
	if len(raw)-i < 4 {
		return 0, false
	}
	for _, c := range raw[i : i+4] {
		switch {
		case isDigit(c):
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}

// unescape decodes the content of a string that [scanner.text] accepted.
func unescape(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			unit, _ := hex4(raw, i+1)
			i += 4
			r := rune(unit)
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw, i+3)
				r = utf16.DecodeRune(r, rune(low))
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, raw[i])
		}
	}
	return string(out)
}

func (s *scanner) keyText(k key) string {
	if k.escaped {
		return unescape(s.raw[k.start:k.end])
	}
	return string(s.raw[k.start:k.end])
}

func (s *scanner) sameKey(a, b key) bool {
	if a.escaped || b.escaped {
		return s.keyText(a) == s.keyText(b)
	}
	return string(s.raw[a.start:a.end]) == string(s.raw[b.start:b.end])
}

func (s *scanner) twice(k key) int {
	s.fail(k.start-1, "a property appears twice")
	return s.within(k)
}

// within records property k in the path of a fault and returns the result of a failed read.
func (s *scanner) within(k key) int {
	s.path = append(s.path, s.keyText(k))
	return -1
}

// item records an array index in the path of a fault and returns the result of a failed read.
func (s *scanner) item(index int) int {
	s.path = append(s.path, strconv.Itoa(index))
	return -1
}
