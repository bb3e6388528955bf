package bfcl

import (
	"regexp"
	"strings"
)

var (
	jsArrays    = regexp.MustCompile(`^(?:\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\))`)
	jsInner     = regexp.MustCompile(`\[(.*?)\]`)
	jsArray     = regexp.MustCompile(`^(?:\[(.*?)\]|\bnew\s+Array\((.*?)\))`)
	jsObject    = regexp.MustCompile(`^\{(.*?)\}`)
	jsSeparator = regexp.MustCompile(`^[^,]+:`)
)

// javascriptValue parses an argument in JavaScript syntax. A text that does not have the declared
// type stays a string. ok is false for types that the official checker does not know.
func javascriptValue(text, declared, nested string) (v any, ok bool) {
	switch declared {
	case "String":
		if quoted(text, `"`) || quoted(text, "'") {
			return withoutEnds(text), true
		}
	case "integer":
		if wholeNumber.MatchString(text) {
			return pythonInt(text), true
		}
	case "float":
		if decimalNumber.MatchString(text) {
			return fraction(text), true
		}
	case "Bigint":
		if bigNumber.MatchString(text) {
			return pythonInt(strings.TrimRight(strings.TrimSuffix(text, "\n"), "n")), true
		}
	case "Boolean":
		if text == "true" || text == "false" {
			return text == "true", true
		}
	case "dict":
		return javascriptObject(strings.TrimSpace(text)), true
	case "array":
		return javascriptArray(strings.TrimSpace(text), nested), true
	case "any":
	default:
		return nil, false
	}
	return text, true
}

func javascriptArray(code, nested string) any {
	if all := jsArrays.FindString(code); all != "" {
		items := []any{}
		for i, m := range jsInner.FindAllStringSubmatch(all, -1) {
			part := strings.TrimSpace(m[1])
			if i == 0 {
				part = strings.TrimPrefix(part, "[")
			}
			inner := []any{}
			for e := range strings.SplitSeq(part, ",") {
				inner = append(inner, javascriptGuessed(e))
			}
			items = append(items, inner)
		}
		return items
	}
	m := jsArray.FindStringSubmatchIndex(code)
	if m == nil {
		return code
	}
	content := ""
	for _, group := range [][]int{m[2:4], m[4:6]} {
		if group[0] >= 0 {
			content = strings.TrimSpace(code[group[0]:group[1]])
			break
		}
	}
	items := []any{}
	if content == "" {
		return items
	}
	for e := range strings.SplitSeq(content, ",") {
		e = strings.TrimSpace(e)
		if nested == "" {
			items = append(items, javascriptGuessed(e))
			continue
		}
		inner := ""
		if strings.HasPrefix(e, "'") || strings.HasPrefix(e, `"`) {
			inner = "String"
		}
		item, ok := javascriptValue(e, nested, inner)
		if !ok {
			return code
		}
		items = append(items, item)
	}
	return items
}

func javascriptObject(code string) any {
	if code == "{}" {
		return &dict{}
	}
	m := jsObject.FindStringSubmatch(code)
	if m == nil {
		return code
	}
	out := &dict{}
	for _, pair := range javascriptPairs(m[1]) {
		key := strings.Trim(strings.TrimSpace(pair[0]), `'"`)
		value := strings.TrimSpace(pair[1])
		switch {
		case strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]"):
			out.set(key, javascriptArray(value, ""))
		case strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}"):
			out.set(key, javascriptObject(value))
		default:
			out.set(key, javascriptGuessed(strings.Trim(value, `'"`)))
		}
	}
	return out
}

// javascriptPairs splits the members of an object like the official checker, which uses the
// expression ([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$). Go does not support its lookahead.
func javascriptPairs(content string) (pairs [][2]string) {
	for at := 0; at < len(content); {
		colon := strings.IndexByte(content[at:], ':')
		if colon < 0 {
			return pairs
		}
		if colon == 0 {
			at++
			continue
		}
		key, from := content[at:at+colon], at+colon+1
		from += len(content[from:]) - len(strings.TrimLeft(content[from:], " \t\r\n\f\v"))
		value, next := content[from:], len(content)
		for comma := from; comma < len(content); comma++ {
			if content[comma] != ',' {
				continue
			}
			if start, ok := nextMember(content, comma+1); ok {
				value, next = content[from:comma], start
				break
			}
		}
		pairs = append(pairs, [2]string{key, value})
		at = next
	}
	return pairs
}

// nextMember returns the start of the next member after a comma, with as much white space before
// it as possible.
func nextMember(content string, from int) (int, bool) {
	space := len(content[from:]) - len(strings.TrimLeft(content[from:], " \t\r\n\f\v"))
	// At most one character of white space matters: the one before a colon that begins the member.
	for start := from + space; start >= max(from, from+space-1); start-- {
		if jsSeparator.MatchString(content[start:]) {
			return start, true
		}
	}
	return 0, false
}

// javascriptGuessed parses a value without a declared type.
func javascriptGuessed(text string) any {
	text = strings.TrimSpace(text)
	switch {
	case text == "true":
		return true
	case text == "false":
		return false
	case quoted(text, `"`), quoted(text, "'"):
		return withoutEnds(text)
	}
	return untypedValue(text)
}
