package risk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
	"github.com/callyard/callyard/pkg/schema"
)

// Example is a call for testing a policy, with the expected assessment.
type Example struct {
	// Name identifies the example in reports.
	Name string
	// Line is the line of the example in its file.
	Line   int
	Input  Input
	Expect Expect
}

// Expect holds the expected values of an assessment. Nil fields are not compared.
type Expect struct {
	Level   *int
	Deny    *bool
	Rule    *string // "" or "none" means no rule
	Sandbox *string // "" or "none" means no sandbox
	// Approval is "none", ByCaller, ByGroups or "any".
	Approval *string
}

// Unmet returns a sentence for each value of a that differs from the expected one.
func (e *Expect) Unmet(a Assessment) (unmet []string) {
	say := func(what string, want, got any) {
		if want != got {
			unmet = append(unmet, fmt.Sprintf("%s should be %v but is %v.", what, want, got))
		}
	}
	if e.Level != nil {
		say("The level", *e.Level, a.Level)
	}
	if e.Deny != nil {
		say("deny", *e.Deny, a.Deny)
	}
	if e.Rule != nil {
		say("The rule", cmp.Or(*e.Rule, "none"), cmp.Or(a.Rule, "none"))
	}
	if e.Sandbox != nil {
		say("The sandbox", cmp.Or(*e.Sandbox, "none"), cmp.Or(a.Sandbox, "none"))
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

const maxExamples = 10_000

// ParseExamples parses a list of examples in YAML or JSON. name identifies the source in
// faults. The error is *[Faults] and holds all faults.
func ParseExamples(source []byte, name string) ([]Example, error) {
	r := exampleReader{}
	if root := parseYAML(source, &r.faults); root != nil {
		switch {
		case root.Kind == yamldoc.Map: // a single example
			r.example("", root)
		case root.Kind == yamldoc.Null:
			r.faults.add(yamldoc.Position{}, "", "the file contains no calls; write a list of calls.")
		case r.is("", root, yamldoc.List, "a list of calls"):
			if len(root.Items) > maxExamples {
				r.faults.add(root.At, "", "has more than %d calls; split the file.", maxExamples)
				break
			}
			for i, item := range root.Items {
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

func (r *exampleReader) example(path string, n *yamldoc.Node) {
	e := Example{Line: n.At.Line}
	e.Input.Principal.Name = "local"
	r.members(path, n,
		key{"name", func(path string, n *yamldoc.Node) { e.Name = r.text(path, n, maxReason) }},
		key{"server", func(path string, n *yamldoc.Node) { e.Input.Server = r.text(path, n, maxReason) }},
		key{"tool", func(path string, n *yamldoc.Node) { e.Input.Tool = r.text(path, n, maxReason) }},
		key{"risk_level", func(path string, n *yamldoc.Node) { e.Input.ServerRisk = r.number(path, n, Low, High) }},
		key{"trust_annotations", func(path string, n *yamldoc.Node) { e.Input.TrustAnnotations = r.bool(path, n) }},
		key{"definition", func(path string, n *yamldoc.Node) { e.Input.Definition = r.object(path, n) }},
		key{"arguments", func(path string, n *yamldoc.Node) { e.Input.Arguments = r.object(path, n) }},
		key{"principal", func(path string, n *yamldoc.Node) { e.Input.Principal = r.principal(path, n) }},
		key{"expect", func(path string, n *yamldoc.Node) { r.expect(path, n, &e.Expect) }},
	)
	if n.Kind == yamldoc.Map && (e.Input.Server == "" || e.Input.Tool == "") {
		r.faults.add(n.At, path, "a call must have a server and a tool; add the missing key.")
	}
	e.Name = cmp.Or(e.Name, e.Input.Server+" "+e.Input.Tool)
	r.examples = append(r.examples, e)
}

func (r *exampleReader) principal(path string, n *yamldoc.Node) (p schema.Principal) {
	if n.Kind == yamldoc.Text {
		p.Name = r.text(path, n, maxName)
		return p
	}
	r.members(path, n,
		key{"name", func(path string, n *yamldoc.Node) { p.Name = r.text(path, n, maxName) }},
		key{"owner", func(path string, n *yamldoc.Node) { p.Owner = r.text(path, n, maxName) }},
		key{"groups", func(path string, n *yamldoc.Node) { p.Groups = r.texts(path, n) }})
	return p
}

func (r *exampleReader) expect(path string, n *yamldoc.Node, e *Expect) {
	word := func(to **string, words ...string) func(string, *yamldoc.Node) {
		return func(path string, n *yamldoc.Node) {
			text := "none"
			switch {
			case n.Kind == yamldoc.Null || n.Kind == yamldoc.Text && n.Text == "":
			case n.Kind == yamldoc.Bool && slices.Contains(words, "any"):
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
		key{"level", func(path string, n *yamldoc.Node) { e.Level = new(r.number(path, n, Low, High)) }},
		key{"deny", func(path string, n *yamldoc.Node) { e.Deny = new(r.bool(path, n)) }},
		key{"rule", word(&e.Rule)},
		key{"sandbox", word(&e.Sandbox, SandboxContainer, "none")},
		key{"approval", word(&e.Approval, "none", ByCaller, ByGroups, "any")},
	)
}

// object returns a map as JSON, or the exact bytes of a string that holds JSON.
func (r *exampleReader) object(path string, n *yamldoc.Node) []byte {
	if n.Kind == yamldoc.Text {
		return []byte(n.Text)
	}
	if !r.is(path, n, yamldoc.Map, "a map or a string that contains JSON") {
		return nil
	}
	return r.json(nil, path, n)
}

// json appends the node as JSON. Numbers keep their digits.
func (r *exampleReader) json(b []byte, path string, n *yamldoc.Node) []byte {
	switch n.Kind {
	case yamldoc.Map:
		b = append(b, '{')
		for i, m := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, m.Key), ':')
			b = r.json(b, join(path, m.Key), m.Value)
		}
		return append(b, '}')
	case yamldoc.List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.json(b, path, item)
		}
		return append(b, ']')
	case yamldoc.Bool:
		return append(b, strings.ToLower(n.Text)...)
	case yamldoc.Number:
		if json.Valid([]byte(n.Text)) {
			return append(b, n.Text...)
		}
		if v, err := strconv.ParseInt(n.Text, 0, 64); err == nil {
			return strconv.AppendInt(b, v, 10)
		}
		if f, err := strconv.ParseFloat(n.Text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
		r.faults.add(n.At, path, "this number is not valid in JSON; write it in decimal.")
	case yamldoc.Text:
		// YAML parses a number beyond 64 bits as a string.
		if n.Indent == 0 && n.Text != "" && (n.Text[0] == '-' || n.Text[0] >= '0' && n.Text[0] <= '9') && json.Valid([]byte(n.Text)) {
			return append(b, n.Text...)
		}
		return appendText(b, n.Text)
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
