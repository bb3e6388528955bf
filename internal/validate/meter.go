package validate

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A small schema can require a very large number of checks: alternatives for each of many items,
// references that double at each step, or recursive references along deep arguments. A running
// validator cannot be stopped, so if schema and arguments together could be expensive, the checks
// are counted first, up to a limit.

const (
	// maxApplications limits how many times schemas are applied to values in one check.
	maxApplications = 2_000_000
	// maxLevels limits chains of references without a target; the validator reports those.
	maxLevels = 2_000
)

// pathCount returns the number of paths through s. A cycle counts as endless, which is maxApplications.
func pathCount(s *jsonschema.Schema) int { return pathCountFrom(s, map[*jsonschema.Schema]int{}) }

// known holds 0 for schemas in progress.
func pathCountFrom(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if n, ok := known[s]; ok {
		if n == 0 {
			return maxApplications
		}
		return n
	}
	known[s] = 0
	n := ownCost(s)
	each(s, func(sub *jsonschema.Schema) {
		if n < maxApplications {
			n += pathCountFrom(sub, known)
		}
	})
	n = min(n, maxApplications)
	known[s] = n
	return n
}

// ownCost returns the cost of applying s itself, since an enum is compared value by value.
func ownCost(s *jsonschema.Schema) int {
	if s.Enum == nil {
		return 1
	}
	return 1 + len(s.Enum.Values)
}

// affordable reports whether applying s to doc, which has size bytes as JSON, takes a limited
// number of steps. It counts every alternative, also those that the validator would skip.
func affordable(s *jsonschema.Schema, ways int, doc any, size int) bool {
	if ways*(size/2+1) <= maxApplications { // no value is shorter than two bytes, including its comma
		return true
	}
	m := meter{left: maxApplications}
	m.apply(s, doc, 0)
	return m.left > 0
}

// each visits the schemas that s applies to the same value or to its parts.
func each(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	eachInPlace(s, visit)
	for _, sub := range s.Properties {
		visit(sub)
	}
	for _, sub := range s.PatternProperties {
		visit(sub)
	}
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		visit(sub)
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		visit(items)
	case []*jsonschema.Schema:
		for _, sub := range items {
			visit(sub)
		}
	}
	if sub, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		visit(sub)
	}
	for _, sub := range s.PrefixItems {
		visit(sub)
	}
	for _, sub := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems} {
		if sub != nil {
			visit(sub)
		}
	}
}

// eachInPlace visits the schemas that s applies to the same value.
func eachInPlace(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, sub := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else} {
		if sub != nil {
			visit(sub)
		}
	}
	if s.DynamicRef != nil {
		visit(s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, sub := range list {
			visit(sub)
		}
	}
	for _, sub := range s.DependentSchemas {
		visit(sub)
	}
	for _, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			visit(sub)
		}
	}
}

type meter struct{ left int }

func (m *meter) apply(s *jsonschema.Schema, v any, level int) {
	switch v := v.(type) {
	case map[string]any:
		m.left -= len(v)
	case []any:
		m.left -= len(v)
	}
	if m.left -= ownCost(s); m.left <= 0 {
		return
	}
	if level > maxLevels {
		m.left = 0
		return
	}
	eachInPlace(s, func(sub *jsonschema.Schema) {
		if m.left > 0 {
			m.apply(sub, v, level+1)
		}
	})
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			if m.left <= 0 {
				return
			}
			m.property(s, name, item, level)
		}
	case []any:
		for i, item := range v {
			if m.left <= 0 {
				return
			}
			m.item(s, i, item, level)
		}
	}
}

func (m *meter) property(s *jsonschema.Schema, name string, v any, level int) {
	evaluated := false
	if sub, ok := s.Properties[name]; ok {
		evaluated = true
		m.apply(sub, v, level+1)
	}
	for re, sub := range s.PatternProperties {
		if re.MatchString(name) {
			evaluated = true
			m.apply(sub, v, level+1)
		}
	}
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !evaluated {
		m.apply(sub, v, level+1)
	}
	if s.UnevaluatedProperties != nil {
		m.apply(s.UnevaluatedProperties, v, level+1)
	}
	if s.PropertyNames != nil {
		m.apply(s.PropertyNames, name, level+1)
	}
}

func (m *meter) item(s *jsonschema.Schema, i int, v any, level int) {
	var sub *jsonschema.Schema
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		sub = items
	case []*jsonschema.Schema:
		if i < len(items) {
			sub = items[i]
		} else {
			sub, _ = s.AdditionalItems.(*jsonschema.Schema)
		}
	case nil:
		if sub = s.Items2020; i < len(s.PrefixItems) {
			sub = s.PrefixItems[i]
		}
	}
	for _, sub := range []*jsonschema.Schema{sub, s.Contains, s.UnevaluatedItems} {
		if sub != nil {
			m.apply(sub, v, level+1)
		}
	}
}
