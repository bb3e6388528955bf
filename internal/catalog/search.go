package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// index finds the tools of one server by their words. It is made once for each
// definitions, so that a change of one server is not everybody's work.
type index struct {
	tools   []*schema.Tool // by name
	lengths []float64      // of their texts
	places  map[string]int // by name, in tools
	words   map[string][]posting
}

// posting says that a tool has a word.
type posting struct {
	at     int32 // in index.tools
	weight float64
}

func newIndex(tools []*schema.Tool) index {
	x := index{tools: slices.Clone(tools), places: make(map[string]int, len(tools)), words: make(map[string][]posting)}
	slices.SortFunc(x.tools, func(a, b *schema.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for i, t := range x.tools {
		terms := format.TermsOf(t)
		x.places[t.Name] = i
		x.lengths = append(x.lengths, terms.Length())
		for word, weight := range terms {
			x.words[word] = append(x.words[word], posting{int32(i), weight})
		}
	}
	return x
}

// segment is the index of one server in a search.
type segment struct {
	server *server
	*index
	off  []bool // the tools that are left out; nil for none
	left int    // the number of tools that are not
}

// leaveOut takes tools out of the search.
func (s *segment) leaveOut(names []string) {
	s.left = len(s.tools)
	for _, name := range names {
		at, ok := s.places[name]
		if !ok {
			continue
		}
		if s.off == nil {
			s.off = make([]bool, len(s.tools))
		}
		if !s.off[at] {
			s.off[at] = true
			s.left--
		}
	}
}

func (s *segment) out(at int32) bool { return s.off != nil && s.off[at] }

// hit is a tool that has to do with a query.
type hit struct {
	segment *segment
	at      int32
	score   float64
	place   int // among all tools
}

// before says which of two hits is the better one; of equal ones it is the earlier.
func before(a, b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place))
}

// find returns the tools that have to do with the query, the best first, and at most
// that number (0: all). It scores by [format.Relevance] over the tools of all segments,
// one after the other, and looks only at tools that have a word of the query.
func find(in []segment, query string, most int) []hit {
	tools := 0
	for i := range in {
		tools += in[i].left
	}
	average := 0.0
	for i := range in {
		for at, length := range in[i].lengths {
			if !in[i].out(int32(at)) {
				average += length / float64(tools)
			}
		}
	}
	scores := make([][]float64, len(in)) // nil where nothing was found
	for _, word := range format.Words(query) {
		with := 0
		for i := range in {
			for _, p := range in[i].words[word] {
				if !in[i].out(p.at) {
					with++
				}
			}
		}
		if with == 0 {
			continue
		}
		rare := format.Rarity(tools, with)
		for i := range in {
			s := &in[i]
			for _, p := range s.words[word] {
				if s.out(p.at) {
					continue
				}
				if scores[i] == nil {
					scores[i] = make([]float64, len(s.tools))
				}
				scores[i][p.at] += format.Relevance(rare, p.weight, s.lengths[p.at], average)
			}
		}
	}
	var hits []hit
	place := 0
	for i := range in {
		for at, score := range scores[i] {
			if score <= 0 {
				continue
			}
			h := hit{&in[i], int32(at), score, place + at}
			if most <= 0 {
				hits = append(hits, h)
				continue
			}
			// Of thousands the few best are kept in order.
			if len(hits) == most && before(h, hits[most-1]) > 0 {
				continue
			}
			to, _ := slices.BinarySearchFunc(hits, h, before)
			if len(hits) == most {
				hits = hits[:most-1]
			}
			hits = slices.Insert(hits, to, h)
		}
		place += len(in[i].tools)
	}
	if most <= 0 {
		slices.SortFunc(hits, before)
	}
	return hits
}

// Search returns the callable tools that have to do with the query, the best first,
// and at most that many (0: all). server is "" for all servers; offline says that tools
// which no worker can run now count as well. callable is how many
// tools can be called, unknown the servers whose tools are not known. The error is of
// KindNotFound for a server that is not there. The work grows with the tools that are
// found, hardly with those that are not.
func (c *Catalog) Search(query, server string, most int, offline bool) (found []Tool, callable int, unknown []string, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if server != "" && c.servers[server] == nil {
		return nil, 0, nil, c.noServer(server)
	}
	off := c.standing.Load()
	in := make([]segment, 0, len(c.servers))
	for id, s := range c.servers {
		switch {
		case server != "" && id != server:
		case s.defs == nil:
			unknown = append(unknown, id)
		case s.view.Offline != "" && !offline:
		case s.pins.of("") == unrecorded:
			unknown = append(unknown, id)
		default:
			g := segment{server: s, index: &s.defs.found}
			g.leaveOut(s.pins.leaveOut(off.namesOff(id, s.defs.order)))
			callable += g.left
			in = append(in, g)
		}
	}
	slices.Sort(unknown)
	slices.SortFunc(in, func(a, b segment) int { return strings.Compare(a.server.view.ID, b.server.view.ID) })
	hits := find(in, query, most)
	found = make([]Tool, len(hits))
	for i, h := range hits {
		found[i] = c.toolLocked(h.segment.server, h.segment.tools[h.at])
	}
	return found, callable, unknown, nil
}
