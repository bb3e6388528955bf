package format

// maxPropertyName limits the length of a property name.
const maxPropertyName = 64

// propertyName returns the closest property name that the provider accepts.
func (f Format) propertyName(name string) string {
	var fits func(c byte) bool
	switch f {
	case Anthropic:
		fits = func(c byte) bool { return nameByte(c) || c == '.' }
	case Gemini:
		fits = func(c byte) bool { return nameByte(c) && c != '-' }
	default:
		return name
	}
	near := replaceOthers(name, fits)
	if near == "" || f == Gemini && near[0] >= '0' && near[0] <= '9' {
		near = "_" + near
	}
	return near[:min(len(near), maxPropertyName)]
}

// propertyNames returns the provider's names for those properties of a schema whose own names it does
// not accept, by own name. The same own name has the same shown name wherever it is in the schema, and
// two own names never have the same one: branches of a choice apply to the same value, and so do a
// schema and the target of its reference, so that a written name must stand for one property.
func (f Format) propertyNames(root *value) map[string]string {
	if f != Anthropic && f != Gemini || root.size(maxSchemaValues) > maxSchemaValues { // as in Schema
		return nil
	}
	var refused []string
	seen := make(map[string]bool)
	var collect func(v *value)
	collect = func(v *value) {
		for _, p := range membersOf(v.get("properties")) {
			if !seen[p.name] && f.propertyName(p.name) != p.name {
				refused = append(refused, p.name)
			}
			seen[p.name] = true
		}
		for _, m := range v.members {
			collect(m.value)
		}
		for _, item := range v.items {
			collect(item)
		}
	}
	collect(root)
	if len(refused) == 0 {
		return nil
	}
	to := make(map[string]string, len(refused))
	for _, name := range refused {
		near := f.propertyName(name)
		if seen[near] {
			tail := digestTail(name)
			near = near[:min(len(near), maxPropertyName-len(tail))] + tail
		}
		to[name], seen[near] = near, true
	}
	return to
}
