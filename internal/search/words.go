package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// maxText limits how much of one text is indexed, in bytes, because descriptions come from servers.
const maxText = 8 << 10

// words calls visit with each word of a text in its indexed form: compatibility-folded, lower case,
// Latin, Greek and Cyrillic letters without accents, and without English endings. A name such as
// readTextFile or read_text_file gives several words. A run of a script without spaces, such as
// Han, Kana or Thai, gives its pairs of letters, and with singles also each letter.
func words(text string, singles bool, visit func(word string)) {
	text = truncate.Head(text, maxText)
	if isPlain(text) {
		asciiWords(text, visit)
		return
	}
	var run []rune // of one word, or of letters of a script without spaces
	dense := false // the kind of run
	end := func() {
		switch {
		case len(run) == 0:
		case !dense:
			visit(stem(string(run)))
		case len(run) == 1:
			visit(string(run))
		default:
			for i := range len(run) - 1 {
				visit(string(run[i : i+2]))
			}
			for i := range run {
				if singles {
					visit(string(run[i]))
				}
			}
		}
		run = run[:0]
	}
	var before rune // the previous letter, as written
	for _, c := range norm.NFKC.String(text) {
		c = withoutAccent(c)
		switch {
		case unicode.Is(unicode.Mn, c) && hasAccents(before):
			// A combining accent without a composed form.
		case isDense(c):
			if !dense {
				end()
			}
			dense = true
			run = append(run, c)
			before = c
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.Is(unicode.M, c) && len(run) > 0:
			if dense || unicode.IsUpper(c) && unicode.IsLower(before) {
				end()
			}
			dense = false
			run = append(run, unicode.ToLower(c))
			before = c
		default:
			end()
			before = c
		}
	}
	end()
}

// asciiWords is words for ASCII texts, which are the most common.
func asciiWords(text string, visit func(word string)) {
	var buffer [64]byte
	run := buffer[:0]
	end := func() {
		if len(run) > 0 {
			visit(stem(string(run)))
			run = run[:0]
		}
	}
	var before byte
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			run = append(run, c)
		case c >= 'A' && c <= 'Z':
			// In HTMLParser the second word starts at the last capital.
			next := byte(0)
			if i+1 < len(text) {
				next = text[i+1]
			}
			if isLower(before) || before >= 'A' && before <= 'Z' && isLower(next) && i+2 < len(text) && isLower(text[i+2]) {
				end()
			}
			run = append(run, c|0x20)
		default:
			end()
		}
		before = c
	}
	end()
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// denseScripts are written without spaces, or add so much to a word that its parts must be searchable.
var denseScripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

func isDense(c rune) bool { return c >= 0x0e00 && (unicode.In(c, denseScripts...) || c == 'ー') }

// hasAccents reports whether accents on the letter are removed.
func hasAccents(c rune) bool { return unicode.In(c, unicode.Latin, unicode.Greek, unicode.Cyrillic) }

// withoutAccent returns a letter without its accent, so that résumé and resume are equal.
func withoutAccent(c rune) rune {
	if c < utf8.RuneSelf || !hasAccents(c) || c == 'й' || c == 'Й' {
		return c
	}
	letter, _ := utf8.DecodeRuneInString(norm.NFD.String(string(c)))
	return letter
}

// stem removes common English endings, so that "creating files" finds create_file. It is light:
// words with the same stem nearly always belong together.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	switch {
	case strings.HasSuffix(w, "ing") && hasVowel(w[:len(w)-3]) && len(w) > 5:
		w = withoutDoubledEnd(w[:len(w)-3])
	case strings.HasSuffix(w, "ed") && hasVowel(w[:len(w)-2]) && len(w) > 4:
		w = withoutDoubledEnd(w[:len(w)-2])
	}
	// movie and movies, city and cities
	if n := len(w); n > 4 && w[n-1] == 'e' {
		w = w[:n-1]
	} else if n > 3 && w[n-1] == 'y' && !strings.ContainsRune("aeiou", rune(w[n-2])) {
		w = w[:n-1] + "i"
	}
	return w
}

func hasVowel(w string) bool { return strings.ContainsAny(w, "aeiouy") }

// withoutDoubledEnd returns plan for plann.
func withoutDoubledEnd(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}
