package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// maxValues limits the number of values in one configuration. An alias counts each time it is
// used.
const maxValues = 100_000

// decoder stores nodes in Go values. It continues after a fault so that it finds all of them. A
// field with a fault keeps its previous value.
type decoder struct {
	faults *report
	expand *expander
	// places records where each path was set, for the faults of Validate.
	places Places
	values int
	// misplaced returns the paths at which a key is known.
	misplaced func(key string) []string
}

func (d *decoder) decode(path string, n *node, v reflect.Value) {
	if d.values++; d.values >= maxValues {
		if d.values == maxValues {
			d.faults.add(n.at, path, "the file has more than %d values; reduce them, or use fewer aliases.", maxValues)
		}
		return
	}
	if d.places != nil {
		d.places[path] = n.at
	}
	if n.kind == yamldoc.Bad {
		return
	}
	t := v.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		d.pointer(path, n, v)
	case isText(t):
		d.byText(path, n, v)
	default:
		d.byKind(path, n, v)
	}
}

func (d *decoder) pointer(path string, n *node, v reflect.Value) {
	if n.kind == yamldoc.Null {
		v.SetZero()
		return
	}
	fresh := reflect.New(v.Type().Elem())
	if !v.IsNil() {
		fresh.Elem().Set(v.Elem())
	}
	d.decode(path, n, fresh.Elem())
	v.Set(fresh)
}

func (d *decoder) byKind(path string, n *node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.table(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Interface:
		if value := d.free(path, n); value != nil {
			v.Set(reflect.ValueOf(value))
		} else {
			v.SetZero()
		}
	default:
		d.scalar(path, n, v)
	}
}

// structure fills the fields that the map names.
func (d *decoder) structure(path string, n *node, v reflect.Value) {
	d.members(path, n, sectionsIn(v), nil)
}

// members stores the members of a map in the sections that their keys name. others are keys that
// belong to other programs.
func (d *decoder) members(path string, n *node, sections []section, others []string) {
	switch n.kind {
	case yamldoc.Null: // a section whose keys are all comments
		return
	case yamldoc.Map:
	default:
		d.faults.add(n.at, path, "must be a map of keys, not %s; indent its keys below it.", n.kind)
		return
	}
	d.faults.duplicates(path, n)
	known := make(map[string]int, len(sections))
	names := make([]string, 0, len(sections)+len(others))
	for i, s := range sections {
		known[s.key] = i
		names = append(names, s.key)
	}
	foreign := make(map[string]bool, len(others))
	for _, name := range others {
		foreign[name] = true
		names = append(names, name)
	}
	done := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if done[m.key] || foreign[m.key] {
			continue
		}
		done[m.key] = true
		i, ok := known[m.key]
		if !ok {
			d.unknown(path, m, names)
			continue
		}
		d.decode(join(path, m.key), m.value, sections[i].value)
	}
}

func (d *decoder) unknown(path string, m member, names []string) {
	fix := ""
	if yamldoc.Nearest(m.key, names) == "" && d.misplaced != nil {
		switch elsewhere := d.misplaced(m.key); {
		case len(elsewhere) == 1 && elsewhere[0] != join(path, m.key):
			fix = fmt.Sprintf("the key is %s; move it there.", elsewhere[0])
		case len(elsewhere) > 1:
			fix = fmt.Sprintf("move it to the section that it belongs to: %s.", strings.Join(elsewhere, ", "))
		}
	}
	if fix == "" {
		fix = hint(m.key, names)
	}
	d.faults.add(m.at, joinName(path, shorten(m.key)), "is not a known key here; %s", fix)
}

// holds reports whether the node is of the kind. A node of another kind is a fault with the
// sentence wrong; null is not a fault and clears v.
func (d *decoder) holds(path string, n *node, v reflect.Value, kind yamldoc.Kind, wrong string) bool {
	switch n.kind {
	case kind:
		return true
	case yamldoc.Null:
		v.SetZero()
	default:
		d.faults.add(n.at, path, wrong, n.kind)
	}
	return false
}

func (d *decoder) table(path string, n *node, v reflect.Value) {
	if !d.holds(path, n, v, yamldoc.Map, "must be a map of names to values, not %s.") {
		return
	}
	d.faults.duplicates(path, n)
	// The file replaces the whole default map. If the two were merged, nothing could remove an
	// entry of the default.
	m := reflect.MakeMapWithSize(v.Type(), len(n.members))
	for _, mem := range n.members {
		key := reflect.ValueOf(mem.key).Convert(v.Type().Key())
		if m.MapIndex(key).IsValid() {
			continue
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.decode(joinName(path, mem.key), mem.value, value)
		m.SetMapIndex(key, value)
	}
	v.Set(m)
}

func (d *decoder) list(path string, n *node, v reflect.Value) {
	if !d.holds(path, n, v, yamldoc.List, "must be a list, not %s; write it as [a, b].") {
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.decode(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	v.Set(list)
}
