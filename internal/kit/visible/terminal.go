package visible

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terminal escapes the characters of text that could control a terminal; see [ControlsTerminal].
func Terminal(text string) string {
	if strings.IndexFunc(text, ControlsTerminal) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if ControlsTerminal(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ControlsTerminal reports whether a character could control a terminal: control characters other than
// line feed and tab, and bidirectional controls.
func ControlsTerminal(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
