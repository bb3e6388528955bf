package risk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// position is a place in a source; line and column count from 1, columns in
// characters. Line 0 is the source as a whole.
type position struct{ line, column int }

// Fault is one thing wrong with a policy or a file of examples.
type Fault struct {
	// Line and Column count from 1; Line 0 means the source as a whole.
	Line, Column int
	// Path is the key, such as "rules[0].match.tool"; "" is the whole.
	Path string
	// Message is a sentence that names the fault and the mend.
	Message string
}

// Faults is the error of a source: everything that is wrong with it, in the
// order of its lines. It is never empty.
type Faults struct {
	// Name is what the source was called.
	Name string
	List []Fault
}

// Error lists the faults, one on each line: "name:line:column: path: message".
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i, fault := range f.List {
		var b strings.Builder
		b.WriteString(f.Name)
		if fault.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", fault.Line, fault.Column)
		}
		b.WriteString(": ")
		if fault.Path != "" {
			b.WriteString(fault.Path + ": ")
		}
		b.WriteString(fault.Message)
		lines[i] = oneLine(b.String())
	}
	return strings.Join(lines, "\n")
}

// maxFaults bounds a report; a file with more is likely not the one meant.
const maxFaults = 200

// report collects faults while a source is read.
type report struct{ list []Fault }

func (r *report) add(at position, path, format string, args ...any) {
	if len(r.list) <= maxFaults {
		r.list = append(r.list, Fault{Line: at.line, Column: at.column, Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// err returns what was collected as *Faults, or nil.
func (r *report) err(name string) error {
	if len(r.list) == 0 {
		return nil
	}
	if len(r.list) > maxFaults {
		r.list[maxFaults] = Fault{Line: r.list[maxFaults].Line, Column: 1, Message: fmt.Sprintf("more than %d faults; the rest is not listed.", maxFaults)}
	}
	slices.SortStableFunc(r.list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return &Faults{Name: name, List: r.list}
}

// quote shows a text of the outside in a sentence, cut where it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// oneLine keeps text of the outside from breaking a report into other lines or
// steering a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// hintAt is the mend for an unknown name: the known one that was likely meant,
// else what there is.
func hintAt(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(known)), ", ") + "."
}

// nearest returns the known name that is the fewest typing errors away, or "".
// Case, "-" and "_" do not count.
func nearest(name string, known []string) string {
	best, least := "", 0
	for _, candidate := range known {
		a, b := folded(name), folded(candidate)
		d := distance(a, b)
		if d > max(1, min(len(a), len(b))/3) || best != "" && d >= least {
			continue
		}
		best, least = candidate, d
	}
	return best
}

func folded(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name[:min(len(name), 100)]))
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
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
