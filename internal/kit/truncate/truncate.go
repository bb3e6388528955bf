// Package truncate limits texts to a number of bytes without splitting a character.
//
// It owns the ellipsis: [Text] and [Within] append [Mark] to a truncated text, [Head] and [Tail] do
// not. A text within the limit is returned unchanged, valid UTF-8 or not.
//
// It does not count characters or columns. The few places with such limits get them from outside,
// such as from a provider or a terminal. Packages of pkg cannot import it.
package truncate

import "unicode/utf8"

// Mark marks a truncated text.
const Mark = "…"

// Head returns the first bytes of a text, up to most.
func Head[T ~string | ~[]byte](text T, most int) T {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	for end := most; end > most-utf8.UTFMax && end >= 0; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:most] // not UTF-8
}

// Tail returns the last bytes of a text, up to most.
func Tail[T ~string | ~[]byte](text T, most int) T {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	return DropPartialRune(text[len(text)-most:])
}

// DropPartialRune returns a text without an incomplete character at its start.
func DropPartialRune[T ~string | ~[]byte](text T) T {
	for i := range min(len(text), utf8.UTFMax) {
		if utf8.RuneStart(text[i]) {
			return text[i:]
		}
	}
	if len(text) < utf8.UTFMax {
		return text[len(text):]
	}
	return text // not UTF-8
}

// Text returns the first bytes of a text, up to most, and appends [Mark] if there are more.
func Text(text string, most int) string {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	return Head(text, most) + Mark
}

// Within is like [Text], with a limit that includes the mark.
func Within(text string, most int) string {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	return Head(text, most-len(Mark)) + Mark
}
