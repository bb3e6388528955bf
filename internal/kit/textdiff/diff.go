package textdiff

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// A difference is shown line by line. Nothing of what changed is left out; of what
// did not, a few lines around each change stay.

// Op says what became of a line.
type Op byte

const (
	same    Op = ' '
	added   Op = '+'
	removed Op = '-'
	skipped Op = 0
)

// Line is one line of a difference. Head and tail are what a changed line has in
// common with the one that it replaces, or was replaced by.
type Line struct {
	Op               Op
	Head, Body, Tail []byte
	Skipped          int // how many lines were the same here, for an op of skipped
}

// Sign is what stands in front of the line.
func (l Line) Sign() string {
	if l.Op == skipped {
		return ""
	}
	return string(rune(l.Op))
}

// Is compares the kind of line with a word, for templates.
func (l Line) Is(word string) bool {
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
func compared(before, after []byte) []Line {
	if bytes.Equal(before, after) {
		return nil
	}
	return folded(whole(before, after))
}

// whole is the difference with all that did not change. A line feed at the very end
// of a text makes a line of its own, so that it does not get lost.
func whole(before, after []byte) []Line {
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
func differing(to []Line, a, b []string, left int) []Line {
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

func appendLines(to []Line, op Op, texts []string) []Line {
	for _, text := range texts {
		to = append(to, Line{Op: op, Body: []byte(text)})
	}
	return to
}

// paired marks within lines: where as many lines were removed as were added in
// their place, each is compared with its successor.
func paired(all []Line) []Line {
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
func within(a, b *Line) {
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
func folded(all []Line) []Line {
	near := make([]bool, len(all))
	for i, l := range all {
		if l.Op != same {
			for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
				near[k] = true
			}
		}
	}
	var out []Line
	for i, l := range all {
		switch {
		case near[i]:
			out = append(out, l)
		case len(out) > 0 && out[len(out)-1].Op == skipped:
			out[len(out)-1].Skipped++
		default:
			out = append(out, Line{Op: skipped, Skipped: 1})
		}
	}
	return out
}

// JSON returns the difference of two texts, nil where there is none, with line breaks where both are JSON.
func JSON(before, after []byte) []Line {
	if x, y := indented(before), indented(after); x != nil && y != nil && !bytes.Equal(x, y) {
		return compared(x, y)
	}
	return compared(before, after) // no JSON, or other spacing only
}

// maxNesting bounds how deep JSON with line breaks may nest: each level indents all within it.
const maxNesting = 64

// indented returns JSON with line breaks; nil where the text is no JSON, or would grow out
// of all proportion.
func indented(raw []byte) []byte {
	var b bytes.Buffer
	if len(raw) == 0 || rawjson.Deeper(raw, maxNesting) || json.Indent(&b, raw, "", "  ") != nil || b.Len() > 4*len(raw)+1<<20 {
		return nil
	}
	return b.Bytes()
}
