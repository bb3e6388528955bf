package yamldoc

import "strings"

// OneLine replaces line breaks and control characters with spaces, so that untrusted text can
// neither break a report into lines nor control a terminal.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// Nearest returns the most similar known name by edit distance, or "" if none is similar. It
// ignores case, "-", "_", "." and spaces.
func Nearest(name string, known []string) string {
	best, least := "", 0
	written := folded(name)
	for _, candidate := range known {
		other := folded(candidate)
		d := distance(written, other)
		if d > max(1, min(len(written), len(other))/3) {
			continue
		}
		if best == "" || d < least || d == least && candidate < best {
			best, least = candidate, d
		}
	}
	return best
}

func folded(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name[:min(len(name), 200)]))
}

// distance returns the edit distance of a and b: the number of insertions, removals,
// replacements and swaps of neighbouring letters.
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
