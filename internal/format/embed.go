package format

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
)

// Embedded is a JSON Schema split into components of an OpenAPI 3.1 document.
type Embedded struct {
	// Schemas belong in components/schemas of the document. The first one is the schema itself.
	// The others are the definitions that it refers to.
	Schemas []NamedSchema
	// Omitted lists the parts that the document cannot express.
	Omitted []Loosening
}

// NamedSchema is one schema of components/schemas.
type NamedSchema struct {
	Name string
	JSON json.RawMessage
}

// Embed converts a tool's schema for an OpenAPI 3.1 document, under the given name. The name must
// match ^[a-zA-Z0-9._-]+$. Each definition ($defs and definitions) becomes a separate schema
// "name.X". Every reference, including recursive ones, is rewritten to the location of its target
// in the document. Keywords of older drafts are converted to 2020-12. A schema with several types
// becomes an anyOf, and the items of a list in a choice become a schema "name.enum" if they have an
// enum, because generators of Go clients fail on both. References that lead outside the schema, and
// keywords with values that JSON Schema does not allow, are omitted and listed, because they would
// make the whole document invalid.
func Embed(raw json.RawMessage, name string) Embedded {
	n := &notes{}
	root, err := read(raw)
	switch {
	case err != nil || len(raw) > maxSchemaBytes || root.size(maxSchemaValues) > maxSchemaValues:
		n.add("", "the schema is too large or invalid and cannot be shown")
		root = fields("type", "object")
	case root.kind == 't' || root.kind == 'f':
	case !root.isObject():
		n.add("", "the schema is not an object")
		root = object()
	}
	e := &embedding{root: root.clone(), name: name, notes: n, targets: make(map[*value]*value), places: make(map[*value]string)}
	return Embedded{Schemas: e.schemas(), Omitted: n.all()}
}

// embedding is the state of one conversion.
type embedding struct {
	root  *value
	name  string
	notes *notes

	resources map[string]*value // by URI without fragment
	anchors   map[string]*value // by URI with fragment
	targets   map[*value]*value // the target of each schema that has a reference
	parts     []embeddedPart    // the root and the definitions in use
	places    map[*value]string // locations in the document
}

type embeddedPart struct {
	name string
	*value
}

// retrieval is the base URI of a schema that has no id. Only references inside the schema resolve
// to it.
const retrieval = "https://schema.invalid/"

func (e *embedding) schemas() []NamedSchema {
	word := e.root.get("$schema").text()
	old := slices.ContainsFunc([]string{"draft-03", "draft-04", "draft-06", "draft-07"}, func(d string) bool { return strings.Contains(word, d) })
	e.resources, e.anchors = map[string]*value{retrieval: e.root}, make(map[string]*value)
	base, _ := url.Parse(retrieval) // cannot fail for a constant
	e.identify(e.root, base, old)
	e.refer(e.root, base, old)
	e.unwind()
	e.collect()
	for _, p := range e.parts {
		everySchema(p.value, 0, func(s *value) {
			modernize(s)
			s.drop("$defs")
			s.drop("definitions")
		})
		e.clean(p.value, "")
		everySchema(p.value, 0, splitTypes)
	}
	e.liftItems()
	for _, p := range e.parts {
		e.place(p.value, p.name)
	}
	for s, target := range e.targets {
		if place, ok := e.places[target]; ok {
			s.set("$ref", str("#/components/schemas/"+place))
		}
	}
	out := make([]NamedSchema, len(e.parts))
	for i, p := range e.parts {
		out[i] = NamedSchema{p.name, p.value.encode(nil)}
	}
	return out
}

// eachSchemaOfAnyDraft is [eachSchema] including the keywords of older drafts.
func eachSchemaOfAnyDraft(s *value, f func(sub *value)) {
	eachSchema(s, "", func(sub *value, _ string) { f(sub) })
	if needs := s.get("dependencies"); needs.isObject() {
		for _, m := range needs.members {
			if !m.value.isList() {
				f(m.value)
			}
		}
	}
}

// baseOf returns the base URI for references in s.
func baseOf(s *value, base *url.URL, old bool) *url.URL {
	id := s.get("$id").text()
	if id == "" && old {
		id = s.get("id").text() // draft 4
	}
	if id == "" || strings.HasPrefix(id, "#") {
		return base
	}
	if own, err := base.Parse(id); err == nil {
		own.Fragment, own.RawFragment = "", ""
		return own
	}
	return base
}

