package search

import (
	"cmp"
	"math"
	"slices"
)

// The ranking: BM25F. The figures were chosen on public data; see docs/reference/search.md.
const (
	saturation = 0.9
	// nearWeight is what a word counts that is only similar to one of the query.
	nearWeight = 0.7
	fewTools   = 100
)

var (
	fieldWeight = [fields]float64{inName: 2, inTitle: 1.5, inServer: 0.5, inDescription: 0.35, inParameters: 0.5, inLabels: 2}
	lengthNorm  = [fields]float64{inName: 0.5, inTitle: 0.5, inServer: 0.5, inDescription: 0.6, inParameters: 0.6, inLabels: 0.5}
)

// Hit is a tool that fits a query.
type Hit struct {
	Part  int // the number of the part in what was searched
	At    int // the place in the part; see [Part.Tool]
	Score float64
	place int // among all tools
}

// Result is what was found.
type Result struct {
	Hits []Hit
	// Unmatched are the words of the query that no tool has, as they were written.
	Unmatched []string
}

// tally is what is known of one tool during a search.
type tally struct {
	score, share float64 // share: of the weight of the words that say what the tool is for
	words        int32   // the number of those words
	named        bool    // one of them is in the name, the title, the labels or the server
}

func before(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.place, b.place))
}

// Find returns the tools that fit the query, the best first, and at most that number (0: all).
// It returns none where no tool fits, which is not the same as that no tool has a word of the
// query: see docs/reference/search.md. Of two that fit as well, the earlier one comes first. The
// work grows with the number of tools that have a word of the query. It is safe for concurrent use.
func Find(parts []Part, query string, most int) (r Result) {
	f := finder{parts: parts, tallies: make([][]tally, len(parts))}
	f.measure()
	f.weigh(parse(query), &r)
	if !f.anyFits() {
		return r
	}
	place := 0
	for i := range parts {
		for at := range f.tallies[i] {
			if t := &f.tallies[i][at]; t.score > 0 {
				r.add(Hit{i, at, t.score, place + at}, most)
			}
		}
		place += len(parts[i].tools)
	}
	if most <= 0 {
		slices.SortFunc(r.Hits, before)
	}
	return r
}

// add takes in a hit. Of thousands the few best are kept in order.
func (r *Result) add(h Hit, most int) {
	switch {
	case most <= 0:
		r.Hits = append(r.Hits, h)
		return
	case len(r.Hits) == most && before(h, r.Hits[most-1]) > 0:
		return
	case len(r.Hits) == most:
		r.Hits = r.Hits[:most-1]
	}
	to, _ := slices.BinarySearchFunc(r.Hits, h, before)
	r.Hits = slices.Insert(r.Hits, to, h)
}

type finder struct {
	parts   []Part
	total   int             // tools that are searched
	average [fields]float64 // length of each field
	content float64         // the weight of the words that say what the tool is for
	tallies [][]tally       // by part and place; nil where nothing was found
}

func (f *finder) measure() {
	var sum [fields]float64
	for i := range f.parts {
		p := &f.parts[i]
		f.total += p.left
		for in := range fields {
			sum[in] += p.sum[in]
		}
		for at := range p.hidden {
			if p.hidden[at] {
				for in, n := range p.lengths[at] {
					sum[in] -= float64(n)
				}
			}
		}
	}
	for in := range fields {
		f.average[in] = max(sum[in]/float64(max(f.total, 1)), 1e-9)
	}
}

// with is the number of tools that have the word.
func (f *finder) with(word string) (n int) {
	for i := range f.parts {
		p := &f.parts[i]
		if p.hidden == nil {
			n += len(p.postings[word])
			continue
		}
		for _, x := range p.postings[word] {
			if !p.hides(x.at) {
				n++
			}
		}
	}
	return n
}

// rarity is what a word counts that this number of the tools have. Of a few tools all may have a
// word, and still that says what they are for: they count as part of more.
func (f *finder) rarity(with int) float64 {
	return math.Log(1 + (float64(max(f.total, fewTools)-with)+0.5)/(float64(with)+0.5))
}

func (f *finder) weigh(asked []term, r *Result) {
	for _, t := range asked {
		word, times := t.word, 1.0
		n := f.with(word)
		if n == 0 {
			if word = similar(f.parts, t.word); word != "" {
				n, times = f.with(word), nearWeight
			}
			if t.content && !slices.Contains(r.Unmatched, t.written) {
				r.Unmatched = append(r.Unmatched, t.written)
			}
		}
		rare := f.rarity(n)
		if t.content {
			f.content += rare
		}
		if n > 0 {
			f.add(word, rare, times, t.content)
		}
	}
}

func (f *finder) add(word string, rare, times float64, content bool) {
	for i := range f.parts {
		p := &f.parts[i]
		for j := range p.postings[word] {
			x := &p.postings[word][j]
			if p.hides(x.at) {
				continue
			}
			if f.tallies[i] == nil {
				f.tallies[i] = make([]tally, len(p.tools))
			}
			t := &f.tallies[i][x.at]
			n := 0.0
			for in, k := range x.times {
				if k > 0 {
					n += fieldWeight[in] * float64(k) / (1 - lengthNorm[in] + lengthNorm[in]*float64(p.lengths[x.at][in])/f.average[in])
				}
			}
			t.score += times * rare * n * (saturation + 1) / (n + saturation)
			if content {
				t.words++
				t.share += rare
				t.named = t.named || x.times[inName]+x.times[inTitle]+x.times[inServer]+x.times[inLabels] > 0
			}
		}
	}
}
