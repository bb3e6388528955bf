package format

import (
	"fmt"
	"slices"
	"strings"
)

// Loosening is something a provider's schema, or its tool, cannot express, so that
// the provider's takes more than the tool does.
type Loosening struct {
	// Pointer is a JSON pointer (RFC 6901) into the tool's input schema; "" is the
	// whole.
	Pointer string `json:"pointer"`
	// Message says what is not expressed, with the keyword and its value.
	Message string `json:"message"`
}

// maxLoosenings bounds the list of one tool: a schema may be large.
const maxLoosenings = 200

// notes gathers loosenings.
type notes struct {
	list []Loosening
	more int
}

func (n *notes) add(pointer, format string, args ...any) {
	if len(n.list) >= maxLoosenings {
		n.more++
		return
	}
	if l := (Loosening{pointer, fmt.Sprintf(format, args...)}); !slices.Contains(n.list, l) {
		n.list = append(n.list, l)
	}
}

// keyword notes that a keyword is not expressed.
func (n *notes) keyword(pointer, name string, v *value) { n.add(pointer, "%s %s", name, v.brief()) }

func (n *notes) all() []Loosening {
	if n.more > 0 {
		return append(n.list, Loosening{"", fmt.Sprintf("and %d more", n.more)})
	}
	return n.list
}

// toldMost is how much of a description is given to loosenings.
const toldMost = 480

// told is what the model is told of the loosenings. Keywords of the schema come
// with their values, which a model can heed although nothing enforces them.
func told(all []Loosening) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("In addition to this schema the tool requires:")
	for i, l := range all {
		where := l.Pointer
		if word, _, _ := strings.Cut(l.Message, " "); strings.HasSuffix(where, "/"+word) { // it begins with the keyword
			where = strings.TrimSuffix(where, "/"+word)
		}
		where = strings.ReplaceAll(where, "/properties/", "/")
		item := " " + where + ": " + l.Message
		if where == "" {
			item = " " + l.Message
		}
		if i < len(all)-1 {
			item += ";"
		}
		if b.Len()+len(item) > toldMost {
			fmt.Fprintf(&b, " and %d more.", len(all)-i)
			return b.String()
		}
		b.WriteString(item)
	}
	return b.String() + "."
}

// escape makes a name a token of a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
