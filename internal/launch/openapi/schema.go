package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	inputBudget  = 5000 // maximum number of values in the schemas of one tool
	outputBudget = 2500
	maxNesting   = 100
)

// schemas converts schemas of a document to JSON Schema 2020-12 for one tool, with referenced
// schemas under $defs.
type schemas struct {
	doc    *document
	input  bool // for callers: without properties that only the service sets
	form   bool // the body is multipart; see isBinary
	budget int
	cut    bool // a part was too large or has no target, and is left open

	defs  map[string]any
	names map[string]string // by reference
	plain bool              // a reference exceeded the budget, so the rest is converted without shared parts
	part  *part             // set while a part is created
}

func newSchemas(doc *document, input bool) *schemas {
	s := &schemas{doc: doc, input: input, budget: outputBudget, defs: make(map[string]any), names: make(map[string]string)}
	if input {
		s.budget = inputBudget
	}
	return s
}

// of converts a schema of the document. nil allows everything.
func (s *schemas) of(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return s.convert(v, 0)
}

// resolve follows references to a schema.
func (s *schemas) resolve(v any) map[string]any {
	for range 20 {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		if v, ok = s.doc.lookup(ref); !ok {
			return nil
		}
	}
	return nil
}

func (s *schemas) convert(v any, depth int) any {
	if s.budget--; s.budget < 0 || depth > maxNesting {
		s.cut = true
		return true
	}
	m, ok := v.(map[string]any)
	if !ok {
		if b, ok := v.(bool); ok {
			return b
		}
		return true
	}
	out := make(map[string]any, len(m))
	hidden := s.hidden(m)
	// Sorted, so that the same document always gives the same bytes.
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := m[key]
		switch key {
		case "$ref":
			ref, _ := value.(string)
			if name := s.define(ref); name != "" {
				out["$ref"] = "#/$defs/" + name
			}
		case "properties", "patternProperties", "dependentSchemas":
			members, _ := value.(map[string]any)
			all := make(map[string]any, len(members))
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if key != "properties" || !hidden[name] {
					all[name] = s.convert(members[name], depth+1)
				}
			}
			out[key] = all
		case "allOf", "anyOf", "oneOf", "prefixItems":
			items, _ := value.([]any)
			list := make([]any, len(items))
			for i, sub := range items {
				list[i] = s.convert(sub, depth+1)
			}
			if len(list) > 0 {
				out[key] = list
			}
		case "items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
			out[key] = s.convert(value, depth+1)
		case "required":
			var names []any
			list, _ := value.([]any)
			for _, name := range list {
				if text, ok := name.(string); ok && !hidden[text] && !slices.Contains(names, name) {
					names = append(names, text)
				}
			}
			if len(names) > 0 {
				out[key] = names
			}
		case "$defs", "definitions", "$schema", "$id", "$anchor", "$comment", "$dynamicRef", "$dynamicAnchor", "$vocabulary",
			"$recursiveRef", "$recursiveAnchor", "discriminator", "xml", "externalDocs", "example", "nullable", "readOnly", "writeOnly", "collectionFormat", "allowEmptyValue":
			// Keywords of OpenAPI only, or of another dialect.
		default:
			if !strings.HasPrefix(key, "x-") && wellFormed(key, value) {
				out[key] = value
			}
		}
	}
	exclusiveBounds(m, out)
	if s.doc.old {
		modernize(m, out)
	}
	if s.input && s.isBinary(m) {
		delete(out, "format")
		delete(out, "contentMediaType")
		out["type"], out["contentEncoding"] = "string", "base64"
	}
	return out
}

// hidden returns the properties that belong to the other direction.
func (s *schemas) hidden(m map[string]any) map[string]bool {
	members, _ := m["properties"].(map[string]any)
	var out map[string]bool
	for name, sub := range members {
		p := s.resolve(sub)
		only := "writeOnly"
		if s.input {
			only = "readOnly"
		}
		own, _ := sub.(map[string]any)
		if p[only] == true || own[only] == true {
			if out == nil {
				out = make(map[string]bool)
			}
			out[name] = true
		}
	}
	return out
}

