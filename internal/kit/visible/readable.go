package visible

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Readable returns JSON in which the escapes of characters that are displayed verbatim are these
// characters, so that people can read text of a program that escapes all but ASCII. It has the same
// value. Escapes of characters that could deceive, and of ASCII, stay as they are.
func Readable(b []byte) []byte {
	out := make([]byte, 0, len(b))
	var letter rune   // the last character of a string, if it is not a mark
	var before []byte // the marks after it
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf && c != '\\' {
			out = append(out, c)
			letter, before = rune(c), before[:0]
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		escaped := false
		if r == '\\' {
			if r, size = unescape(b[i:]); size == 0 { // another escape, of which the second character can be a backslash
				r, size = 0, min(2, len(b)-i)
			}
			escaped = r >= utf8.RuneSelf
		}
		with := utf8.AppendRune(before, r)
		spelled := len(with) <= maxMarks*utf8.UTFMax && spelledMarks(letter, with) == len(with)
		verbatim := spelled || concernOf(r, utf8.RuneLen(r)) == harmless
		if escaped && verbatim {
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, b[i:i+size]...)
		}
		switch {
		case spelled:
			before = with
		case verbatim:
			letter, before = r, before[:0]
		default:
			letter, before = 0, before[:0] // no mark belongs to it
		}
		i += size
	}
	return out
}

// unescape returns the character at the start of JSON that is an escape such as \u00e9, and its length,
// which is 0 for anything else. Half a surrogate pair is nothing.
func unescape(b []byte) (r rune, size int) {
	unit := func(b []byte) rune {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	r = unit(b)
	switch {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if r = utf16.DecodeRune(r, unit(b[6:])); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}
