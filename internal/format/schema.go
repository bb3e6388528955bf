package format

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
)

// maxSchemaBytes and maxSchemaValues limit the schemas that are converted. For a larger one, the
// provider gets a schema that accepts any object.
const (
	maxSchemaBytes  = 1 << 20
	maxSchemaValues = 20_000
)

// Shape is a tool's input schema in the provider's format.
type Shape struct {
	// Schema is the schema. It is empty for Gemini if the tool has no arguments.
	Schema json.RawMessage
	// Strict reports that the schema meets the rules of strict mode. NotStrict is the reason if
	// it does not although strict mode was requested.
	Strict    bool
	NotStrict string
	// Loosened lists the constraints that the schema does not express.
	Loosened []Loosening
}

// Schema returns the input schema of a tool in the provider's format. strict requests OpenAI's
// strict mode, if the schema can be converted to it; other providers ignore it. If nothing has to
// change, the result has the bytes of raw.
func (f Format) Schema(raw json.RawMessage, strict bool) Shape {
	if f == MCP {
		return Shape{Schema: raw}
	}
	n := &notes{}
	root, err := read(raw)
	switch {
	case len(raw) == 0:
		root = object()
	case err != nil || len(raw) > maxSchemaBytes || root.size(maxSchemaValues) > maxSchemaValues:
		n.add("", "the input schema is too large or invalid and cannot be shown")
		root = object()
	case root.kind == 'f':
		n.add("", "the schema accepts no value")
		root = object()
	case !root.isObject():
		root = object()
	}
	if f == Gemini {
		return geminiSchema(root, n)
	}
	p := plain{format: f, root: root.clone(), notes: n, names: f.propertyNames(root)}
	p.dropMistakes(p.root)
	p.top()
	p.walk(p.root, "", 0)
	if p.newer {
		p.root.drop("$schema")
	}
	why := ""
	if strict && (f == OpenAI || f == Responses) {
		var fitting *value
		sn := &notes{list: slices.Clone(n.list)}
		if fitting, why = strictSchema(p.root, sn); fitting != nil {
			return Shape{Schema: fitting.encode(nil), Strict: true, Loosened: sn.all()}
		}
	}
	if !p.changed && len(raw) > 0 && root.start != root.end {
		return Shape{Schema: raw, NotStrict: why, Loosened: n.all()}
	}
	return Shape{Schema: p.root.encode(nil), NotStrict: why, Loosened: n.all()}
}

// plain converts a schema, with as few changes as possible, for a provider that accepts JSON Schema.
type plain struct {
	format  Format
	root    *value
	notes   *notes
	names   map[string]string // see [Format.propertyNames]
	changed bool
	newer   bool // an older keyword was converted to 2020-12
}

// top converts the root to the form that the providers require: an object without alternatives.
func (p *plain) top() {
	r := p.root
	for hops := 0; r.get("$ref").isString() && hops < 8; hops++ {
		target := lookup(r, r.get("$ref").text())
		r.drop("$ref")
		p.changed = true
		if !target.isObject() {
			break
		}
		merge(r, target.clone(), "", p.notes)
	}
	if t := types(r); !r.get("type").isString() || t[0] != "object" {
		r.drop("type")
		r.members = append([]member{{name: "type", value: str("object")}}, r.members...)
		p.changed = true
	}
	if all := r.get("allOf"); all.isList() {
		r.drop("allOf")
		p.changed = true
		for i, branch := range all.items {
			at := "/allOf/" + strconv.Itoa(i)
			if branch = p.resolved(branch); branch.isObject() {
				merge(r, branch.clone(), at, p.notes)
			}
		}
	}
	for _, choice := range []string{"anyOf", "oneOf"} {
		if c := r.get(choice); c.isList() {
			r.drop(choice)
			p.changed = true
			p.flatten(choice, c)
		}
	}
	if p.format != Anthropic {
		for _, name := range []string{"not", "enum", "const", "if", "then", "else"} {
			if v := r.drop(name); v != nil {
				p.changed = true
				p.notes.keyword("/"+name, name, v)
			}
		}
		if !r.get("properties").isObject() {
			r.set("properties", object())
			p.changed = true
		}
	}
}

