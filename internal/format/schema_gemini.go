package format

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
)

// geminiDepth limits the nesting of a schema for Gemini. Below it, any value is accepted.
const geminiDepth = 32

// gemini converts a schema to the subset of OpenAPI 3.0 that Gemini accepts. Gemini's objects accept
// only their named properties, so keywords that close an object are dropped.
type gemini struct {
	inliner
	names map[string]string // see [Format.propertyNames]
}

func geminiSchema(root *value, n *notes) Shape {
	p := plain{format: OpenAI, root: root.clone(), notes: n} // requires the same root: one object without alternatives
	p.dropMistakes(p.root)
	p.top()
	everySchema(p.root, 0, p.drafts)
	g := &gemini{inliner: inliner{root: p.root, notes: n, space: inlineBudget}, names: Gemini.propertyNames(root)}
	out := g.convert(p.root, "", 0)
	if out.get("properties") == nil {
		return Shape{Loosened: n.all()}
	}
	return Shape{Schema: out.encode(nil), Loosened: n.all()}
}

func (g *gemini) convert(s *value, at string, depth int) *value {
	s, done := g.open(s, at)
	defer done()
	if s.isObject() && s.get("allOf").isList() {
		s = g.joined(s, at)
	}
	if at != "" && anything(s) {
		if s.isObject() && (len(s.members) > 0 || g.deep) {
			return g.annotated(anyValue(1), s)
		}
		return anyValue(1)
	}
	if depth > geminiDepth {
		g.notes.add(at, "too deeply nested to be shown")
		return anyValue(0)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if branches := s.get(name); branches.isList() && len(branches.items) > 0 {
			return g.choice(s, name, at, depth)
		}
	}
	t := slices.Clone(typesOf(s))
	may := slices.Contains(t, "null")
	t = slices.DeleteFunc(t, func(name string) bool { return name == "null" })
	if slices.Contains(t, "number") {
		t = slices.DeleteFunc(t, func(name string) bool { return name == "integer" })
	}
	switch {
	case len(t) == 0 && may:
		t = []string{"string"}
		g.notes.add(at, "null only")
	case len(t) == 0:
		for _, m := range s.members {
			if !annotation(m.name) {
				g.notes.keyword(at+"/"+jsonpointer.Token(m.name), m.name, m.value)
			}
		}
		return g.annotated(anyValue(1), s)
	case len(t) > 1:
		branches := list()
		for _, name := range t {
			one := s.clone()
			one.set("type", str(name))
			branches.items = append(branches.items, g.typed(one, name, at, depth, t))
		}
		return either(branches, may)
	}
	out := g.typed(s, t[0], at, depth, nil)
	if may {
		out.set("nullable", ok())
	}
	return out
}

