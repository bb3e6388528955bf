package format

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/truncate"
)

// Kinds of [Note].
const (
	// NoteSkipped means that a tool or a call is missing from the conversion.
	NoteSkipped = "skipped"
	// NoteDropped means that a part is missing because the target format has no counterpart.
	NoteDropped = "dropped"
	// NoteChanged means that a name, an id, a schema or arguments differ from the input.
	NoteChanged = "changed"
)

// Note describes one difference between the input and the output of a conversion.
type Note struct {
	Kind string `json:"kind"`
	// Pointer is a JSON pointer (RFC 6901) into the input. It begins with /tools or /calls.
	// Names longer than 128 bytes are truncated in it.
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// Conversion is the result of [Convert].
type Conversion struct {
	// Tools is the list of tools for a request to the provider; for MCP, a list of definitions.
	// It is nil if no tools were given.
	Tools json.RawMessage
	// Calls is the list of tool calls for a message of the provider (tool_calls, items of
	// output, content blocks or parts); for MCP, a list of requests. It is nil if no calls were
	// given.
	Calls json.RawMessage
	// Notes lists every part of the input that is not in the output unchanged, in the order of
	// the input, tools first.
	Notes []Note
}

// maxNotes limits the notes of one conversion. A final note gives the number of the others.
const maxNotes = 1_000

// Convert converts tool definitions and tool calls from one format to another. tools is a
// provider's list of tools, an object with such a list as its member tools, or one tool. calls is
// any input of [Format.Calls]. Either can be nil. Arguments of calls to the given tools use the
// property names of the converted schemas. If from equals to, tools and calls are unchanged.
//
// Nothing is dropped silently: each part is in the result or has a note. The error is of
// KindInvalidRequest, for text that is not JSON or nests too deep.
func Convert(from, to Format, tools, calls []byte) (Conversion, error) {
	var out Conversion
	schemas := make(map[string]*value) // source schemas by tool name
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

// noteList collects notes up to a limit.
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

// converter converts one document. It records the converted values, so that it can report all
// others.
type converter struct {
	from, to Format
	root     *value
	taken    map[*value]bool
	noted    map[*value][]Note // pointers of notes are relative to the key
	made     int               // number of ids tried for calls without an id
}

func newConverter(from, to Format, root *value) *converter {
	return &converter{from: from, to: to, root: root, taken: make(map[*value]bool), noted: make(map[*value][]Note)}
}

// take marks values as converted or as having their own notes.
func (c *converter) take(all ...*value) {
	for _, v := range all {
		if v != nil {
			c.taken[v] = true
		}
	}
}

// note marks v as taken and adds a note on it. below is a pointer relative to v.
func (c *converter) note(v *value, kind, below, format string, args ...any) {
	c.take(v)
	c.noted[v] = append(c.noted[v], Note{kind, below, fmt.Sprintf(format, args...)})
}

// changed adds a note on a value without marking it as taken, because its parts are checked
// separately.
func (c *converter) changed(v *value, format string, args ...any) {
	c.noted[v] = append(c.noted[v], Note{NoteChanged, "", fmt.Sprintf(format, args...)})
}

// report lists the notes in document order, and adds a note for each value that was not taken.
func (c *converter) report(member string, into *noteList) {
	on := make(map[*value]bool) // values that contain a taken value or a note
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
		case !on[v] && hasContent(v):
			into.add(Note{NoteDropped, pointer(path), "The format " + string(c.to) + " has no place for it here."})
		case on[v]:
			for _, m := range v.members {
				if isEnvelope(m.name) && !on[m.value] {
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
	if hasContent(c.root) {
		walk(c.root)
	}
}

// hasContent reports whether the value has content that could be lost.
func hasContent(v *value) bool {
	return v.kind != 'n' && !(v.isList() && len(v.items) == 0) && !(v.isString() && v.text() == "")
}

// isEnvelope reports whether a member only describes the type of the object around it. The target
// format has its own members for that.
func isEnvelope(name string) bool {
	return slices.Contains([]string{"type", "role", "object", "jsonrpc", "method", "index"}, name)
}

// pointer returns the JSON pointer of a path.
func pointer(path []string) string {
	const most = 128
	var b []byte
	for _, token := range path {
		b = append(append(b, '/'), jsonpointer.Token(truncate.Within(token, most))...)
	}
	return string(b)
}

// toolName returns the closest valid tool name in the format.
func (f Format) toolName(name string) string {
	if f == MCP {
		return MCPNameAs(name, "", name)
	}
	return NameAs(name, "", name)
}

// named returns the name for the target and adds a note if it differs.
func (c *converter) named(v *value) string {
	name := v.text()
	c.take(v)
	to := c.to.toolName(name)
	if to != name {
		c.note(v, NoteChanged, "", "The name is %s here, because the format %s does not accept the original.", quote(to), c.to)
	}
	return to
}
