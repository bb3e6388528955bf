package web

import (
	"bytes"
	"unicode/utf8"
)

// A difference is shown line by line. Nothing of what changed is left out; of what
// did not, a few lines around each change stay.

// op says what became of a line.
type op byte

const (
	same    op = ' '
	added   op = '+'
	removed op = '-'
	skipped op = 0
)

// line is one line of a difference. Head and tail are what a changed line has in
// common with the one that it replaces, or was replaced by.
type line struct {
	Op               op
	Head, Body, Tail []byte
	Skipped          int // how many lines were the same here, for an op of skipped
}

// Sign is what stands in front of the line.
func (l line) Sign() string {
	if l.Op == skipped {
		return ""
	}
	return string(rune(l.Op))
}

// Is compares the kind of line with a word, for templates.
func (l line) Is(word string) bool {
	switch word {
	case "added":
		return l.Op == added
	case "removed":
		return l.Op == removed
	case "skipped":
		return l.Op == skipped
	}
	return l.Op == same
}

// around is how many lines stay on either side of a change.
const around = 3

// maxCells bounds the work of one comparison; beyond it a stretch counts as
// replaced as a whole.
const maxCells = 4 << 20

// compared is the difference of two texts; nil where there is none.
func compared(before, after []byte) []line {
	if bytes.Equal(before, after) {
		return nil
	}
	return folded(whole(before, after))
}

// whole is the difference with all that did not change.
func whole(before, after []byte) []line {
	a, b := lines(before), lines(after)
	var all []line
	top := 0
	for top < len(a) && top < len(b) && bytes.Equal(a[top], b[top]) {
		all = append(all, line{Op: same, Body: a[top]})
		top++
	}
	end := 0
	for end < len(a)-top && end < len(b)-top && bytes.Equal(a[len(a)-1-end], b[len(b)-1-end]) {
		end++
	}
	all = append(all, middle(a[top:len(a)-end], b[top:len(b)-end])...)
	for _, l := range a[len(a)-end:] {
		all = append(all, line{Op: same, Body: l})
	}
	return paired(all)
}

// lines splits a text. A line feed at its very end makes a line of its own, so
// that it does not get lost.
func lines(b []byte) [][]byte { return bytes.Split(b, []byte("\n")) }

// middle compares what is left between the common ends, by the longest list of
// lines that both have in the same order.
func middle(a, b [][]byte) []line {
	var out []line
	n, m := len(a), len(b)
	i, j := 0, 0
	if n*m <= maxCells {
		common := make([]int32, (n+1)*(m+1))
		at := func(i, j int) *int32 { return &common[i*(m+1)+j] }
		for i := n - 1; i >= 0; i-- {
			for j := m - 1; j >= 0; j-- {
				if bytes.Equal(a[i], b[j]) {
					*at(i, j) = *at(i+1, j+1) + 1
				} else {
					*at(i, j) = max(*at(i+1, j), *at(i, j+1))
				}
			}
		}
		for i < n && j < m {
			switch {
			case bytes.Equal(a[i], b[j]):
				out = append(out, line{Op: same, Body: a[i]})
				i, j = i+1, j+1
			case *at(i+1, j) >= *at(i, j+1):
				out = append(out, line{Op: removed, Body: a[i]})
				i++
			default:
				out = append(out, line{Op: added, Body: b[j]})
				j++
			}
		}
	}
	for ; i < n; i++ {
		out = append(out, line{Op: removed, Body: a[i]})
	}
	for ; j < m; j++ {
		out = append(out, line{Op: added, Body: b[j]})
	}
	return out
}

// paired marks within lines: where as many lines were removed as were added in
// their place, each is compared with its successor.
func paired(all []line) []line {
	for i := 0; i < len(all); {
		from := i
		for i < len(all) && all[i].Op == removed {
			i++
		}
		gone := i - from
		for i < len(all) && all[i].Op == added {
			i++
		}
		if gone > 0 && i-from == 2*gone {
			for k := range gone {
				within(&all[from+k], &all[from+gone+k])
			}
		}
		if i == from {
			i++
		}
	}
	return all
}

// within splits two lines into what they share at either end and what differs.
func within(a, b *line) {
	x, y := a.Body, b.Body
	head := 0
	for head < len(x) && head < len(y) && x[head] == y[head] {
		head++
	}
	for head > 0 && head < len(x) && head < len(y) && !(utf8.RuneStart(x[head]) && utf8.RuneStart(y[head])) {
		head--
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	for tail > 0 && !(utf8.RuneStart(x[len(x)-tail]) && utf8.RuneStart(y[len(y)-tail])) {
		tail--
	}
	if head+tail < min(len(x), len(y))/4 {
		return // hardly anything in common: marks would say nothing
	}
	a.Head, a.Body, a.Tail = x[:head], x[head:len(x)-tail], x[len(x)-tail:]
	b.Head, b.Body, b.Tail = y[:head], y[head:len(y)-tail], y[len(y)-tail:]
}

// folded leaves out what did not change, except around changes.
func folded(all []line) []line {
	near := make([]bool, len(all))
	for i, l := range all {
		if l.Op != same {
			for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
				near[k] = true
			}
		}
	}
	var out []line
	for i, l := range all {
		switch {
		case near[i]:
			out = append(out, l)
		case len(out) > 0 && out[len(out)-1].Op == skipped:
			out[len(out)-1].Skipped++
		default:
			out = append(out, line{Op: skipped, Skipped: 1})
		}
	}
	return out
}

// comparedJSON is [compared], with line breaks where both are JSON.
func comparedJSON(before, after []byte) []line {
	if x, y := indented(before), indented(after); x != nil && y != nil && !bytes.Equal(x, y) {
		return compared(x, y)
	}
	return compared(before, after) // no JSON, or other spacing only
}