// keywordsOf lists the keywords that constrain only values of one type.
var keywordsOf = map[string][]string{
	"string": {"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"},
	"number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
	"array":  {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems", "additionalItems"},
	"object": {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"},
}

// typed converts a schema for values of one type. others lists all types of the schema if there are
// several.
func (g *gemini) typed(s *value, t, at string, depth int, others []string) *value {
	out := g.annotated(typed(t), s)
	group := t
	if t == "integer" {
		group = "number"
	}
	for _, m := range s.members {
		here := at + "/" + jsonpointer.Token(m.name)
		if slices.ContainsFunc([]string{"string", "number", "array", "object"}, func(other string) bool {
			return other != group && slices.Contains(keywordsOf[other], m.name) && !slices.Contains(keywordsOf[group], m.name)
		}) {
			continue
		}
		switch m.name {
		case "type", "required", "prefixItems", "items": // items are converted below, with prefixItems
		case "minLength", "maxLength", "pattern", "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum":
			out.set(m.name, m.value)
		case "exclusiveMinimum", "exclusiveMaximum":
			g.exclusive(out, m, t, here)
		case "format":
			f := m.value.text()
			if t == "string" && f == "date-time" || t == "integer" && (f == "int32" || f == "int64") || t == "number" && (f == "float" || f == "double") {
				out.set(m.name, m.value)
			} else if group == "string" || others == nil {
				g.notes.keyword(here, m.name, m.value)
			}
		case "enum", "const":
			g.enum(out, m, t, here)
		case "properties":
			g.properties(out, s, at, depth)
		case "additionalProperties", "unevaluatedProperties", "unevaluatedItems":
			if m.value.kind == '{' {
				g.notes.keyword(here, m.name, m.value)
			}
		case "nullable":
			if m.value.kind == 't' {
				out.set(m.name, m.value)
			}
		default:
			if !annotation(m.name) {
				g.notes.keyword(here, m.name, m.value)
			}
		}
	}
	if t == "array" {
		g.items(out, s, at, depth)
	}
	return out
}

// annotated copies the annotations of a schema to the description of out.
func (g *gemini) annotated(out, s *value) *value {
	if d := cmp.Or(s.get("description").text(), s.get("title").text()); d != "" {
		describe(out, d)
	}
	describeValues(out, s)
	return out
}

func (g *gemini) properties(out, s *value, at string, depth int) {
	of := s.get("properties")
	if !of.isObject() {
		return
	}
	all, there := object(), list()
	for _, m := range of.members {
		here := at + "/properties/" + jsonpointer.Token(m.name)
		if m.value.kind == 'f' {
			g.notes.add(here, "no value at all")
			continue
		}
		p := g.convert(m.value, here, depth+1)
		name := m.name
		if to, ok := g.names[name]; ok {
			name = to
			describe(p, "The tool calls it "+string(quote(m.name))+".")
		}
		all.set(name, p)
	}
	for _, name := range s.get("required").texts() {
		shown := name
		if to, ok := g.names[name]; ok {
			shown = to
		}
		if all.get(shown) == nil {
			g.notes.add(at+"/required", "a property %s", quote(name))
			continue
		}
		there.items = append(there.items, str(shown))
	}
	if len(all.members) > 0 {
		out.set("properties", all)
	}
	if len(there.items) > 0 {
		out.set("required", there)
	}
}

func (g *gemini) items(out, s *value, at string, depth int) {
	items := s.get("items")
	if first := s.get("prefixItems"); first.isList() && len(first.items) > 0 {
		g.notes.keyword(at+"/prefixItems", "prefixItems", first)
		switch {
		case items == nil || items.kind == 't' || items.isObject() && anything(items):
			items = nil
		default:
			ends(out, first, items)
			items = itemOf(first, items)
		}
	}
	if items == nil || !items.isObject() {
		if items != nil && items.kind == 'f' {
			g.notes.add(at+"/items", "no more items")
		}
		out.set("items", anyValue(0))
		return
	}
	out.set("items", g.convert(items, at+"/items", depth+1))
}

// enum keeps the values that Gemini accepts: non-empty strings.
func (g *gemini) enum(out *value, m member, t, at string) {
	values := m.value
	if m.name == "const" {
		values = list(m.value)
	}
	kept := list()
	for _, v := range values.items {
		switch {
		case v.kind == 'n':
		case t != "string" && typeOf(v) != t && (t != "number" || v.kind != '0'): // a value of another type
		case t != "string" || v.text() == "":
			g.notes.keyword(at, m.name, m.value)
			if len(values.items) > 0 {
				describe(out, "One of "+strings.Trim(values.brief(), "[]")+".")
			}
			return
		case v.isString():
			kept.items = append(kept.items, v)
		}
	}
	if len(kept.items) > 0 {
		out.set("enum", kept)
	}
}

// exclusive converts an exclusive bound to an inclusive one. This is exact for integers only.
func (g *gemini) exclusive(out *value, m member, t, at string) {
	name, step := "minimum", int64(1)
	if m.name == "exclusiveMaximum" {
		name, step = "maximum", -1
	}
	if out.get(name) != nil {
		g.notes.keyword(at, m.name, m.value)
		return
	}
	bound, whole := new(big.Int).SetString(string(m.value.raw), 10)
	if t == "integer" && whole {
		out.set(name, number(bound.Add(bound, big.NewInt(step)).String()))
		return
	}
	g.notes.keyword(at, m.name, m.value)
	out.set(name, m.value)
}

// choice converts anyOf and oneOf. Gemini allows no other keywords next to anyOf, so they move into
// every branch.
func (g *gemini) choice(s *value, name, at string, depth int) *value {
	common := s.clone()
	branches := common.drop(name)
	if name == "oneOf" && len(branches.items) > 1 {
		g.notes.add(at+"/oneOf", "exactly one of its branches")
	}
	if other := common.drop("oneOf"); other != nil {
		g.notes.keyword(at+"/oneOf", "oneOf", other)
	}
	may := false
	out := list()
	for i, branch := range branches.items {
		here := at + "/" + name + "/" + strconv.Itoa(i)
		branch, done := g.open(branch, here)
		switch {
		case branch.isObject():
			if t := types(branch); len(t) == 1 && t[0] == "null" {
				may = true
				break
			}
			if c := branch.get("const"); c != nil && c.kind == 'n' {
				may = true
				break
			}
			if branch.get("allOf").isList() {
				branch = g.joined(branch, here)
			}
			one := branch.clone()
			merge(one, common.clone(), at, g.notes)
			converted := g.convert(one, here, depth+1)
			if inner := converted.get("anyOf"); inner.isList() {
				out.items = append(out.items, inner.items...)
			} else {
				out.items = append(out.items, converted)
			}
		case branch.kind == 't':
			out.items = append(out.items, anyValue(1).get("anyOf").items...)
		}
		done()
	}
	if len(out.items) == 0 {
		return g.annotated(anyValue(1), common)
	}
	if choice := either(out, may); len(out.items) > 1 {
		return choice
	}
	return out.items[0]
}

// either returns a choice between the branches. If null is set, each branch also accepts null.
func either(branches *value, null bool) *value {
	if null {
		for _, b := range branches.items {
			b.set("nullable", ok())
		}
	}
	return object().set("anyOf", branches)
}

// anyValue returns a schema for any value, including lists up to a nesting of levels. Gemini
// accepts no schema without a type.
func anyValue(levels int) *value {
	branches := list()
	for _, t := range []string{"string", "number", "boolean", "object"} {
		branches.items = append(branches.items, typed(t).set("nullable", ok()))
	}
	if levels > 0 {
		branches.items = append(branches.items, typed("array").set("items", anyValue(levels-1)).set("nullable", ok()))
	}
	return object().set("anyOf", branches)
}
