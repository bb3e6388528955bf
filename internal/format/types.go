package format

import (
	"slices"
	"strconv"
)

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

// liftItems makes the items of a list into a part of the document if they have an enum and the list
// is a branch of a choice. Generators of Go clients would give the list and its items the same name,
// and fail.
func (e *embedding) liftItems() {
	taken := make(map[string]bool)
	for _, p := range e.parts {
		taken[p.name] = true
	}
	for _, p := range slices.Clone(e.parts) {
		everySchema(p.value, 0, func(s *value) {
			for _, word := range []string{"anyOf", "oneOf"} {
				if choice := s.get(word); choice.isList() {
					e.liftItemsOf(choice.items, p.name+".enum", taken)
				}
			}
		})
	}
}

// liftItemsOf lifts the items of the branches of a choice; see [embedding.liftItems]. The new parts
// get the name, with a number if it is taken.
func (e *embedding) liftItemsOf(branches []*value, name string, taken map[string]bool) {
	for _, branch := range branches {
		item := branch.get("items")
		if !item.get("enum").isList() {
			continue
		}
		free := name
		for i := 2; taken[free]; i++ {
			free = name + "_" + strconv.Itoa(i)
		}
		taken[free] = true
		lifted := object()
		branch.set("items", lifted)
		e.targets[lifted] = item
		e.parts = append(e.parts, embeddedPart{free, item})
	}
}
