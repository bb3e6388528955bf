package format

import (
	"slices"
)

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

// renamed returns the provider's names for those properties of an object whose own names it does not
// accept. It returns nil if it accepts all.
func (f Format) renamed(properties *value) map[string]string {
	if !properties.isObject() {
		return nil
	}
	var to map[string]string
	var taken []string
	for _, m := range properties.members {
		near := f.propertyName(m.name)
		if near == m.name {
			continue
		}
		if to == nil {
			to = make(map[string]string)
		}
		if properties.get(near) != nil || slices.Contains(taken, near) {
			tail := digestTail(m.name)
			near = near[:min(len(near), maxPropertyName-len(tail))] + tail
		}
		to[m.name] = near
		taken = append(taken, near)
	}
	return to
}
