package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// Fault is one error in a configuration.
type Fault struct {
	// Path is the key, such as "worker.servers[0].timeout". It is empty for the whole file.
	Path string
	// Message is a sentence that names the fault and the fix.
	Message string
	// Where is "file:line:column", a variable or a flag. The loader sets it.
	Where string

	at place
}

// Faultf returns a fault of the key at path, for Validate methods. The path is relative to the
// struct that has the method. The sentence must not repeat secrets.
func Faultf(path, format string, args ...any) Fault {
	return Fault{Path: path, Message: fmt.Sprintf(format, args...)}
}

// Collector collects the faults of a Validate method.
type Collector []Fault

// Addf adds a fault of the key. See [Faultf].
func (c *Collector) Addf(key, format string, args ...any) {
	*c = append(*c, Faultf(key, format, args...))
}

// Positive adds a fault unless ok: the key must be greater than zero.
func (c *Collector) Positive(key string, ok bool) {
	if !ok {
		c.Addf(key, "must be greater than zero; omit the key for the default.")
	}
}

// Address adds a fault unless listen is a valid address to listen on.
func (c *Collector) Address(key, listen string) (ok bool) {
	wrong := AddressFault(listen)
	if wrong != "" {
		c.Addf(key, "%s", wrong)
	}
	return wrong == ""
}

// String returns the place, the key and the sentence on one line.
func (f Fault) String() string {
	var b strings.Builder
	for _, part := range []string{f.Where, f.Path} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	b.WriteString(f.Message)
	return yamldoc.OneLine(b.String())
}

// Faults is the error of a configuration: all its faults, first those of the file in its order,
// then those of variables and flags. It is never empty.
type Faults struct {
	List []Fault
}

// Error lists all faults, one on each line.
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i := range f.List {
		lines[i] = f.List[i].String()
	}
	return strings.Join(lines, "\n")
}

// maxFaults limits a report. A file with more faults is probably the wrong file.
const maxFaults = 200

// report collects faults while a configuration is read.
type report struct {
	list []Fault
	full bool
}

func (r *report) add(at place, path, format string, args ...any) {
	if len(r.list) == maxFaults {
		r.full = true
		return
	}
	r.list = append(r.list, Fault{Path: path, Message: fmt.Sprintf(format, args...), Where: at.String(), at: at})
}

// has reports whether there already is a fault at path, below it or above it.
func (r *report) has(path string) bool {
	return slices.ContainsFunc(r.list, func(f Fault) bool {
		return within(f.Path, path) || f.Path != "" && within(path, f.Path)
	})
}

// err returns the collected faults, sorted, as *Faults, or nil if there are none.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(a.at.layer, b.at.layer),
			cmp.Compare(a.at.line, b.at.line),
			cmp.Compare(a.at.column, b.at.column),
			cmp.Compare(a.Where, b.Where),
			cmp.Compare(a.Path, b.Path),
		)
	})
	if r.full {
		r.list = append(r.list, Fault{Message: fmt.Sprintf("more than %d faults; the others are not listed", maxFaults)})
	}
	return &Faults{List: r.list}
}

// layer is the source of a value. A later layer wins.
type layer int

const (
	layerFile layer = iota
	layerEnv
	layerFlag
)

// place is the position of a value. Lines and columns count from 1, columns in characters. Line 0
// is the source as a whole.
type place struct {
	layer        layer
	source       string
	line, column int
}

func (p place) String() string {
	if p.line == 0 {
		return p.source
	}
	return fmt.Sprintf("%s:%d:%d", p.source, p.line, p.column)
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	if key == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// joinName appends a name that an operator chose. It quotes a name that could be mistaken for part
// of the path.
func joinName(path, name string) string {
	if name != "" && strings.IndexFunc(name, func(c rune) bool { return c < '0' && c != '-' || strings.ContainsRune(".[]:;", c) }) < 0 {
		return join(path, name)
	}
	return path + "[" + quote(name) + "]"
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || root == "" || rest[0] == '.' || rest[0] == '[')
}
