package session

import (
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// tooDeep says that text nests deeper than is read here. It is asked of text that
// could not be read, to say why.
func tooDeep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // whatever it escapes
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > rawjson.MaxNesting {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
