package format

import "slices"

// Restore converts arguments for the provider's schema to arguments for the tool. It restores the
// original names of properties that [Format.Schema] renamed. It removes a null value if null can
// only mean an omitted optional property, that is, if the tool's schema does not accept null there.
// All other bytes are unchanged. If nothing changes, or if the text is not JSON, it returns
// arguments itself.
func (f Format) Restore(schema, arguments []byte) []byte {
	if f == MCP {
		return arguments
	}
	root, err := read(schema)
	if err != nil || !root.isObject() {
		return arguments
	}
	v, err := read(arguments)
	if err != nil {
		return arguments
	}
	r := restorer{root: root, names: f.propertyNames(root), steps: restoreSteps}
	return r.rewritten(v, arguments)
}

// rename is the inverse of [Format.Restore]: it renames properties to the names that
// [Format.Schema] gives them. All other bytes are unchanged.
func (f Format) rename(root, v *value, arguments []byte) []byte {
	r := restorer{root: root, names: f.propertyNames(root), steps: restoreSteps, forward: true}
	return r.rewritten(v, arguments)
}

// rewritten returns the arguments with the required edits. v is their parsed value.
func (r *restorer) rewritten(v *value, arguments []byte) []byte {
	r.walk(v, []*value{r.root})
	if len(r.edits) == 0 {
		return arguments
	}
	slices.SortFunc(r.edits, func(a, b edit) int { return a.from - b.from })
	out := make([]byte, 0, len(arguments))
	at := 0
	for _, e := range r.edits {
		if e.from < at {
			continue
		}
		out = append(append(out, arguments[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, arguments[at:]...)
}

// restoreSteps limits the walk over arguments and the schemas that may apply to them.
const restoreSteps = 200_000

type edit struct {
	from, to int
	with     []byte
}

type restorer struct {
	root  *value
	names map[string]string // see [Format.propertyNames]
	steps int
	edits []edit
	// forward renames properties to the provider's names and keeps null values.
	forward bool
}

// sure adds the schemas that certainly apply to a value: s, its reference target, and its allOf
// branches.
func (r *restorer) sure(s *value, into []*value, depth int) []*value {
	if r.steps--; r.steps < 0 || depth > 32 || !s.isObject() || slices.Contains(into, s) {
		return into
	}
	into = append(into, s)
	if ref := s.get("$ref"); ref.isString() {
		into = r.sure(lookup(r.root, ref.text()), into, depth+1)
	}
	if all := s.get("allOf"); all.isList() {
		for _, b := range all.items {
			into = r.sure(b, into, depth+1)
		}
	}
	return into
}

// open returns the schemas that may apply to a value: first the certain ones, which are certain in
// number, then those of branches.
func (r *restorer) open(schemas []*value) (all []*value, certain int) {
	for _, s := range schemas {
		all = r.sure(s, all, 0)
	}
	certain = len(all)
	for i := 0; i < len(all); i++ {
		for _, name := range []string{"anyOf", "oneOf"} {
			if branches := all[i].get(name); branches.isList() {
				for _, b := range branches.items {
					all = r.sure(b, all, 0)
				}
			}
		}
		for _, name := range []string{"then", "else"} {
			all = r.sure(all[i].get(name), all, 0)
		}
	}
	return all, certain
}

func (r *restorer) walk(v *value, schemas []*value) {
	all, certain := r.open(schemas)
	if r.steps < 0 {
		return
	}
	switch v.kind {
	case '{':
		r.object(v, all, certain)
	case '[':
		for i, item := range v.items {
			var of []*value
			for _, s := range all {
				first := s.get("prefixItems")
				more := s.get("items")
				if more.isList() { // an older draft
					first, more = more, s.get("additionalItems")
				}
				if more != nil {
					of = append(of, more)
				}
				if first.isList() && i < len(first.items) {
					of = append(of, first.items[i])
				}
			}
			r.walk(item, of)
		}
	}
}

// renamed returns the tool's name for each renamed property of the schemas by the provider's name, and
// the reverse.
func (r *restorer) renamed(schemas []*value) (own, shownAs map[string]string) {
	own, shownAs = make(map[string]string), make(map[string]string)
	if len(r.names) == 0 {
		return own, shownAs
	}
	for _, s := range schemas {
		for _, p := range membersOf(s.get("properties")) {
			if shown, ok := r.names[p.name]; ok {
				own[shown], shownAs[p.name] = p.name, shown
			}
		}
	}
	return own, shownAs
}

func membersOf(v *value) []member {
	if !v.isObject() {
		return nil
	}
	return v.members
}

func (r *restorer) object(v *value, schemas []*value, certain int) {
	own, shownAs := r.renamed(schemas)
	gone := make([]bool, len(v.members))
	for i, m := range v.members {
		if r.steps--; r.steps < 0 {
			return
		}
		name := m.name
		if was, ok := own[name]; ok && !r.forward && !named(schemas, name) && v.get(was) == nil {
			name = was
			r.edits = append(r.edits, edit{m.nameAt, m.nameTo, quote(name)})
		} else if to, ok := shownAs[name]; ok && r.forward && v.get(to) == nil {
			r.edits = append(r.edits, edit{m.nameAt, m.nameTo, quote(to)})
		}
		var of []*value
		for _, s := range schemas {
			if p := s.get("properties").get(name); p != nil {
				of = append(of, p)
			} else if more := s.get("additionalProperties"); more.isObject() {
				of = append(of, more)
			}
		}
		if m.value.kind == 'n' && !r.forward && named(schemas, name) && !required(schemas[:certain], name) && !slices.ContainsFunc(of, func(p *value) bool { return !r.refusesNull(p, 0) }) {
			gone[i] = true
			continue
		}
		for _, s := range schemas { // whether the name matches a pattern does not matter for the names below it
			for _, p := range membersOf(s.get("patternProperties")) {
				of = append(of, p.value)
			}
		}
		r.walk(m.value, of)
	}
	r.take(v, gone)
}

// take removes members from the text, each with one comma.
func (r *restorer) take(v *value, gone []bool) {
	kept := 0
	for i, m := range v.members {
		if !gone[i] {
			kept++
			continue
		}
		e := edit{from: m.nameAt, to: m.value.end}
		switch {
		case kept > 0: // with the preceding comma
			e.from = v.members[i-1].value.end
		case i+1 < len(v.members): // no earlier member was kept: with the following comma
			e.to = v.members[i+1].nameAt
		}
		// This edit replaces edits inside the removed text.
		r.edits = slices.DeleteFunc(r.edits, func(other edit) bool { return other.from >= e.from && other.to <= e.to })
		r.edits = append(r.edits, e)
	}
}

func named(schemas []*value, name string) bool {
	return slices.ContainsFunc(schemas, func(s *value) bool { return s.get("properties").get(name) != nil })
}

func required(schemas []*value, name string) bool {
	return slices.ContainsFunc(schemas, func(s *value) bool { return slices.Contains(s.get("required").texts(), name) })
}

// refusesNull reports whether the schema rejects null.
func (r *restorer) refusesNull(s *value, depth int) bool {
	if r.steps--; r.steps < 0 || depth > 16 || s == nil {
		return false
	}
	if !s.isObject() {
		return s.kind == 'f'
	}
	if s.get("nullable").isTrue() {
		return false
	}
	if t := types(s); len(t) > 0 && !slices.Contains(t, "null") {
		return true
	}
	if e := s.get("enum"); e.isList() && !slices.ContainsFunc(e.items, (*value).isNull) {
		return true
	}
	if c := s.get("const"); c != nil && c.kind != 'n' {
		return true
	}
	if ref := s.get("$ref"); ref.isString() && r.refusesNull(lookup(r.root, ref.text()), depth+1) {
		return true
	}
	refuses := func(b *value) bool { return r.refusesNull(b, depth+1) }
	if all := s.get("allOf"); all.isList() && slices.ContainsFunc(all.items, refuses) {
		return true
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if some := s.get(name); some.isList() && len(some.items) > 0 && !slices.ContainsFunc(some.items, func(b *value) bool { return !refuses(b) }) {
			return true
		}
	}
	return false
}
