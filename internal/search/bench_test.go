package search

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// benchmarkQueries asks for tools in the words of their descriptions, and for one word that no
// tool has.
func benchmarkQueries(b *testing.B, parts []Part) {
	r := rand.New(rand.NewPCG(9, 9))
	queries := make([]string, 500)
	for i := range queries {
		p := &parts[r.IntN(len(parts))]
		var def struct{ Description string }
		if err := json.Unmarshal(p.Tool(r.IntN(p.Left())).Raw, &def); err != nil {
			b.Fatal(err)
		}
		all := strings.Fields(def.Description)
		from := r.IntN(len(all) - 10)
		queries[i] = strings.Join(all[from:from+4+r.IntN(6)], " ") + " unknownxx"
	}
	var took []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		Find(parts, queries[i%len(queries)], 10)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