// resolved follows references inside the document.
func (p *plain) resolved(s *value) *value {
	for hops := 0; s.get("$ref").isString() && hops < 8; hops++ {
		s = lookup(p.root, s.get("$ref").text())
	}
	return s
}

// flatten merges the properties of all branches of an anyOf or oneOf into the root. The combinations
// of properties are no longer expressed.
func (p *plain) flatten(choice string, branches *value) {
	p.notes.keyword("/"+choice, choice, branches)
	r := p.root
	properties := r.get("properties")
	if !properties.isObject() {
		properties = object()
	}
	own := object()
	own.members = append(own.members, properties.members...)
	var required []string // required in every branch
	for i, branch := range branches.items {
		branch = p.resolved(branch)
		names := branch.get("required").texts()
		if i == 0 {
			required = names
		}
		required = slices.DeleteFunc(slices.Clone(required), func(n string) bool { return !slices.Contains(names, n) })
		of := branch.get("properties")
		if !of.isObject() {
			continue
		}
		for _, m := range of.members {
			was := properties.get(m.name)
			switch {
			case was == nil:
				properties.set(m.name, m.value.clone())
			case own.get(m.name) != nil || equalValues(was, m.value): // the root's own schema applies to all branches
			case was.isObject() && len(was.members) == 1 && was.get("anyOf").isList():
				was.get("anyOf").items = append(was.get("anyOf").items, m.value.clone())
			default:
				properties.set(m.name, object().set("anyOf", list(was, m.value.clone())))
			}
		}
	}
	if a := r.get("additionalProperties"); a != nil && len(properties.members) > len(own.members) {
		r.drop("additionalProperties")
		p.notes.keyword("/additionalProperties", "additionalProperties", a)
	}
	r.set("properties", properties)
	r.set("required", union(r.get("required"), required))
	if len(r.get("required").items) == 0 {
		r.drop("required")
	}
}

