package rawjson

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escapeSize is the length of an escaped UTF-16 code unit.
const escapeSize = len(`\ufffd`)

// Readable returns JSON text that every JSON reader accepts: with U+FFFD in place of bytes that are
// not UTF-8 (RFC 8259, section 8.1), and of escaped surrogates without their other half (section
// 8.2). Programs that cut a text in the middle of an emoji send such halves, and strict readers,
// like that of the Python SDK of MCP, reject the whole text for one of them. It returns text itself
// if there is nothing to replace.
func Readable(text []byte) []byte {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return text
	}
	copied := false
	for i := 0; ; {
		next := bytes.IndexByte(text[i:], '\\')
		if next < 0 {
			return text
		}
		i += next
		first, ok := codeUnit(text[i:])
		switch {
		case !ok:
			i = min(i+2, len(text)) // the next byte may be a backslash too
			continue
		case !utf16.IsSurrogate(first):
			i += escapeSize
			continue
		}
		if second, ok := codeUnit(text[i+escapeSize:]); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
			i += 2 * escapeSize
			continue
		}
		if !copied {
			text, copied = bytes.Clone(text), true
		}
		copy(text[i:], `\ufffd`)
		i += escapeSize
	}
}

// codeUnit reads an escaped UTF-16 code unit at the start of text.
func codeUnit(text []byte) (rune, bool) {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeSize]), 16, 16)
	return rune(n), err == nil
}
