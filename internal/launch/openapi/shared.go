package openapi

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/callyard/callyard/internal/kit/plainjson"
)

// part is the target of one reference of a document, converted and encoded once for all tools. It
// does not contain the targets of its own references.
type part struct {
	name  string
	value any      // the value under $defs; it is shared and must not be changed
	refs  []string // its references, each once, in the order of the conversion
	cost  int      // number of values in it, for the budget of a tool
	cut   bool     // a reference in it has no target, or it is nested too deep
}

type partKey struct {
	ref         string
	input, form bool
}

// partName returns the name of a reference's target under $defs, unless another reference has that
// name.
func partName(ref string) string { return legalName(ref[strings.LastIndexByte(ref, '/')+1:]) }

// partOf returns the target of a reference. It returns nil if there is no target or if it does not
// fit into any tool.
func (d *document) partOf(ref string, input, form bool) *part {
	key := partKey{ref, input, form}
	if p, ok := d.parts[key]; ok {
		return p
	}
	if d.parts == nil {
		d.parts = make(map[partKey]*part)
	}
	d.parts[key] = nil
	target, ok := d.lookup(ref)
	if !ok {
		return nil
	}
	p := &part{name: partName(ref)}
	s := newSchemas(d, input)
	s.part, s.form, s.budget = p, form, inputBudget
	p.value = s.convert(target, 0)
	if s.budget < 0 {
		return nil
	}
	p.cost, p.cut = inputBudget-s.budget, s.cut
	if text, err := plainjson.Marshal(p.value); err == nil {
		p.value = json.RawMessage(text)
	}
	d.parts[key] = p
	return p
}

// link adds the target of a reference and everything that it refers to under $defs, from the shared
// parts. It changes nothing and returns false if the result would differ from a separate conversion
// for this tool: a part does not fit into the budget, or two references have the same name.
func (s *schemas) link(ref string) bool {
	if s.plain {
		return false
	}
	all, cost, cut := []*part{}, 0, false
	named, taken := make(map[string]string), make(map[string]bool)
	for next := []string{ref}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		_, before := s.names[at]
		if _, now := named[at]; before || now {
			continue
		}
		p := s.doc.partOf(at, s.input, s.form)
		if p == nil || cost+p.cost > s.budget {
			s.plain, s.cut = true, true
			return false
		}
		if _, before = s.defs[p.name]; before || taken[p.name] {
			s.plain = true
			return false
		}
		cost += p.cost
		cut = cut || p.cut
		named[at], taken[p.name] = p.name, true
		all = append(all, p)
		next = append(next, p.refs...)
	}
	for _, p := range all {
		s.defs[p.name] = p.value
	}
	maps.Copy(s.names, named)
	s.budget -= cost
	s.cut = s.cut || cut
	return true
}
