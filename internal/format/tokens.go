package format

import "unicode/utf8"

// toolOverhead is the number of tokens that a provider adds to each tool.
const toolOverhead = 8

// Tokens estimates the number of tokens of a JSON text in a request. It is not a tokenizer: a word
// costs one token for each 6 letters begun, digits one for each 3, a run of punctuation one for
// each 3 characters, and any non-ASCII character one. For tool definitions, the result is within
// about a quarter of the providers' tokenizers, and tends to be higher.
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
