package search

// When a tool fits: it has three of the words that say what it is for, or two, one of which
// names it, or so much of the weight of these words. The shares were chosen on
// testdata/no-answer-tuning.txt.
const (
	enoughWords  = 3
	shareOfTwo   = 0.5  // by two words, none of which names the tool
	shareOfName  = 0.35 // by one word that names the tool
	shareOfOther = 0.46 // by one word elsewhere
)

// fits says that a tool has enough to do with the query to be an answer. content is the
// weight of all words that say what the tool is for, those included that no tool has.
func (t *tally) fits(content float64) bool {
	switch {
	case t.score <= 0:
		return false
	case content == 0: // the query has grammar only, and there may be tools with such names
		return true
	case t.words >= enoughWords:
		return true
	case t.words == 2:
		return t.named || t.share >= shareOfTwo*content
	case t.named:
		return t.share >= shareOfName*content
	}
	return t.share >= shareOfOther*content
}

// anyFits says that the query has an answer. Where it has one, what is less fitting follows
// it: a long request has the words of one tool among many others.
func (f *finder) anyFits() bool {
	for i := range f.tallies {
		for at := range f.tallies[i] {
			if f.tallies[i][at].fits(f.content) {
				return true
			}
		}
	}
	return false
}
