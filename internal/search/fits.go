package search

// A tool matches if it has three content words of the query, or two of which one names the tool, or
// a large enough share of the weight of these words. The shares were tuned on
// testdata/no-answer-tuning.txt.
const (
	enoughWords  = 3
	shareOfTwo   = 0.5  // with two words, none of which names the tool
	shareOfName  = 0.35 // with one word that names the tool
	shareOfOther = 0.46 // with one word elsewhere
)

// isRelevant reports whether a tool matches the query well enough. content is the weight of all content
// words, including those that no tool has.
func (t *toolMatch) isRelevant(content float64) bool {
	switch {
	case t.score <= 0:
		return false
	case content == 0: // the query has only function words, and tools may have such names
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

// anyFits reports whether the query has a match. If it has one, weaker matches follow it, because a
// long request has the words of one tool among many others.
func (f *finder) anyFits() bool {
	for i := range f.tallies {
		for at := range f.tallies[i] {
			if f.tallies[i][at].isRelevant(f.content) {
				return true
			}
		}
	}
	return false
}
