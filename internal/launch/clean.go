package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes the output of a program safe to show. The result is valid UTF-8 without terminal
// sequences and carriage returns. Other invisible or moving characters (controls, direction marks,
// zero-width characters) are escaped.
func clean(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		if n := terminalSequence(s); n > 0 {
			s = s[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == '\r':
		case r < 0x100 && unicode.IsControl(r):
			fmt.Fprintf(&out, `\x%02x`, r)
		case r > 0xFFFF && unicode.Is(unicode.Cf, r):
			fmt.Fprintf(&out, `\U%08x`, r)
		case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r) // an invalid byte becomes U+FFFD
		}
	}
	return out.String()
}

// terminalSequence returns the length of the escape sequence at the start of s: colors and cursor
// moves (ESC [ … letter), or titles (ESC ] … BEL). It returns 0 if there is none or if it does not
// end; the ESC is escaped then.
func terminalSequence(s string) int {
	if len(s) < 3 || s[0] != 0x1b {
		return 0
	}
	switch s[1] {
	case '[':
		for i := 2; i < min(len(s), 64); i++ {
			if c := s[i]; c >= 0x40 && c <= 0x7e {
				return i + 1
			} else if c < 0x20 || c > 0x7e {
				return 0
			}
		}
	case ']':
		for i := 2; i < min(len(s), 256); i++ {
			if c := s[i]; c == 0x07 {
				return i + 1
			} else if c < 0x20 || c > 0x7e {
				return 0
			}
		}
	}
	return 0
}

// redactor replaces configured values of environment variables, which may be secret, by the names of
// the variables. The zero value replaces nothing.
type redactor struct {
	replacer *strings.Replacer
	longest  int // length of the longest value, in bytes
}

// shortestSecret is the minimum length of a value to be replaced. Shorter values are settings such as
// "true", which occur everywhere.
const shortestSecret = 8

func newRedactor(env map[string]string) redactor {
	names := make(map[string]string) // by value
	add := func(value, name string) {
		if first, ok := names[value]; len(value) >= shortestSecret && (!ok || name < first) {
			names[value] = name
		}
	}
	for name, value := range env {
		add(value, name)
		for line := range strings.Lines(value) { // programs print a key file line by line
			add(strings.TrimRight(line, "\r\n"), name)
		}
	}
	if len(names) == 0 {
		return redactor{}
	}
	// If one value is a prefix of another, the longer one must match first.
	values := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(values))
	for _, value := range values {
		pairs = append(pairs, value, "[value of "+names[value]+"]")
	}
	return redactor{replacer: strings.NewReplacer(pairs...), longest: len(values[0])}
}

func (r redactor) redact(s string) string {
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}
