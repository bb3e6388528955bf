package authn

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName limits the name of a person or program, in bytes.
const maxName = 256

// ValidName reports whether a string is usable as a name: not empty, not too long, and entirely
// visible.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.TrimSpace(name) != name {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) < 0
}
