package risk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// glob is a pattern of names. "*" matches any number of characters, including none and
// slashes. "?" matches one character. Everything else matches exactly.
type glob struct {
	text string
	// literal means that there is no wildcard, any that the pattern is "*".
	literal, any bool
	// plain means that the pattern consists of visible ASCII only.
	plain bool
	// bare is the text without the characters that a lookalike may add.
	bare string
}

// MatchPattern reports whether a pattern of a policy matches a name. "*" matches any number of
// characters, including none and slashes. "?" matches one character. Everything else matches
// exactly.
func MatchPattern(pattern, name string) bool {
	return matchWildcard(pattern, name, func(a, b rune) bool { return a == b })
}

func newGlob(text string) glob {
	return glob{text: text, literal: !strings.ContainsAny(text, "*?"), any: text != "" && strings.Trim(text, "*") == "", plain: isPlain(text), bare: stripInvisible(text)}
}

func matchesAny(globs []glob, name string) bool {
	for i := range globs {
		if globs[i].matches(name) {
			return true
		}
	}
	return len(globs) == 0
}

func (g *glob) matches(name string) bool {
	if g.literal {
		return g.text == name
	}
	return g.any || MatchPattern(g.text, name)
}

// resemblesAny is matchesAny for names that look like the names of the patterns.
func resemblesAny(globs []glob, name string) bool {
	if len(globs) == 0 {
		return true
	}
	// Visible ASCII needs no stripped copy, because lookalikes in it differ only in case.
	stripped := name
	if !isPlain(name) {
		stripped = stripInvisible(name)
	}
	for i := range globs {
		if globs[i].resembles(stripped) {
			return true
		}
	}
	return false
}

func (g *glob) resembles(stripped string) bool {
	if g.any {
		return true
	}
	if g.literal && g.plain && len(g.bare) > len(stripped) {
		return false // a lookalike letter has at least as many bytes as the original
	}
	return matchWildcard(g.bare, stripped, resembles)
}

// matchWildcard matches with backtracking over the last star only, which limits it to
// len(pattern) × len(name) steps. Invalid UTF-8 in a name matches no letter.
func matchWildcard(pattern, name string, same func(p, n rune) bool) bool {
	star, resume := -1, 0
	i, j := 0, 0
	for j < len(name) {
		if i < len(pattern) && pattern[i] == '*' {
			star, resume = i, j
			i++
			continue
		}
		n, size := rune(name[j]), 1
		if n >= utf8.RuneSelf {
			n, size = utf8.DecodeRuneInString(name[j:])
		}
		if i < len(pattern) {
			p, width := rune(pattern[i]), 1
			if p >= utf8.RuneSelf {
				p, width = utf8.DecodeRuneInString(pattern[i:])
			}
			if p == '?' || same(p, n) && !(n == utf8.RuneError && size == 1) {
				i += width
				j += size
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, step := utf8.DecodeRuneInString(name[resume:])
		resume += step
		i, j = star+1, resume
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// isPlain reports whether the name consists of visible ASCII only.
func isPlain(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] >= 0x7f {
			return false
		}
	}
	return true
}

// stripInvisible removes characters that are invisible or hard to see: spaces, controls and marks on
// letters.
func stripInvisible(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.M, unicode.Z) {
			return -1
		}
		return r
	}, name)
}

// resembles reports whether n can pass for p. Any letter of an alphabet with Latin-like shapes
// passes for any ASCII letter or digit, and any other dash or line for those of ASCII. This
// holds too many calls rather than too few: a table of lookalikes would have gaps.
func resembles(p, n rune) bool {
	if p == n {
		return true
	}
	if n < utf8.RuneSelf {
		return p < utf8.RuneSelf && isLetter(p) && p|0x20 == n|0x20
	}
	switch {
	case p >= utf8.RuneSelf:
		return unicode.ToLower(p) == unicode.ToLower(n)
	case isLetter(p) || p >= '0' && p <= '9':
		return (unicode.IsLetter(n) || unicode.IsNumber(n) || unicode.IsSymbol(n)) &&
			unicode.In(n, unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Coptic, unicode.Armenian, unicode.Cherokee, unicode.Lisu, unicode.Common)
	}
	return unicode.In(n, unicode.P, unicode.S, unicode.Lm)
}

func isLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