// define adds the target of a reference to $defs and returns its name there, or "" if it has no target.
func (s *schemas) define(ref string) string {
	if name, ok := s.names[ref]; ok {
		return name
	}
	target, ok := s.doc.lookup(ref)
	if !ok || s.budget < 0 {
		s.cut = true
		return ""
	}
	if s.part != nil {
		s.part.refs = append(s.part.refs, ref)
		s.names[ref] = partName(ref)
		return s.names[ref]
	}
	if s.link(ref) || s.cut && !s.input {
		return s.names[ref] // an incomplete output schema is not used, so the rest does not matter
	}
	first := partName(ref)
	name := first
	for n := 2; ; n++ {
		if _, taken := s.defs[name]; !taken {
			break
		}
		name = fmt.Sprint(first, "_", n)
	}
	s.names[ref] = name
	s.defs[name] = true // it may refer to itself
	s.defs[name] = s.convert(target, 0)
	return name
}

// exclusiveBounds converts exclusive bounds that are a boolean next to the bound, as in OpenAPI 3.0.
// Some documents of version 3.1 still have them.
func exclusiveBounds(from, out map[string]any) {
	for _, bound := range [...][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		exclusive, ok := from[bound[0]].(bool)
		if !ok {
			continue
		}
		delete(out, bound[0])
		if limit, ok := out[bound[1]]; ok && exclusive {
			out[bound[0]] = limit
			delete(out, bound[1])
		}
	}
}

// modernize converts the other parts of OpenAPI 3.0 that differ from JSON Schema.
func modernize(from, out map[string]any) {
	if from["nullable"] != true {
		return
	}
	if kind, ok := out["type"].(string); ok {
		out["type"] = []any{kind, "null"}
		if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
			out["enum"] = append(slices.Clip(values), nil)
		}
		return
	}
	if len(out) == 0 {
		return
	}
	inner := maps.Clone(out)
	clear(out)
	out["anyOf"] = []any{inner, map[string]any{"type": "null"}}
	if about, ok := inner["description"]; ok {
		out["description"] = about
	}
}

// isBinary reports whether a schema describes bytes, which are base64 in JSON. A string with a media
// type, as FastAPI describes a file, is bytes in a multipart body. In JSON it is text.
func (s *schemas) isBinary(m map[string]any) bool {
	if m["format"] == "binary" {
		return true
	}
	kind, ok := m["contentMediaType"].(string)
	untyped := m["type"] == nil || s.form && hasType(m, "string")
	return ok && m["contentEncoding"] == nil && untyped && !strings.HasPrefix(kind, "text/") && !isJSON(kind)
}

// hasType reports whether a schema allows values of a type by name.
func hasType(m map[string]any, kind string) bool {
	list, _ := m["type"].([]any)
	return m["type"] == kind || slices.Contains(list, any(kind))
}

// isObject reports whether a schema allows only objects.
func (s *schemas) isObject(v any, depth int) bool {
	m := s.resolve(v)
	if s.budget--; m == nil || depth > 10 || s.budget < 0 {
		return false
	}
	if m["nullable"] == true {
		return false
	}
	switch kind := m["type"].(type) {
	case string:
		return kind == "object"
	case []any:
		return len(kind) == 1 && kind[0] == "object"
	}
	if list, ok := m["allOf"].([]any); ok {
		for _, sub := range list {
			if s.isObject(sub, depth+1) {
				return true
			}
		}
	}
	for _, key := range [...]string{"oneOf", "anyOf"} {
		if list, ok := m[key].([]any); ok && len(list) > 0 {
			return !slices.ContainsFunc(list, func(sub any) bool { return !s.isObject(sub, depth+1) })
		}
	}
	_, has := m["properties"]
	return has && s.doc.old // in standard JSON Schema, properties does not restrict the type
}