// union returns the list of names with those of b added, without duplicates.
func union(a *value, b []string) *value {
	all := a.texts()
	for _, name := range b {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return listOf(all)
}

// merge adds the constraints of with to s, as allOf does. If both constrain the same thing
// differently, s keeps its own constraint and the other is noted.
func merge(s, with *value, at string, n *notes) {
	closes := s.get("properties").isObject() // otherwise additionalProperties of with would apply to the properties of s
	for _, m := range with.members {
		have := s.get(m.name)
		switch {
		case m.name == "type" && have != nil:
			if h, w := types(s), types(with); !slices.Equal(h, w) {
				both := slices.DeleteFunc(slices.Clone(h), func(t string) bool { return !slices.Contains(w, t) })
				if len(both) == 1 {
					s.set("type", str(both[0]))
				} else if len(both) > 1 {
					s.set("type", listOf(both))
				} else {
					n.keyword(at+"/type", "type", m.value)
				}
			}
		case m.name == "required":
			s.set("required", union(have, m.value.texts()))
		case (m.name == "properties" || m.name == "$defs" || m.name == "definitions") && have.isObject() && m.value.isObject():
			for _, p := range m.value.members {
				if was := have.get(p.name); was == nil {
					have.set(p.name, p.value)
				} else if was.isObject() && p.value.isObject() && m.name == "properties" {
					merge(was, p.value, at+"/properties/"+jsonpointer.Token(p.name), n)
				}
			}
		case m.name == "additionalProperties" && have == nil && closes:
			if m.value.kind != 't' {
				n.keyword(at+"/additionalProperties", "additionalProperties", m.value)
			}
		case have == nil:
			s.set(m.name, m.value)
		case annotation(m.name) || equalValues(have, m.value):
		default:
			n.keyword(at+"/"+jsonpointer.Token(m.name), m.name, m.value)
		}
	}
	// Likewise, additionalProperties of s must not apply to the properties of with.
	if a := s.get("additionalProperties"); a != nil && a.kind == 'f' && with.get("properties").isObject() && with.get("additionalProperties") == nil {
		s.drop("additionalProperties")
		n.keyword("/additionalProperties", "additionalProperties", a)
	}
}

// walk converts the schemas inside s for the provider.
func (p *plain) walk(s *value, at string, depth int) {
	if !s.isObject() || depth > maxDepth {
		return
	}
	p.drafts(s)
	if ref := s.get("$ref"); ref.isString() && lookup(p.root, ref.text()) == nil {
		s.drop("$ref")
		p.changed = true
		p.notes.add(at+"/$ref", "the contents of a referenced schema")
	}
	if p.format != Anthropic {
		isArray := slices.Contains(types(s), "array") || s.get("prefixItems") != nil
		if items := s.get("items"); isArray && items == nil {
			s.set("items", object())
			p.changed = true
		}
	}
	eachSchema(s, at, func(sub *value, at string) { p.walk(sub, at, depth+1) })
	if rename(s, p.names) {
		p.changed = true
	}
}

// rename renames properties and adds the old name to their descriptions. It reports whether it renamed
// any.
func rename(s *value, names map[string]string) (changed bool) {
	if len(names) == 0 {
		return false
	}
	properties := membersOf(s.get("properties"))
	for i, m := range properties {
		to, ok := names[m.name]
		if !ok {
			continue
		}
		changed = true
		properties[i].name = to
		if m.value.isObject() {
			describe(m.value, "The tool calls it "+string(quote(m.name))+".")
		}
	}
	if required := s.get("required"); required.isList() {
		for i, item := range required.items {
			if to, ok := names[item.text()]; ok {
				changed = true
				required.items[i] = str(to)
			}
		}
	}
	return changed
}

// describe adds a sentence to the description of a schema.
func describe(s *value, sentence string) {
	if was := strings.TrimSpace(s.get("description").text()); was != "" {
		if !strings.ContainsAny(was[len(was)-1:], ".!?:;") {
			was += "."
		}
		sentence = was + " " + sentence
	}
	s.set("description", str(sentence))
}

// describeValues adds the default and the examples of s to the description of out.
func describeValues(out, s *value) {
	if v := s.get("default"); v != nil && !v.isNull() {
		describe(out, "Default: "+v.brief()+".")
	}
	if v := s.get("examples"); v.isList() && len(v.items) > 0 {
		describe(out, "Examples: "+strings.Trim(v.brief(), "[]")+".")
	}
}

// dropMistakes removes the keywords of s that are null, such as "required": null, and required if it is a
// boolean, as in draft 3. Providers refuse them together with all other tools.
func (p *plain) dropMistakes(s *value) {
	count := len(s.members)
	s.members = slices.DeleteFunc(s.members, func(m member) bool {
		boolean := m.value.kind == 't' || m.value.kind == 'f'
		return m.value.isNull() && m.name != "const" && m.name != "default" || boolean && m.name == "required"
	})
	p.changed = p.changed || len(s.members) < count
	for _, m := range s.members {
		if !slices.Contains(schemaMap, m.name) {
			continue
		}
		for i := range m.value.members {
			if m.value.members[i].value.isNull() {
				m.value.members[i].value = object()
				p.changed = true
			}
		}
	}
}

// drafts converts the keywords of s, without its subschemas, to 2020-12.
func (p *plain) drafts(s *value) {
	p.dropMistakes(s)
	if modernize(s) {
		p.changed, p.newer = true, true
	}
}

// modernize converts keywords of older drafts to 2020-12 if 2020-12 gives them another meaning. It
// reports whether it changed the schema. Values are moved, not copied.
func modernize(s *value) (changed bool) {
	if items := s.get("items"); items.isList() {
		changed = true
		s.drop("items")
		s.set("prefixItems", items)
		if more := s.drop("additionalItems"); more != nil {
			s.set("items", more)
		}
	}
	for _, side := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		e := s.get(side[0])
		if e == nil || e.kind != 't' && e.kind != 'f' {
			continue
		}
		changed = true
		s.drop(side[0])
		if e.kind == 't' {
			if bound := s.drop(side[1]); bound != nil {
				s.set(side[0], bound)
			}
		}
	}
	if needs := s.get("dependencies"); needs.isObject() {
		changed = true
		s.drop("dependencies")
		names, schemas := object(), object()
		for _, m := range needs.members {
			if m.value.isList() {
				names.set(m.name, m.value)
			} else {
				schemas.set(m.name, m.value)
			}
		}
		if len(names.members) > 0 {
			s.set("dependentRequired", names)
		}
		if len(schemas.members) > 0 {
			s.set("dependentSchemas", schemas)
		}
	}
	return changed
}
