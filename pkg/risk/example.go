package risk

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Example is a call that a policy is tried on, with what is expected of it.
type Example struct {
	// Name is what a report calls it.
	Name string
	// Line is where it stands in its file.
	Line   int
	Input  Input
	Expect Expect
}

// Expect is what an assessment must be; nil fields are not looked at.
type Expect struct {
	Level   *int
	Deny    *bool
	Rule    *string // "" or "none": no rule
	Sandbox *string // "" or "none": no sandbox
	// Approval is "none", ByCaller, ByGroups or "any".
	Approval *string
}

// Unmet returns a sentence for each thing that a is not, and should be.
func (e *Expect) Unmet(a Assessment) (unmet []string) {
	say := func(what string, want, got any) {
		if want != got {
			unmet = append(unmet, fmt.Sprintf("%s should be %v and is %v.", what, want, got))
		}
	}
	if e.Level != nil {
		say("The level", *e.Level, a.Level)
	}
	if e.Deny != nil {
		say("deny", *e.Deny, a.Deny)
	}
	if e.Rule != nil {
		say("The rule", orNone(*e.Rule), orNone(a.Rule))
	}
	if e.Sandbox != nil {
		say("The sandbox", orNone(*e.Sandbox), orNone(a.Sandbox))
	}
	if e.Approval != nil {
		got := "none"
		if a.Approval != nil {
			got = a.Approval.By
		}
		if *e.Approval != "any" || got == "none" {
			say("The approval", *e.Approval, got)
		}
	}
	return unmet
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

const maxExamples = 10_000

// ParseExamples reads a list of examples in YAML or JSON; name is what faults
// call the source. The error is *[Faults] and holds every fault at once.
func ParseExamples(source []byte, name string) ([]Example, error) {
	r := exampleReader{}
	if root := parseYAML(source, &r.faults); root != nil {
		switch {
		case root.kind == kindMap: // one example
			r.example("", root)
		case root.kind == kindNull:
			r.faults.add(position{}, "", "the file holds no calls; write a list of them.")
		case r.is("", root, kindList, "a list of calls"):
			if len(root.items) > maxExamples {
				r.faults.add(root.at, "", "has more than %d calls; split the file.", maxExamples)
				break
			}
			for i, item := range root.items {
				r.example(fmt.Sprintf("[%d]", i), item)
			}
		}
	}
	if err := r.faults.err(name); err != nil {
		return nil, err
	}
	return r.examples, nil
}

type exampleReader struct {
	reader
	examples []Example
}

func (r *exampleReader) example(path string, n *node) {
	e := Example{Line: n.at.line}
	e.Input.Principal.Name = "local"
	r.members(path, n,
		key{"name", func(path string, n *node) { e.Name = r.text(path, n, maxReason) }},
		key{"server", func(path string, n *node) { e.Input.Server = r.text(path, n, maxReason) }},
		key{"tool", func(path string, n *node) { e.Input.Tool = r.text(path, n, maxReason) }},
		key{"risk_level", func(path string, n *node) { e.Input.ServerRisk = r.number(path, n, Low, High) }},
		key{"trust_annotations", func(path string, n *node) { e.Input.TrustAnnotations = r.bool(path, n) }},
		key{"definition", func(path string, n *node) { e.Input.Definition = r.object(path, n) }},
		key{"arguments", func(path string, n *node) { e.Input.Arguments = r.object(path, n) }},
		key{"principal", func(path string, n *node) { e.Input.Principal = r.principal(path, n) }},
		key{"expect", func(path string, n *node) { r.expect(path, n, &e.Expect) }},
	)
	if n.kind == kindMap && (e.Input.Server == "" || e.Input.Tool == "") {
		r.faults.add(n.at, path, "a call names its server and its tool; add what is missing.")
	}
	if e.Name == "" {
		e.Name = e.Input.Server + " " + e.Input.Tool
	}
	r.examples = append(r.examples, e)
}

func (r *exampleReader) principal(path string, n *node) (p schema.Principal) {
	if n.kind == kindText {
		p.Name = r.text(path, n, maxName)
		return p
	}
	r.members(path, n,
		key{"name", func(path string, n *node) { p.Name = r.text(path, n, maxName) }},
		key{"owner", func(path string, n *node) { p.Owner = r.text(path, n, maxName) }},
		key{"groups", func(path string, n *node) { p.Groups = r.texts(path, n) }})
	return p
}

func (r *exampleReader) expect(path string, n *node, e *Expect) {
	word := func(to **string, words ...string) func(string, *node) {
		return func(path string, n *node) {
			text := "none"
			switch {
			case n.kind == kindNull || n.kind == kindText && n.text == "":
			case n.kind == kindBool && slices.Contains(words, "any"):
				if r.bool(path, n) {
					text = "any"
				}
			case words == nil:
				text = r.text(path, n, maxName)
			default:
				text = r.choice(path, n, words...)
			}
			*to = &text
		}
	}
	r.members(path, n,
		key{"level", func(path string, n *node) { e.Level = new(r.number(path, n, Low, High)) }},
		key{"deny", func(path string, n *node) { e.Deny = new(r.bool(path, n)) }},
		key{"rule", word(&e.Rule)},
		key{"sandbox", word(&e.Sandbox, SandboxContainer, "none")},
		key{"approval", word(&e.Approval, "none", ByCaller, ByGroups, "any")},
	)
}

// object returns a map as JSON, or the exact bytes where a text holds JSON.
func (r *exampleReader) object(path string, n *node) []byte {
	if n.kind == kindText {
		return []byte(n.text)
	}
	if !r.is(path, n, kindMap, "a map or a text that holds JSON") {
		return nil
	}
	return r.json(nil, path, n)
}

// json appends the node as JSON. Numbers keep their digits.
func (r *exampleReader) json(b []byte, path string, n *node) []byte {
	switch n.kind {
	case kindMap:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, m.key), ':')
			b = r.json(b, join(path, m.key), m.value)
		}
		return append(b, '}')
	case kindList:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.json(b, path, item)
		}
		return append(b, ']')
	case kindBool:
		return append(b, strings.ToLower(n.text)...)
	case kindNumber:
		if json.Valid([]byte(n.text)) {
			return append(b, n.text...)
		}
		if v, err := strconv.ParseInt(n.text, 0, 64); err == nil {
			return strconv.AppendInt(b, v, 10)
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
		r.faults.add(n.at, path, "this number is none of JSON; write it in decimal.")
	case kindText:
		// YAML takes a number beyond 64 bits for a text.
		if n.indent == 0 && n.text != "" && (n.text[0] == '-' || n.text[0] >= '0' && n.text[0] <= '9') && json.Valid([]byte(n.text)) {
			return append(b, n.text...)
		}
		return appendText(b, n.text)
	}
	return append(b, "null"...)
}

func appendText(b []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil { // a string can always be encoded
		return append(b, `""`...)
	}
	return append(b, quoted...)
}
