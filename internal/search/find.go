package search

import (
	"cmp"
	"math"
	"slices"
)

// Parameters of the ranking (BM25F), tuned on public data; see docs/reference/search.md.
const (
	saturation = 0.9
	// nearWeight is the weight of a word that is only similar to one of the query.
	nearWeight = 0.7
	fewTools   = 100
)

var (
	fieldWeight = [fields]float64{inName: 2, inTitle: 1.5, inServer: 0.5, inDescription: 0.35, inParameters: 0.5, inLabels: 2}
	lengthNorm  = [fields]float64{inName: 0.5, inTitle: 0.5, inServer: 0.5, inDescription: 0.6, inParameters: 0.6, inLabels: 0.5}
)

// Hit is a tool that matches a query.
type Hit struct {
	Part  int // the index of the part that was searched
	At    int // the index in the part; see [Part.Tool]
	Score float64
	place int // among all tools
}

// Result is the result of a search.
type Result struct {
	Hits []Hit
	// Unmatched are the words of the query that no tool has, as written.
	Unmatched []string
}

// toolMatch is the state of one tool during a search.
type toolMatch struct {
	score, share float64 // share is the matched share of the weight of content words
	words        int32   // the number of matched content words
	named        bool    // one of them is in the name, the title, the labels or the server
}

func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.place, b.place))
}

// Find returns the tools that match the query, best first, at most that number (0 means all). It
// returns none if no tool matches, even if some have a word of the query; see
// docs/reference/search.md. Of two equal tools the earlier one comes first. The work grows with the
// number of tools that have a word of the query. It is safe for concurrent use.
func Find(parts []Part, query string, most int) (r Result) {
	f := finder{parts: parts, tallies: make([][]toolMatch, len(parts))}
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
		slices.SortFunc(r.Hits, compareHits)
	}
	return r
}

// add adds a hit. It keeps only the few best of thousands sorted.
func (r *Result) add(h Hit, most int) {
	switch {
	case most <= 0:
		r.Hits = append(r.Hits, h)
		return
	case len(r.Hits) == most && compareHits(h, r.Hits[most-1]) > 0:
		return
	case len(r.Hits) == most:
		r.Hits = r.Hits[:most-1]
	}
	to, _ := slices.BinarySearchFunc(r.Hits, h, compareHits)
	r.Hits = slices.Insert(r.Hits, to, h)
}

type finder struct {
	parts   []Part
	total   int             // number of searched tools
	average [fields]float64 // average length of each field
	content float64         // the weight of the content words
	tallies [][]toolMatch   // by part and index; nil for a part without matches
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

// with returns the number of tools that have the word and may be found.
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

// rarity returns the weight of a word that this number of tools have. With few tools, all may have
// a word that is still relevant, so they count as part of a larger number.
func (f *finder) rarity(with int) float64 {
	return math.Log(1 + (float64(max(f.total, fewTools)-with)+0.5)/(float64(with)+0.5))
}

func (f *finder) weigh(asked []term, r *Result) {
	for _, t := range asked {
		word, times := t.word, 1.0
		n := f.with(word)
		if n == 0 {
			word, n = f.similar(t.word)
			times = nearWeight
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
				f.tallies[i] = make([]toolMatch, len(p.tools))
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
