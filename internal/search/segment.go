package search

import (
	"cmp"
	"maps"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// Segment is the index of the tools of one server. A new one is created for each version of their
// definitions. It never changes and is safe for concurrent use.
type Segment struct {
	tools    []*schema.Tool // by name
	places   map[string]int // index in tools, by name
	lengths  [][fields]float32
	sum      [fields]float64 // sum of lengths
	postings map[string][]posting

	vocabulary []string // the sorted keys of postings
}

// posting is the frequency of a word in each field of a tool.
type posting struct {
	at    int32 // index in Segment.tools
	times [fields]float32
}

// NewSegment creates the index of the tools of one server. labels returns the labels of a tool by
// its name; it may be nil.
func NewSegment(tools []*schema.Tool, labels func(tool string) Labels) *Segment {
	s := &Segment{tools: slices.Clone(tools), places: make(map[string]int, len(tools)), lengths: make([][fields]float32, len(tools)), postings: make(map[string][]posting)}
	slices.SortFunc(s.tools, func(a, b *schema.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for i, tool := range s.tools {
		var own Labels
		if labels != nil {
			own = labels(tool.Name)
		}
		t := termsOf(tool, own)
		s.places[tool.Name], s.lengths[i] = i, t.lengths
		for f, n := range t.lengths {
			s.sum[f] += float64(n)
		}
		for word, times := range t.words {
			s.postings[word] = append(s.postings[word], posting{int32(i), *times})
		}
	}
	s.vocabulary = slices.Sorted(maps.Keys(s.postings))
	return s
}

// Part is the part of a segment that a search may find.
type Part struct {
	*Segment
	hidden []bool // by index; nil means none
	left   int    // the number of tools that are not hidden
}

// Without returns the part of a segment without the tools with these names. Unknown names are ignored.
func (s *Segment) Without(names []string) Part {
	p := Part{Segment: s, left: len(s.tools)}
	for _, name := range names {
		at, ok := s.places[name]
		if !ok {
			continue
		}
		if p.hidden == nil {
			p.hidden = make([]bool, len(s.tools))
		}
		if !p.hidden[at] {
			p.hidden[at] = true
			p.left--
		}
	}
	return p
}

// Left returns the number of tools that a search may find.
func (p *Part) Left() int { return p.left }

// Tool returns the tool of a hit.
func (p *Part) Tool(at int) *schema.Tool { return p.tools[at] }

func (p *Part) hides(at int32) bool { return p.hidden != nil && p.hidden[at] }
