package search

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/truncate"
)

// Limits of a signature.
const (
	maxSignature = 400 // bytes
	maxName      = 128 // the longest name of a tool in MCP, so that callers can use the name in a signature
	maxSummary   = 240
	maxWord      = 48
)

// Signature returns one line that shows how to call a tool: its name and its parameters with their
// types, in the order of the schema, required ones first. Optional ones have a "?". Long lines are
// shortened. name and input are untrusted, so non-printable characters are removed.
func Signature(name string, input json.RawMessage) string {
	var required []string
	_ = json.Unmarshal(rawjson.Get(input, "required"), &required) // a value of another type requires nothing
	var first, then []string
	rawjson.Members(rawjson.Get(input, "properties"), func(name string, schema []byte) {
		p := printable(name, maxWord)
		if slices.Contains(required, name) {
			first = append(first, p+": "+typeOf(schema))
		} else {
			then = append(then, p+"?: "+typeOf(schema))
		}
	})
	var b strings.Builder
	b.WriteString(printable(name, maxName) + "(")
	for i, p := range append(first, then...) {
		if b.Len()+len(p) > maxSignature {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p)
	}
	return b.String() + ")"
}

// typeOf returns a short name of the type of a parameter.
func typeOf(schema []byte) string {
	if !rawjson.IsObject(schema) {
		return "any"
	}
	var values []json.RawMessage
	if json.Unmarshal(rawjson.Get(schema, "enum"), &values) == nil && len(values) > 0 {
		all := make([]string, 0, len(values))
		for _, v := range values[:min(len(values), 6)] {
			all = append(all, printable(string(v), maxWord))
		}
		if len(values) > 6 {
			all = append(all, "…")
		}
		return strings.Join(all, "|")
	}
	raw := rawjson.Get(schema, "type")
	var several []string
	if json.Unmarshal(raw, &several) == nil && len(several) > 0 {
		return printable(strings.Join(several, "|"), maxWord)
	}
	switch name, ok := rawjson.Text(raw); {
	case ok && name == "array" && rawjson.Get(schema, "items") != nil:
		return printable(typeWord(rawjson.Get(schema, "items")), maxWord) + "[]"
	case ok && name != "":
		return printable(name, maxWord)
	}
	return "any"
}

func typeWord(schema []byte) string {
	if name, ok := rawjson.Text(rawjson.Get(schema, "type")); ok && name != "" {
		return name
	}
	return "any"
}

// Summary returns the first sentence or line of a definition's description as one line.
func Summary(definition json.RawMessage) string {
	text, _ := rawjson.Text(rawjson.Get(definition, "description"))
	if text == "" {
		text, _ = rawjson.Text(rawjson.Get(definition, "title"))
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if head, _, found := strings.Cut(text, ". "); found {
		text = head + "."
	}
	return printable(text, maxSummary)
}

// printable removes non-printable characters and shortens a text to at most that many bytes.
func printable(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c == unicode.ReplacementChar, !unicode.IsPrint(c) && !unicode.IsSpace(c):
			return -1
		case unicode.IsSpace(c):
			return ' '
		}
		return c
	}, text)
	return truncate.Within(text, most)
}
