package risk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// Fault is one error in a policy or in a file of examples.
type Fault struct {
	// Line and Column start at 1. Line 0 means the whole source.
	Line, Column int
	// Path is the path of the key, such as "rules[0].match.tool". "" means the whole source.
	Path string
	// Message is a sentence that describes the error and the fix.
	Message string
}

// Faults is the error of a source. It holds all faults in the order of their lines, and at
// least one.
type Faults struct {
	// Name is the name of the source.
	Name string
	List []Fault
}

// Error lists the faults, one per line: "name:line:column: path: message".
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
		lines[i] = yamldoc.OneLine(b.String())
	}
	return strings.Join(lines, "\n")
}

// maxFaults limits a report. A file with more faults is probably not the intended one.
const maxFaults = 200

// report collects faults while a source is parsed.
type report struct{ list []Fault }

func (r *report) add(at yamldoc.Position, path, format string, args ...any) {
	if len(r.list) <= maxFaults {
		r.list = append(r.list, Fault{Line: at.Line, Column: at.Column, Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// err returns the collected faults as *Faults, or nil.
func (r *report) err(name string) error {
	if len(r.list) == 0 {
		return nil
	}
	if len(r.list) > maxFaults {
		r.list[maxFaults] = Fault{Line: r.list[maxFaults].Line, Column: 1, Message: fmt.Sprintf("more than %d faults; the others are not listed.", maxFaults)}
	}
	slices.SortStableFunc(r.list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return &Faults{Name: name, List: r.list}
}

// quote quotes untrusted text for a sentence and truncates it if it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// hintAt returns the fix for an unknown name: the most similar known name or, if none is
// similar, all known names.
func hintAt(name string, known []string) string {
	if near := yamldoc.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known names: " + strings.Join(slices.Sorted(slices.Values(known)), ", ") + "."
}
