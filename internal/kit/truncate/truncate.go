// Package truncate bounds texts in bytes, and never splits a character.
//
// It owns the ellipsis: [Text] and [Within] end a text that is not whole with [Mark], [Head] and
// [Tail] say nothing. A text within its bound is returned as it is, valid UTF-8 or not.
//
// It refuses to count characters or columns: bounds in those are of the few places that have
// them from somebody else, such as a provider or a terminal. Packages of pkg cannot import it.
package truncate

import "unicode/utf8"

// Mark says that a text is not whole.
const Mark = "…"

// Head returns the first bytes of a text, at most that many.
func Head[T ~string | ~[]byte](text T, most int) T {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	for end := most; end > most-utf8.UTFMax && end >= 0; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:most] // it is not UTF-8
}

// Tail returns the last bytes of a text, at most that many.
func Tail[T ~string | ~[]byte](text T, most int) T {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	return Whole(text[len(text)-most:])
}

// Whole returns a text without the rest of a character that it begins with.
func Whole[T ~string | ~[]byte](text T) T {
	for i := range min(len(text), utf8.UTFMax) {
		if utf8.RuneStart(text[i]) {
			return text[i:]
		}
	}
	if len(text) < utf8.UTFMax {
		return text[len(text):]
	}
	return text // it is not UTF-8
}

// Text returns the first bytes of a text, at most that many, and [Mark] if there are more.
func Text(text string, most int) string {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	return Head(text, most) + Mark
}

// Within is [Text] with a bound that counts the mark too.
func Within(text string, most int) string {
	if most = max(most, 0); len(text) <= most {
		return text
	}
	return Head(text, most-len(Mark)) + Mark
}
