package bfcl

import (
	"regexp"
	"strings"
)

var (
	javaAsList   = regexp.MustCompile(`new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)`)
	javaAdds     = regexp.MustCompile(`(?s)new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}`)
	javaAdd      = regexp.MustCompile(`add\((.+?)\)`)
	javaNoList   = regexp.MustCompile(`new\s+ArrayList<\w*>\(\)`)
	javaArray    = regexp.MustCompile(`new\s+\w+\[\]\s*\{(.*?)\}`)
	javaPuts     = regexp.MustCompile(`(?s)new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}`)
	javaPut      = regexp.MustCompile(`put\("(.*?)",\s*(.*?)\)`)
	javaNoValues = regexp.MustCompile(`new\s+HashMap<.*?>\s*\(\)`)
)

// javaValue parses an argument in Java syntax. A text that does not have the declared type stays a
// string. ok is false for types that the official checker does not implement.
func javaValue(text, declared, nested string) (v any, ok bool) {
	switch declared {
	case "byte", "short", "integer":
		if wholeNumber.MatchString(text) {
			return pythonInt(text), true
		}
	case "float":
		if floatNumber.MatchString(text) {
			return fraction(strings.TrimRight(strings.TrimSuffix(text, "\n"), "fF")), true
		}
	case "double":
		if doubleNumber.MatchString(text) {
			return fraction(text), true
		}
	case "long":
		if longNumber.MatchString(text) {
			return pythonInt(strings.TrimRight(strings.TrimSuffix(text, "\n"), "lL")), true
		}
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true", true
		}
	case "char", "String", "any":
	case "Array":
		return javaItems(text, nested)
	case "ArrayList":
		return javaList(text, nested)
	case "HashMap":
		return javaMap(text), true
	default:
		return nil, false
	}
	return text, true
}

func javaList(text, nested string) (any, bool) {
	var parts []string
	if m := javaAsList.FindStringSubmatch(text); m != nil {
		parts = strings.Split(m[1], ",")
	} else if m := javaAdds.FindStringSubmatch(text); m != nil {
		for _, add := range javaAdd.FindAllStringSubmatch(m[1], -1) {
			parts = append(parts, add[1])
		}
	} else if javaNoList.MatchString(text) {
		return []any{}, true
	} else {
		return text, true
	}
	items := []any{}
	for _, part := range parts {
		item, ok := javaItem(strings.TrimSpace(part), nested)
		if nested == "char" || nested == "String" {
			item, ok = withoutEnds(strings.TrimSpace(part)), true
		}
		if !ok {
			return nil, false
		}
		items = append(items, item)
	}
	return items, true
}

func javaItems(text, nested string) (any, bool) {
	m := javaArray.FindStringSubmatch(text)
	if m == nil {
		return text, true
	}
	items := []any{}
	for part := range strings.SplitSeq(m[1], ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		item, ok := javaItem(part, nested)
		if !ok {
			return nil, false
		}
		items = append(items, item)
	}
	return items, true
}

func javaItem(text, nested string) (any, bool) {
	if nested == "" {
		return javaGuessed(text), true
	}
	return javaValue(text, nested, "")
}

func javaMap(text string) any {
	m := javaPuts.FindStringSubmatch(text)
	if m == nil {
		if javaNoValues.MatchString(text) {
			return &dict{}
		}
		return text
	}
	out := &dict{}
	for _, put := range javaPut.FindAllStringSubmatch(m[1], -1) {
		out.set(put[1], javaGuessed(strings.TrimSpace(put[2])))
	}
	return out
}

// javaGuessed parses a value without a declared type.
func javaGuessed(text string) any {
	switch {
	case text == "true":
		return true
	case text == "false":
		return false
	case quoted(text, `"`):
		return withoutEnds(text)
	case longNumber.MatchString(text):
		return pythonInt(text[:len(text)-1])
	case floatNumber.MatchString(text):
		return fraction(strings.TrimRight(strings.TrimSuffix(text, "\n"), "fF"))
	}
	return untypedValue(text)
}
