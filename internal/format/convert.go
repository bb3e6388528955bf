package format

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// Kinds of [Note].
const (
	// NoteSkipped: a tool or a call is missing from the conversion.
	NoteSkipped = "skipped"
	// NoteDropped: a part has no counterpart in the other format, and is missing from it.
	NoteDropped = "dropped"
	// NoteChanged: a name, an id, a schema or arguments are other than they were.
	NoteChanged = "changed"
)

// Note is one difference between what was converted and what came of it.
type Note struct {
	Kind string `json:"kind"`
	// Pointer is a JSON pointer (RFC 6901) into what was converted: it begins with /tools or
	// /calls. Names longer than 128 bytes are truncated in it.
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// Conversion is what came of [Convert].
type Conversion struct {
	// Tools is the list of tools as a request to the provider has it, for MCP a list of
	// definitions; nil where no tools were given.
	Tools json.RawMessage
	// Calls is the list of tool calls as the provider's message has it (tool_calls, items of
	// output, content blocks or parts), for MCP of requests; nil where no calls were given.
	Calls json.RawMessage
	// Notes lists every part of the input that is not in the output as it was, in the order
	// of the input, tools first.
	Notes []Note
}

// maxNotes bounds the notes of one conversion; the last one has the number of the others.
const maxNotes = 1_000

// Convert converts tool definitions and tool calls from one format to another. tools is a
// provider's list of tools, an object that has it as its member tools, or one tool; calls is
// all that [Format.Calls] takes. Either can be nil. Calls of tools that are given too get
// their arguments under the names that the converted schemas have. What is converted to its
// own format stays as it is.
//
// Nothing is left out silently: each part is in the result, or has a note. The error is of
// KindInvalidRequest, for text that is not JSON or nests too deep.
func Convert(from, to Format, tools, calls []byte) (Conversion, error) {
	var out Conversion
	schemas := make(map[string]*value) // of the source, by the name of the tool
	notes := noteList{all: make([]Note, 0)}
	if tools != nil {
		root, err := read(tools)
		if err != nil {
			return Conversion{}, unreadable("The tools cannot be read: %w.", err)
		}
		c := newConverter(from, to, root)
		out.Tools = c.tools(root, schemas)
		c.report("tools", &notes)
	}
	if calls != nil {
		root, err := read(calls)
		if err != nil {
			return Conversion{}, unreadable("The tool calls cannot be read: %w.", err)
		}
		c := newConverter(from, to, root)
		out.Calls = c.calls(root, schemas)
		c.report("calls", &notes)
	}
	out.Notes = notes.done()
	return out, nil
}

// noteList gathers notes up to a bound.
type noteList struct {
	all  []Note
	more int
}

func (l *noteList) add(n Note) {
	if len(l.all) >= maxNotes {
		l.more++
		return
	}
	l.all = append(l.all, n)
}

func (l *noteList) done() []Note {
	if l.more > 0 {
		l.all = append(l.all, Note{NoteDropped, "", fmt.Sprintf("%d more differences are not listed.", l.more)})
	}
	return l.all
}

// converter converts one document. It notes which values were taken over, so that the others
// can be reported.
type converter struct {
	from, to Format
	root     *value
	taken    map[*value]bool
	noted    map[*value][]Note // the pointer of a note is below the value here
	made     int               // ids that were tried for calls without one
}

func newConverter(from, to Format, root *value) *converter {
	return &converter{from: from, to: to, root: root, taken: make(map[*value]bool), noted: make(map[*value][]Note)}
}

// take says that the values are in the result, or have notes of their own.
func (c *converter) take(all ...*value) {
	for _, v := range all {
		if v != nil {
			c.taken[v] = true
		}
	}
}

// note adds a note on v, or with below on what the pointer below it leads to.
func (c *converter) note(v *value, kind, below, format string, args ...any) {
	c.take(v)
	c.noted[v] = append(c.noted[v], Note{kind, below, fmt.Sprintf(format, args...)})
}

// on adds a note on a value whose parts are looked at on their own.
func (c *converter) on(v *value, kind, format string, args ...any) {
	c.noted[v] = append(c.noted[v], Note{kind, "", fmt.Sprintf(format, args...)})
}

// report lists the notes in the order of the document, and a note for each value that
// nobody took.
func (c *converter) report(member string, into *noteList) {
	on := make(map[*value]bool) // values with something taken or noted inside
	var mark func(v *value) bool
	mark = func(v *value) bool {
		hit := c.taken[v] || len(c.noted[v]) > 0
		if !c.taken[v] {
			for i := range v.members {
				hit = mark(v.members[i].value) || hit
			}
			for _, item := range v.items {
				hit = mark(item) || hit
			}
		}
		if hit {
			on[v] = true
		}
		return hit
	}
	mark(c.root)
	path := []string{member}
	var walk func(v *value)
	walk = func(v *value) {
		for _, n := range c.noted[v] {
			n.Pointer = pointer(path) + n.Pointer
			into.add(n)
		}
		switch {
		case c.taken[v]:
		case !on[v] && says(v):
			into.add(Note{NoteDropped, pointer(path), "The format " + string(c.to) + " has no place for it here."})
		case on[v]:
			for _, m := range v.members {
				if frame(m.name) && !on[m.value] {
					continue
				}
				path = append(path, m.name)
				walk(m.value)
				path = path[:len(path)-1]
			}
			for i, item := range v.items {
				path = append(path, strconv.Itoa(i))
				walk(item)
				path = path[:len(path)-1]
			}
		}
	}
	if says(c.root) {
		walk(c.root)
	}
}

// says reports whether something is lost with the value.
func says(v *value) bool {
	return v.kind != 'n' && !(v.isList() && len(v.items) == 0) && !(v.isString() && v.text() == "")
}

// frame reports whether a member only tells what the object around it is, which the
// other format has its own way for.
func frame(name string) bool {
	return slices.Contains([]string{"type", "role", "object", "jsonrpc", "method", "index"}, name)
}

// pointer is the JSON pointer of a path.
func pointer(path []string) string {
	const most = 128
	var b []byte
	for _, token := range path {
		b = append(append(b, '/'), escape(truncate.Within(token, most))...)
	}
	return string(b)
}

// toolName returns the name nearest to the given one that the format takes.
func (f Format) toolName(name string) string {
	if f == MCP {
		return MCPNameAs(name, "", name)
	}
	return NameAs(name, "", name)
}

// named returns the name for the target, and notes where it is another one.
func (c *converter) named(v *value) string {
	name := v.text()
	c.take(v)
	to := c.to.toolName(name)
	if to != name {
		c.note(v, NoteChanged, "", "The name is %s here, because the format %s does not accept the original.", quote(to), c.to)
	}
	return to
}

// sentence is the text of an error for a note.
func sentence(e *schema.Error) string { return e.Detail }
