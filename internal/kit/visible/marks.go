package visible

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxMarks limits the combining marks of a letter that are displayed verbatim. Words do not need more,
// and a pile of them covers the lines above and below.
const maxMarks = 4

// spelledMarks returns the length of the combining marks at the start of text that spell a language
// together with the letter before them, which is displayed verbatim: marks of the letter's own script,
// and accents for which there is a character of letter and accent in one. All others could deceive, such
// as a line that crosses a word out, a dot on an i, or the second of two marks in the same place.
func spelledMarks(letter rune, text []byte) (n int) {
	if len(text) == 0 || text[0] < utf8.RuneSelf || !unicode.IsLetter(letter) {
		return 0
	}
	seen := make([]rune, 0, maxMarks)
	for len(seen) < maxMarks {
		r, size := utf8.DecodeRune(text[n:])
		if !unicode.Is(unicode.M, r) || slices.Contains(seen, r) {
			return n
		}
		seen = append(seen, r)
		if !ofSameScript(letter, r) && !composes(letter, seen) {
			return n
		}
		n += size
	}
	return n
}

// ofSameScript reports whether letter and mark are of one script whose marks are visible. Scripts with
// invisible ones, such as the stackers of Khmer and Myanmar, are not among them.
func ofSameScript(letter, mark rune) bool {
	if unicode.Is(unicode.Variation_Selector, mark) {
		return false
	}
	for _, script := range [...]*unicode.RangeTable{
		unicode.Arabic, unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi, unicode.Hebrew, unicode.Kannada, unicode.Lao,
		unicode.Malayalam, unicode.Oriya, unicode.Sinhala, unicode.Tamil, unicode.Telugu, unicode.Thaana, unicode.Thai,
	} {
		if unicode.Is(script, letter) {
			return unicode.Is(script, mark) || script == unicode.Arabic && isArabicVowel(mark)
		}
	}
	return false
}

// isArabicVowel reports whether a mark is a vowel sign of Arabic. Unicode counts them to several scripts.
func isArabicVowel(mark rune) bool { return mark >= 0x064B && mark <= 0x0655 || mark == 0x0670 }

// composes reports whether there is a harmless character that means a letter with marks.
func composes(letter rune, marks []rune) bool {
	one := norm.NFC.Bytes([]byte(string(letter) + string(marks)))
	r, size := utf8.DecodeRune(one)
	return size == len(one) && concernOf(r, size) == harmless
}
