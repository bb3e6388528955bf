package validate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// relax removes keywords from a decoded schema that cannot be enforced, so that the rest rejects
// nothing that the whole schema would accept. Removing a pattern makes its own subschema accept
// more. Under not, oneOf, if and contains, accepting more can mean rejecting more, so such keywords
// are removed as well if they contain a removed pattern, or could through a reference.
type relax struct {
	dropped []string // pointers of removed keywords
}

// Keywords whose values hold no schema, and those whose values are maps of schemas.
var (
	dataKeywords = []string{"enum", "const", "default", "examples", "required", "type"}
	schemaMaps   = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// relaxed changes doc and returns the pointers of removed keywords.
func relaxed(doc any) []string {
	var r relax
	walk(doc, nil, r.dropPatterns)
	if len(r.dropped) == 0 {
		return nil
	}
	patterns := slices.Clone(r.dropped)
	walk(doc, nil, func(obj map[string]any, path []string) {
		r.dropSwitches(obj, path, patterns)
	})
	slices.Sort(r.dropped)
	return r.dropped
}

// withoutMistakes removes the keywords of a decoded schema that are null, and required if it is a boolean,
// as in draft 3. Properties whose schema is null can have any value. The later drafts do not allow that,
// but servers write their empty lists and maps as null, such as a nil slice in Go, and clients accept it.
func withoutMistakes(doc any) any {
	walk(doc, nil, func(obj map[string]any, _ []string) {
		for keyword, value := range obj {
			named, _ := value.(map[string]any)
			_, boolean := value.(bool)
			switch {
			case value == nil && keyword != "const" && keyword != "default", boolean && keyword == "required":
				delete(obj, keyword)
			case slices.Contains(schemaMaps, keyword):
				for name, sub := range named {
					if sub == nil {
						named[name] = map[string]any{}
					}
				}
			}
		}
	})
	return doc
}

// dropPatterns removes patterns that do not compile. It cannot be known whether a property matches
// such a pattern, so requirements for all other properties are removed as well.
func (r *relax) dropPatterns(obj map[string]any, path []string) {
	if source, ok := obj["pattern"].(string); ok && !compiles(source) {
		r.drop(obj, path, "pattern")
	}
	named, ok := obj["patternProperties"].(map[string]any)
	if !ok {
		return
	}
	for source := range named {
		if !compiles(source) {
			r.drop(named, append(path, "patternProperties"), source)
			r.drop(obj, path, "additionalProperties")
		}
	}
}

// dropSwitches removes the keywords of obj that may reject more if a part of them accepts more.
func (r *relax) dropSwitches(obj map[string]any, path, patterns []string) {
	r.drop(obj, path, "unevaluatedProperties")
	r.drop(obj, path, "unevaluatedItems")
	for _, group := range [][]string{{"not"}, {"oneOf"}, {"if", "then", "else"}, {"contains", "minContains", "maxContains"}} {
		sub, there := obj[group[0]]
		if !there {
			continue
		}
		inside := pointer(append(path, group[0])) + "/"
		hit := slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(p, inside) })
		if hit || hasReference(sub) {
			for _, keyword := range group {
				r.drop(obj, path, keyword)
			}
		}
	}
}

func (r *relax) drop(obj map[string]any, path []string, keyword string) {
	if _, there := obj[keyword]; there {
		delete(obj, keyword)
		r.dropped = append(r.dropped, pointer(append(path, keyword)))
	}
}

func compiles(source string) bool {
	_, err := compilePattern(source)
	return err == nil
}

// hasReference reports whether a schema contains a reference.
func hasReference(doc any) bool {
	switch doc := doc.(type) {
	case map[string]any:
		for name, sub := range doc {
			if name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef" || hasReference(sub) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(doc, hasReference)
	}
	return false
}

// walk visits every schema object in doc, parents first, in a fixed order. Data in a schema (enum,
// const, default, examples) is not a schema.
func walk(doc any, path []string, visit func(obj map[string]any, path []string)) {
	obj, ok := doc.(map[string]any)
	if !ok {
		return
	}
	visit(obj, path)
	for _, keyword := range slices.Sorted(maps.Keys(obj)) {
		here := append(slices.Clone(path), keyword)
		switch {
		case slices.Contains(dataKeywords, keyword):
		case slices.Contains(schemaMaps, keyword):
			named, _ := obj[keyword].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				walk(named[name], append(slices.Clone(here), name), visit)
			}
		default:
			// A keyword of the draft, or a place that only a reference reaches.
			if list, ok := obj[keyword].([]any); ok {
				for i, item := range list {
					walk(item, append(slices.Clone(here), strconv.Itoa(i)), visit)
				}
				continue
			}
			walk(obj[keyword], here, visit)
		}
	}
}
