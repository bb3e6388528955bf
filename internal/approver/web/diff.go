package web

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
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

// compared is the difference of two texts; nil where there is none.
func compared(before, after []byte) []line {
	if bytes.Equal(before, after) {
		return nil
	}
	return folded(whole(before, after))
}

// whole is the difference with all that did not change. A line feed at the very end
// of a text makes a line of its own, so that it does not get lost.
func whole(before, after []byte) []line {
	return paired(differing(nil, strings.Split(string(before), "\n"), strings.Split(string(after), "\n"), searches))
}

// The library stops searching after a number of differences and takes all that is left
// as replaced, which keeps its work linear. It is asked again for the rest, a bounded
// number of times.
const (
	searched = 100
	searches = 40
)

// differing appends the difference of two texts.
func differing(to []line, a, b []string, left int) []line {
	at := 0
	for _, d := range lcs.DiffLines(a, b) {
		to = appendLines(to, same, a[at:d.Start])
		at = d.End
		gone, come := a[d.Start:d.End], b[d.ReplStart:d.ReplEnd]
		if n := len(gone) + len(come); left > 1 && n > searched && n < len(a)+len(b) {
			to = differing(to, gone, come, left-1)
			continue
		}
		to = appendLines(to, removed, gone)
		to = appendLines(to, added, come)
	}
	return appendLines(to, same, a[at:])
}

func appendLines(to []line, op op, texts []string) []line {
	for _, text := range texts {
		to = append(to, line{Op: op, Body: []byte(text)})
	}
	return to
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
