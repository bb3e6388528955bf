package format

import "unicode/utf8"

// toolOverhead is what a provider writes around a tool, in tokens.
const toolOverhead = 8

// Tokens estimates what a text of JSON costs as a part of a request. It is no
// tokenizer: a word costs one token for each 6 letters begun, digits one for each
// 3, a run of punctuation one for each 3 characters, anything beyond ASCII one for
// each character. For tool definitions that lies within about a quarter of what the
// tokenizers of the providers say, and tends to be more than that.
func Tokens(text []byte) int {
	n := toolOverhead
	for i := 0; i < len(text); {
		c := text[i]
		kind := kindOf(c)
		from := i
		switch kind {
		case 'x':
			_, size := utf8.DecodeRune(text[i:])
			i += size
			n++
			continue
		case ' ':
			i++
			continue
		}
		for i < len(text) && kindOf(text[i]) == kind {
			i++
		}
		per := 3
		if kind == 'a' {
			per = 6
		}
		n += (i - from + per - 1) / per
	}
	return n
}

func kindOf(c byte) byte {
	switch {
	case c >= utf8.RuneSelf:
		return 'x'
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return 'a'
	case c >= '0' && c <= '9':
		return '0'
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		return ' '
	}
	return '.'
}
