package search

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// fusedBest is the number of similar tools that are fused, and the minimum number of tools
	// found by words.
	fusedBest = 50
	// fusedOffset is k of reciprocal rank fusion. Cormack, Clarke and Büttcher, SIGIR 2009.
	fusedOffset = 60
	// maxMeaning limits the embedded text of a tool, in bytes.
	maxMeaning = 2 << 10
)

// Meaning is the vector of a query and the vectors to compare it with.
type Meaning struct {
	// Query is the vector of the query, with length 1.
	Query []float32
	// Of returns the vector of a tool, with length 1, or nil if it has none.
	Of func(*schema.Tool) []float32
	// Least is the minimum cosine of similar vectors.
	Least float64
}

// MeaningText returns the embedded text of a tool: its server, name, title and description.
func MeaningText(tool *schema.Tool) string {
	var def struct {
		Title, Description string
		Annotations        struct{ Title string }
	}
	_ = json.Unmarshal(tool.Raw, &def) // members of another type are ignored
	title := cmp.Or(def.Title, def.Annotations.Title)
	return truncate.Head(strings.TrimSpace(strings.Join([]string{string(tool.Server) + " " + tool.Name, title, def.Description}, "\n")), maxMeaning)
}

// FindWith is [Find] with the word ranking fused with a vector ranking. A tool without a vector is
// ranked by words only. If no tool matches by words, tools with a similar vector are found. Score
// is the score of the fusion.
func FindWith(parts []Part, query string, m Meaning, most int) Result {
	byWords := 0 // 0 means all
	if most > 0 {
		byWords = max(fusedBest, most)
	}
	r := Find(parts, query, byWords)
	similar := m.rank(parts)
	fused := make(map[[2]int]*Hit, len(r.Hits)+len(similar))
	for _, ranking := range [][]Hit{r.Hits, similar} {
		for i, h := range ranking {
			at := [2]int{h.Part, h.At}
			if fused[at] == nil {
				h.Score = 0
				fused[at] = &h
			}
			fused[at].Score += 1 / float64(fusedOffset+i+1)
		}
	}
	r.Hits = make([]Hit, 0, len(fused))
	for _, h := range fused {
		r.Hits = append(r.Hits, *h)
	}
	slices.SortFunc(r.Hits, compareHits)
	if most > 0 && len(r.Hits) > most {
		r.Hits = r.Hits[:most]
	}
	return r
}

// rank returns the tools whose vectors are similar to the query, most similar first.
func (m *Meaning) rank(parts []Part) (hits []Hit) {
	place := 0
	var r Result
	for i := range parts {
		p := &parts[i]
		for at, tool := range p.tools {
			if p.hides(int32(at)) {
				continue
			}
			if cosine := dot(m.Query, m.Of(tool)); cosine >= m.Least && cosine > 0 {
				r.add(Hit{i, at, cosine, place + at}, fusedBest)
			}
		}
		place += len(p.tools)
	}
	return r.Hits
}

// dot returns the cosine of two vectors of length 1, or 0 if one is missing or belongs to another
// model.
func dot(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var sum float32
	for i, x := range a {
		sum += x * b[i]
	}
	return float64(sum)
}
