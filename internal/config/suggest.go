package config

import (
	"fmt"
	"slices"
	"strings"
)

// hint is the mend for an unknown name: the known one that was likely meant,
// else a list of what there is.
func hint(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "no keys are known here; remove it."
	}
	const most = 12
	names := slices.Sorted(slices.Values(known))
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return "the keys here are " + strings.Join(names, ", ") + more + "."
}

// nearest returns the known name that is the fewest typing errors away, or ""
// where none is near. Case, "-" and "_" do not count.
func nearest(name string, known []string) string {
	best, bestDistance := "", 0
	plainName := plain(name)
	for _, candidate := range known {
		plainCandidate := plain(candidate)
		d := distance(plainName, plainCandidate)
		if limit := max(1, min(len(plainName), len(plainCandidate))/3); d > limit {
			continue
		}
		if best == "" || d < bestDistance || d == bestDistance && candidate < best {
			best, bestDistance = candidate, d
		}
	}
	return best
}

func plain(name string) string {
	if len(name) > 200 {
		name = name[:200]
	}
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
