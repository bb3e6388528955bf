package format

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
)

// Keywords of JSON Schema that hold schemas.
var (
	schemaOne  = []string{"items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	schemaList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaMap  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// eachSchema calls f for every direct subschema of s, with its pointer.
func eachSchema(s *value, at string, f func(sub *value, at string)) {
	for _, m := range s.members {
		here := at + "/" + jsonpointer.Token(m.name)
		switch {
		case m.value.isObject() && slices.Contains(schemaMap, m.name):
			for _, p := range m.value.members {
				f(p.value, here+"/"+jsonpointer.Token(p.name))
			}
		case m.value.isObject() && slices.Contains(schemaOne, m.name):
			f(m.value, here)
		case m.value.isList() && (m.name == "items" || slices.Contains(schemaList, m.name)):
			for i, item := range m.value.items {
				f(item, here+"/"+strconv.Itoa(i))
			}
		}
	}
}

// everySchema calls f for s and then for every schema that is inside it after f has changed it.
func everySchema(s *value, depth int, f func(*value)) {
	if !s.isObject() || depth > maxDepth {
		return
	}
	f(s)
	eachSchema(s, "", func(sub *value, _ string) { everySchema(sub, depth+1, f) })
}

// lookup returns the target of a reference, or nil if it does not exist or is outside the document.
func lookup(root *value, ref string) *value {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment == "" {
		return root
	}
	if fragment[0] != '/' {
		return anchor(root, fragment)
	}
	at := root
	for token := range strings.SplitSeq(fragment[1:], "/") {
		token = jsonpointer.Name(token)
		switch {
		case at.isObject():
			at = at.get(token)
		case at.isList():
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at.items) {
				return nil
			}
			at = at.items[i]
		default:
			return nil
		}
	}
	return at
}

// anchor returns the schema with that $anchor.
func anchor(s *value, name string) (found *value) {
	if s.get("$anchor").text() == name {
		return s
	}
	eachSchema(s, "", func(sub *value, _ string) {
		if found == nil && sub.isObject() {
			found = anchor(sub, name)
		}
	})
	return found
}

// types returns the values of the keyword type.
func types(s *value) []string {
	if t := s.get("type"); t.isString() {
		return []string{t.text()}
	} else if t.isList() {
		return t.texts()
	}
	return nil
}

// anything reports whether the schema accepts every value: true, or an object with annotations only.
func anything(s *value) bool {
	if !s.isObject() {
		return s == nil || s.kind == 't'
	}
	for _, m := range s.members {
		if !annotation(m.name) {
			return false
		}
	}
	return true
}

// annotation reports whether the keyword does not constrain values.
func annotation(keyword string) bool {
	switch keyword {
	case "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id", "id", "$anchor",
		"$vocabulary", "$defs", "definitions", "contentMediaType", "contentEncoding", "contentSchema", "discriminator", "externalDocs", "xml":
		return true
	}
	return strings.HasPrefix(keyword, "x-")
}
