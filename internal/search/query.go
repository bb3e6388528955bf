package search

import (
	"slices"
	"strings"
	"unicode"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// Limits of a query.
const (
	maxQuery = 2 << 10 // bytes
	maxWords = 64
)

// term is one word of a query.
type term struct {
	word    string // in indexed form
	written string // as the caller wrote it, for the response
	content bool   // describes the purpose of the tool; not a function word or number
}

// parse returns the words of a query without duplicates, in order. A word that is indexed as
// several words, such as readFile, gives several terms.
func parse(query string) (all []term) {
	seen := make(map[string]bool)
	for written := range strings.FieldsSeq(truncate.Head(query, maxQuery)) {
		words(written, false, func(word string) {
			if seen[word] || len(all) == maxWords {
				return
			}
			seen[word] = true
			all = append(all, term{word: word, written: trimmed(written), content: !grammar[word] && !isValue(word)})
		})
	}
	return all
}

// trimmed removes punctuation around a word, and non-printable characters.
func trimmed(written string) string {
	written = strings.TrimFunc(written, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return truncate.Head(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, written), 64)
}

// isValue reports whether a word is a number, such as 4th, or a letter or two, such as the code of
// a state. Such words are arguments and not the purpose of a tool.
func isValue(word string) bool {
	return len(word) <= 2 && isPlain(word) || word[0] >= '0' && word[0] <= '9'
}

// grammar are function words in their indexed form. They affect the ranking, but no tool matches
// because of them alone. Times and amounts are nearly always arguments.
var grammar = grammarWords(`a an the of to in on at by for from with within into onto and or but not no nor if then than so such as
	is are was were be been being am do does did done have has had can could will would shall should may might must
	i me my mine we us our you your yours he him his she her it its they them their
	this that these those there here what which who whom whose when where why how
	about over under between up down out off again please let want need like get help tell
	some any all each every other another more most much many few very just also only too both
	s t m re ve ll d don
	one two three four five six seven eight nine ten first second last next
	today tomorrow yesterday now day days week weeks month months year years
	monday tuesday wednesday thursday friday saturday sunday
	january february march april june july august september october november december`)

func grammarWords(list string) map[string]bool {
	set := make(map[string]bool)
	words(list, false, func(w string) { set[w] = true })
	return set
}

// near reports whether two words differ by one letter: missing, added, replaced, or swapped with
// its neighbor.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	return i == len(a) || a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// minNear is the minimum length of a word for similar words.
const minNear = 7

// similar returns the most likely correct form of a misspelled word, or "", and the number of tools
// that have it: of the indexed words that are [near] and start with the same two letters, the one
// that most of the tools which may be found have.
func (f *finder) similar(word string) (best string, most int) {
	if len(word) < minNear || !isPlain(word) || isValue(word) {
		return "", 0
	}
	counted := make(map[string]bool)
	for i := range f.parts {
		s := f.parts[i].Segment
		from, _ := slices.BinarySearch(s.vocabulary, word[:2])
		for _, w := range s.vocabulary[from:] {
			if !strings.HasPrefix(w, word[:2]) {
				break
			}
			if counted[w] || !near(w, word) {
				continue
			}
			counted[w] = true
			if n := f.with(w); n > most || n > 0 && n == most && w < best {
				best, most = w, n
			}
		}
	}
	return best, most
}
