package worker

import (
	"hash/maphash"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// duplicateFilter reports whether an id was ever added, as far back as its generations reach. It
// may report an unknown id as known, never the other way round: a false positive costs a review by
// a person, a false negative would cost a second run. It is a chain of Bloom filters. When the
// newest is full, the oldest is dropped.
type duplicateFilter struct {
	seed        maphash.Seed
	generations []generation // oldest first
	gaveUp      bool         // an id was added before the oldest generation began
}

type generation struct {
	from time.Time
	bits []uint64 // nil until the first id
	n    int
}

const (
	// generationIDs is the capacity of a generation. With 16 bits and 8 probes per id, a full one
	// has a false positive rate of 1 in 1,700.
	generationIDs  = 1 << 19
	generationBits = 16 * generationIDs
	filterProbes   = 8
	// generationsKept generations take 8 MiB and reach back two minutes even at 30,000 calls a
	// second.
	generationsKept = 8
	// coverSlack allows for the delivery time of a query.
	coverSlack = 15 * time.Second
)

func newDuplicateFilter(now time.Time) duplicateFilter {
	return duplicateFilter{seed: maphash.MakeSeed(), generations: []generation{{from: now}}}
}

func (s *duplicateFilter) add(id schema.CallID, now time.Time) {
	g := &s.generations[len(s.generations)-1]
	if g.n >= generationIDs {
		g = s.next(now)
	}
	if g.bits == nil {
		g.bits = make([]uint64, generationBits/64)
	}
	g.n++
	at, step := s.probes(id)
	for range filterProbes {
		i := at % generationBits
		g.bits[i/64] |= 1 << (i % 64)
		at += step
	}
}

// next starts a new generation.
func (s *duplicateFilter) next(now time.Time) *generation {
	g := generation{from: now}
	if len(s.generations) == generationsKept {
		g.bits = s.generations[0].bits
		clear(g.bits)
		s.generations = append(s.generations[:0], s.generations[1:]...)
		s.gaveUp = true
	}
	s.generations = append(s.generations, g)
	return &s.generations[len(s.generations)-1]
}

func (s *duplicateFilter) probes(id schema.CallID) (at, step uint32) {
	h := maphash.String(s.seed, string(id))
	return uint32(h), uint32(h>>32) | 1
}

// maybe reports whether the id may have been added; false is certain.
func (s *duplicateFilter) maybe(id schema.CallID) bool {
	at, step := s.probes(id)
	for i := range s.generations {
		if s.generations[i].has(at, step) {
			return true
		}
	}
	return false
}

func (g *generation) has(at, step uint32) bool {
	if g.bits == nil {
		return false
	}
	for range filterProbes {
		i := at % generationBits
		if g.bits[i/64]&(1<<(i%64)) == 0 {
			return false
		}
		at += step
	}
	return true
}

// covers reports whether the filter still holds every id added within the given time; zero means
// any time.
func (s *duplicateFilter) covers(within time.Duration, now time.Time) bool {
	return !s.gaveUp || within > 0 && now.Add(-within-coverSlack).After(s.generations[0].from)
}