// identify collects the schemas that have a URI or an anchor. It removes the siblings of a
// reference in older drafts, which ignore them.
func (e *embedding) identify(s *value, base *url.URL, old bool) {
	if !s.isObject() {
		return
	}
	if old && s.get("$ref").isString() {
		s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.name != "$ref" && !annotation(m.name) })
	}
	own := baseOf(s, base, old)
	if own != base {
		e.resources[own.String()] = s
	}
	for _, word := range []string{"$anchor", "$dynamicAnchor"} {
		if name := s.get(word).text(); name != "" {
			e.anchors[own.String()+"#"+name] = s
		}
	}
	for _, word := range []string{"$id", "id"} { // in drafts 4 to 7, these also hold anchors
		if name, ok := strings.CutPrefix(s.get(word).text(), "#"); ok && old && name != "" {
			e.anchors[own.String()+"#"+name] = s
		}
	}
	eachSchemaOfAnyDraft(s, func(sub *value) { e.identify(sub, own, old) })
}

// refer resolves every reference.
func (e *embedding) refer(s *value, base *url.URL, old bool) {
	if !s.isObject() {
		return
	}
	base = baseOf(s, base, old)
	for _, word := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref := s.get(word)
		if ref == nil {
			continue
		}
		target := e.resolve(base, ref.text())
		switch {
		case !ref.isString() || target == nil:
			s.drop(word)
			e.notes.add("", "the contents of the referenced schema %s", ref.brief())
		case e.targets[s] == nil:
			s.drop(word)
			e.targets[s] = target
		default: // a second reference, such as $dynamicRef next to $ref: both apply
			s.drop(word)
			all := s.get("allOf")
			if !all.isList() {
				all = list()
				s.set("allOf", all)
			}
			also := object()
			all.items = append(all.items, also)
			e.targets[also] = target
		}
	}
	eachSchemaOfAnyDraft(s, func(sub *value) { e.refer(sub, base, old) })
}

// resolve returns the schema that a reference points to, or nil if it is not in the document.
func (e *embedding) resolve(base *url.URL, ref string) *value {
	to, err := base.Parse(ref)
	if err != nil {
		return nil
	}
	fragment := to.Fragment
	to.Fragment, to.RawFragment = "", ""
	in := e.resources[to.String()]
	if in != nil && strings.HasPrefix(fragment, "/") {
		in = lookup(in, "#"+(&url.URL{Path: fragment}).EscapedPath())
	} else if in != nil && fragment != "" {
		in = e.anchors[to.String()+"#"+fragment]
	}
	if in.isObject() || in != nil && (in.kind == 't' || in.kind == 'f') {
		return in
	}
	return nil
}

// unwind removes references that only lead back to themselves. Every value matches them.
func (e *embedding) unwind() {
	var circles []*value
	seen := make(map[*value]*value) // the first reference of the chain in which each was seen
	for first := range e.targets {
		at := first
		for seen[at] == nil && e.targets[at] != nil {
			seen[at] = first
			at = e.targets[at]
		}
		if seen[at] == first && e.targets[at] != nil { // the chain is a cycle
			for start := at; ; {
				circles = append(circles, at)
				if at = e.targets[at]; at == start {
					break
				}
			}
		}
	}
	for _, s := range circles {
		delete(e.targets, s)
	}
}

