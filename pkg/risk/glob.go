package risk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// glob is a pattern of names: "*" stands for any characters, none and slashes
// included, and "?" for one character. Everything else is exact.
type glob struct {
	text string
	// literal says that there is no wildcard, any that it is "*".
	literal, any bool
	// plain says that it is of visible ASCII only.
	plain bool
	// bare is the text without what lookalikes may have more of.
	bare string
}

// MatchPattern says whether a pattern of a policy matches a name: "*" stands for any
// characters, none and slashes included, and "?" for one; everything else is exact.
func MatchPattern(pattern, name string) bool {
	return wild(pattern, name, func(a, b rune) bool { return a == b })
}

func newGlob(text string) glob {
	return glob{text: text, literal: !strings.ContainsAny(text, "*?"), any: text != "" && strings.Trim(text, "*") == "", plain: isPlain(text), bare: bare(text)}
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
	if g.any {
		return true
	}
	if g.literal {
		return g.text == name
	}
	return wild(g.text, name, func(a, b rune) bool { return a == b })
}

// resemblesAny is matchesAny for names that look like those of the patterns.
func resemblesAny(globs []glob, name string) bool {
	if len(globs) == 0 {
		return true
	}
	// ASCII names without spaces differ in case only, which needs no copy.
	stripped := name
	if !isPlain(name) {
		stripped = bare(name)
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
		return false // a lookalike letter takes no fewer bytes than the one it stands for
	}
	return wild(g.bare, stripped, alike)
}

// wild matches with backtracking over the last star only, so that it takes at
// most len(pattern) × len(name) steps. Broken UTF-8 in a name matches no letter.
func wild(pattern, name string, same func(p, n rune) bool) bool {
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

// isPlain says whether the name is of visible ASCII only.
func isPlain(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] >= 0x7f {
			return false
		}
	}
	return true
}

// bare drops what cannot be seen or hardly: spaces, controls, marks on letters.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.M, unicode.Z) {
			return -1
		}
		return r
	}, name)
}

// alike says whether n can pass for p. A letter of another alphabet that has
// letters of the Latin shape passes for any ASCII letter or digit, and another
// dash or line for those of ASCII: better one call too many is held than a table
// of lookalikes is found to have a gap.
func alike(p, n rune) bool {
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
