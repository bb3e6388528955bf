package search

import (
	"slices"
	"strings"
	"unicode"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// Bounds of a query.
const (
	maxQuery = 2 << 10 // bytes
	maxWords = 64
)

// term is one word of a query.
type term struct {
	word    string // as it is indexed
	written string // as the caller wrote it, for the answer
	content bool   // says what the tool is for, and is neither grammar nor a number
}

// parse returns the words of a query, each once, in their order. A written word that is
// indexed as several words, such as readFile, is several terms.
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

// trimmed returns a word without the signs around it, and without what cannot be shown.
func trimmed(written string) string {
	written = strings.TrimFunc(written, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return truncate.Head(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, written), 64)
}

// isValue says that a word is a number, as in 4th, or a letter or two, such as the name of a
// state. These are arguments, and not what a tool is for.
func isValue(word string) bool {
	return len(word) <= 2 && isPlain(word) || word[0] >= '0' && word[0] <= '9'
}

// grammar are the words, as they are indexed, of which a query is not about: they rank tools,
// and no tool fits for them alone. Times and amounts are nearly always arguments.
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

// near says that two words differ by one letter that is missing, added, another, or has changed
// places with its neighbour.
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

// minNear is the shortest word for which similar words count.
const minNear = 7

// similar returns the word of the index that a misspelled one is most likely to be, "" for
// none: of those that are [near] and begin with the same two letters, the one that most tools have.
func similar(parts []Part, word string) string {
	if len(word) < minNear || !isPlain(word) || isValue(word) {
		return ""
	}
	with := make(map[string]int)
	for i := range parts {
		s := parts[i].Segment
		from, _ := slices.BinarySearch(s.vocabulary, word[:2])
		for _, w := range s.vocabulary[from:] {
			if !strings.HasPrefix(w, word[:2]) {
				break
			}
			if near(w, word) {
				with[w] += len(s.postings[w])
			}
		}
	}
	best := ""
	for w, n := range with {
		if best == "" || n > with[best] || n == with[best] && w < best {
			best = w
		}
	}
	return best
}
