package format

import (
	"fmt"
	"slices"
	"strings"
)

// Loosening is a constraint that the provider's schema or tool cannot express, so that it accepts
// more than the tool does.
type Loosening struct {
	// Pointer is a JSON pointer (RFC 6901) into the tool's input schema. "" means the whole
	// schema.
	Pointer string `json:"pointer"`
	// Message describes the constraint, with the keyword and its value.
	Message string `json:"message"`
}

// maxLoosenings limits the list of one tool, because a schema may be large.
const maxLoosenings = 200

// notes collects loosenings.
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

// keyword adds a loosening for a keyword.
func (n *notes) keyword(pointer, name string, v *value) { n.add(pointer, "%s %s", name, v.brief()) }

func (n *notes) all() []Loosening {
	if n.more > 0 {
		return append(n.list, Loosening{"", fmt.Sprintf("and %d more", n.more)})
	}
	return n.list
}

// maxLooseningText limits the text about loosenings in a description, in bytes.
const maxLooseningText = 480

// looseningText returns the text about loosenings for the model. It includes the values of
// keywords, so that the model can follow them although nothing enforces them.
func looseningText(all []Loosening) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("In addition to this schema the tool requires:")
	for i, l := range all {
		where := l.Pointer
		if word, _, _ := strings.Cut(l.Message, " "); strings.HasSuffix(where, "/"+word) { // the message begins with the keyword
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
		if b.Len()+len(item) > maxLooseningText {
			fmt.Fprintf(&b, " and %d more.", len(all)-i)
			return b.String()
		}
		b.WriteString(item)
	}
	return b.String() + "."
}