// collect makes the root and the definitions in use into parts.
func (e *embedding) collect() {
	owners := make(map[*value]*value) // the definition, or the root, that contains a schema
	names := make(map[*value]string)  // names of definitions
	taken := map[string]bool{e.name: true}
	var own func(s, owner *value)
	own = func(s, owner *value) {
		owners[s] = owner
		if !s.isObject() {
			return
		}
		definitions := make(map[*value]bool)
		for _, word := range []string{"$defs", "definitions"} {
			defs := s.get(word)
			if !defs.isObject() {
				continue
			}
			for _, m := range defs.members {
				name := e.name + "." + legalRest(m.name)
				for i := 2; taken[name]; i++ {
					name = e.name + "." + legalRest(m.name) + "_" + strconv.Itoa(i)
				}
				taken[name] = true
				names[m.value], definitions[m.value] = name, true
				own(m.value, m.value)
			}
		}
		eachSchemaOfAnyDraft(s, func(sub *value) {
			if !definitions[sub] {
				own(sub, owner)
			}
		})
	}
	own(e.root, e.root)
	names[e.root] = e.name
	seen := make(map[*value]bool)
	var use func(part *value)
	use = func(part *value) {
		if seen[part] {
			return
		}
		seen[part] = true
		e.parts = append(e.parts, embeddedPart{names[part], part})
		var walk func(s *value)
		walk = func(s *value) {
			if target := e.targets[s]; target != nil {
				if owner := owners[target]; owner != nil {
					use(owner)
				} else { // the target is not a schema
					delete(e.targets, s)
					e.notes.add("", "the contents of a referenced part that is not a schema")
				}
			}
			if s.isObject() {
				eachSchemaOfAnyDraft(s, func(sub *value) {
					if owners[sub] == part {
						walk(sub)
					}
				})
			}
		}
		walk(part)
	}
	use(e.root)
}

// place records the location of each value of a part in the document.
func (e *embedding) place(v *value, at string) {
	e.places[v] = at
	for _, m := range v.members {
		e.place(m.value, at+"/"+url.PathEscape(jsonpointer.Token(m.name)))
	}
	for i, item := range v.items {
		e.place(item, at+"/"+strconv.Itoa(i))
	}
}

// clean removes keywords that do not belong in the document and makes the rest valid.
func (e *embedding) clean(s *value, at string) {
	switch {
	case s.kind == 't':
		*s = *object()
	case s.kind == 'f':
		*s = *object().set("not", object())
	case !s.isObject():
		e.notes.keyword(at, "a schema", s)
		*s = *object()
	}
	for _, m := range slices.Clone(s.members) {
		switch m.name {
		case "$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary":
			s.drop(m.name) // they would change the base of references
		case "discriminator", "xml", "externalDocs", "nullable": // OpenAPI keywords that JSON Schema does not have
			s.drop(m.name)
			e.notes.keyword(at+"/"+m.name, m.name, m.value)
		default:
			if !allowed(m.name, m.value) {
				s.drop(m.name)
				e.notes.keyword(at+"/"+jsonpointer.Token(m.name), m.name, m.value)
			}
		}
	}
	if values := s.get("enum"); values.isList() && len(values.items) == 0 {
		// No value is valid. Generators of Python clients refuse an empty list.
		s.drop("enum")
		s.set("not", object())
	}
	eachSchema(s, at, func(sub *value, at string) { e.clean(sub, at) })
	for _, word := range schemaOne {
		// Generators understand false as the value of ...Properties keywords only.
		if sub := s.get(word); sub != nil && !strings.HasSuffix(word, "Properties") && (sub.kind == 't' || sub.kind == 'f') {
			e.clean(sub, at+"/"+word)
		}
	}
}

// allowed reports whether the keyword may have the value.
func allowed(keyword string, v *value) bool {
	switch keyword {
	case "title", "description", "format", "pattern", "$comment", "contentMediaType", "contentEncoding", "$ref":
		return v.isString()
	case "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return v.kind == '0'
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		n, err := strconv.ParseFloat(string(v.raw), 64)
		return v.kind == '0' && err == nil && n >= 0 && n == float64(int64(n))
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return v.kind == 't' || v.kind == 'f'
	case "enum", "examples":
		return v.isList()
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return v.isList() && len(v.items) > 0
	case "required":
		return v.isList() && len(v.texts()) == len(v.items)
	case "dependentRequired":
		return v.isObject() && !slices.ContainsFunc(v.members, func(m member) bool { return !m.value.isList() || len(m.value.texts()) != len(m.value.items) })
	case "type":
		known := func(s string) bool {
			return slices.Contains([]string{"null", "boolean", "object", "array", "number", "string", "integer"}, s)
		}
		return v.isString() && known(v.text()) ||
			v.isList() && len(v.items) > 0 && len(v.texts()) == len(v.items) && !slices.ContainsFunc(v.texts(), func(s string) bool { return !known(s) })
	}
	if slices.Contains(schemaMap, keyword) {
		return v.isObject()
	}
	if slices.Contains(schemaOne, keyword) {
		return v.isObject() || v.kind == 't' || v.kind == 'f'
	}
	return true
}
