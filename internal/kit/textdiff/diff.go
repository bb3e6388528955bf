package textdiff

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// A diff shows whole lines. It includes all changed lines, and a few unchanged lines around each
// change.

// Op is the type of a line in a diff.
type Op byte

const (
	same    Op = ' '
	added   Op = '+'
	removed Op = '-'
	skipped Op = 0
)

// Line is one line of a diff. Head and tail are the parts of a changed line that are equal in its
// counterpart.
type Line struct {
	Op               Op
	Head, Body, Tail []byte
	Skipped          int // the number of equal lines omitted here, if the op is skipped
}

// Sign returns the prefix of the line.
func (l Line) Sign() string {
	if l.Op == skipped {
		return ""
	}
	return string(rune(l.Op))
}

// Is reports whether the type of the line has this name, for templates.
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

// around is the number of unchanged lines shown before and after a change.
const around = 3

// compared returns the diff of two texts, or nil if they are equal.
func compared(before, after []byte) []Line {
	if bytes.Equal(before, after) {
		return nil
	}
	return folded(fullDiff(before, after))
}

// fullDiff returns the diff with all unchanged lines. A line feed at the end of a text is shown as a
// separate line, so that a difference in it is visible.
func fullDiff(before, after []byte) []Line {
	return paired(differing(nil, strings.Split(string(before), "\n"), strings.Split(string(after), "\n"), searches))
}

// The library stops searching after a number of differences and treats the rest as replaced, which
// keeps its work linear. It is called again for the rest, a bounded number of times.
const (
	searched = 100
	searches = 40
)

// differing appends the diff of two texts.
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

// paired marks changes within lines. If equal numbers of lines were removed and added in one place,
// it compares each with its counterpart.
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

// within splits two lines into the common head and tail, and the differing middle.
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
		return // too little in common for useful marks
	}
	a.Head, a.Body, a.Tail = x[:head], x[head:len(x)-tail], x[len(x)-tail:]
	b.Head, b.Body, b.Tail = y[:head], y[head:len(y)-tail], y[len(y)-tail:]
}

// folded omits unchanged lines, except around changes.
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

// JSON returns the diff of two texts, or nil if they are equal. If both are JSON, it indents them
// first.
func JSON(before, after []byte) []Line {
	if x, y := indented(before), indented(after); x != nil && y != nil && !bytes.Equal(x, y) {
		return compared(x, y)
	}
	return compared(before, after) // not JSON, or different only in white space
}

// maxNesting limits the nesting of indented JSON, because each level indents everything within it.
const maxNesting = 64

// indented returns indented JSON, or nil if the text is not JSON or would grow too much.
func indented(raw []byte) []byte {
	var b bytes.Buffer
	if len(raw) == 0 || rawjson.ExceedsDepth(raw, maxNesting) || json.Indent(&b, raw, "", "  ") != nil || b.Len() > 4*len(raw)+1<<20 {
		return nil
	}
	return b.Bytes()
}
