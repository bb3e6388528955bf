package format

import (
	"slices"
)

// propertyMost is how long the name of a property may be.
const propertyMost = 64

// propertyName returns the nearest name that the provider takes for a property.
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
	near := spelled(name, fits)
	if near == "" || f == Gemini && near[0] >= '0' && near[0] <= '9' {
		near = "_" + near
	}
	return near[:min(len(near), propertyMost)]
}

// renamed says under which names the provider knows the properties of one object,
// for those whose own name it does not take; nil where it takes all.
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
			near = near[:min(len(near), propertyMost-len(tail))] + tail
		}
		to[m.name] = near
		taken = append(taken, near)
	}
	return to
}
