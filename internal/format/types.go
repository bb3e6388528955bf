package format

import "slices"

// typeKeywords lists the keywords that constrain only values of one type.
var typeKeywords = map[string][]string{
	"string": {"minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType", "contentSchema"},
	"number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"array":  {"items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems"},
	"object": {
		"properties", "patternProperties", "additionalProperties", "propertyNames", "minProperties", "maxProperties",
		"required", "dependentRequired", "dependentSchemas",
	},
}

// splitTypes converts a schema with several types to an anyOf with a schema for each. The same
// values are valid. Keywords that apply to one type move with it, so that a generator sees the
// properties of the object and the items of the list. One type with null is unchanged.
func splitTypes(s *value) {
	types := s.get("type").texts()
	if slices.Contains(types, "number") && slices.Contains(types, "integer") { // every integer is a number
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
		if s.set("type", listOf(types)); len(types) == 1 {
			s.set("type", str("number"))
		}
	}
	several := len(types)
	if slices.Contains(types, "null") {
		several--
	}
	if several < 2 {
		return
	}
	into := s
	if s.get("anyOf") != nil { // both apply
		into = object()
		all := s.get("allOf")
		if !all.isList() {
			all = list()
			s.set("allOf", all)
		}
		all.items = append(all.items, into)
	}
	s.drop("type")
	each := list()
	for _, t := range types {
		one := fields("type", t)
		if t == "integer" {
			t = "number"
		}
		for _, word := range typeKeywords[t] {
			if v := s.drop(word); v != nil {
				one.set(word, v)
			}
		}
		each.items = append(each.items, one)
	}
	into.set("anyOf", each)
}
