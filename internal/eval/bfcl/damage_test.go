package bfcl

import (
	"math/big"
	"strings"
)

// damage changes a right answer.
type damage struct {
	name string
	do   func([]call) []call
}

// damages returns all kinds, the first of which changes nothing.
func (m maker) damages(functions []any) []damage {
	all := []damage{
		{"none", func(c []call) []call { return c }},
		{"other order of calls", func(c []call) []call {
			m.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
			return c
		}},
		{"other function", func(c []call) []call {
			c[m.IntN(len(c))].name = functions[m.IntN(len(functions))].(*dict).text("name")
			return c
		}},
		{"unknown function", func(c []call) []call { c[m.IntN(len(c))].name += "_x"; return c }},
		{"call missing", func(c []call) []call { return c[1:] }},
		{"call repeated", func(c []call) []call { return append(c, c[m.IntN(len(c))]) }},
		{"unknown argument", func(c []call) []call { c[m.IntN(len(c))].parameters.set("unknown_argument", "x"); return c }},
		{"argument missing", m.each(func(d *dict, key string) {
			delete(d.values, key)
			for i := range d.keys {
				if d.keys[i] == key {
					d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
					return
				}
			}
		})},
	}
	for _, d := range []struct {
		name   string
		change func(any) any
	}{
		{"other spelling", m.respelled},
		{"other text", func(v any) any { return m.inText(v, func(s string) string { return s + "x" }) }},
		{"shorter text", func(v any) any { return m.inText(v, func(s string) string { return s[:len(s)/2] }) }},
		{"number as text", func(v any) any { return m.inNumber(v, func(s string) any { return s }) }},
		{"number as float", func(v any) any { return m.inNumber(v, func(s string) any { return fraction(s) }) }},
		{"number as int", func(v any) any {
			return m.inNumber(v, func(s string) any {
				n, _, _ := new(big.Float).Parse(s, 10)
				i, _ := n.Int(nil)
				return i
			})
		}},
		{"other number", func(v any) any { return m.inNumber(v, func(s string) any { return untypedValue(s + "1") }) }},
		{"null", func(any) any { return nil }},
		{"bool", func(any) any { return m.IntN(2) == 0 }},
		{"zero or one", func(any) any { return big.NewInt(int64(m.IntN(2))) }},
		{"empty text", func(any) any { return "" }},
		{"in a list", func(v any) any { return []any{v} }},
		{"empty list", func(any) any { return []any{} }},
		{"empty object", func(any) any { return &dict{} }},
		{"list reversed", m.reversed}, {"list shorter", m.shorter}, {"object changed", m.changed},
	} {
		all = append(all, damage{d.name, m.each(func(arguments *dict, key string) { arguments.values[key] = d.change(arguments.values[key]) })})
	}
	return all
}

// each applies a change to one argument of one call.
func (m maker) each(change func(d *dict, key string)) func([]call) []call {
	return func(c []call) []call {
		d := c[m.IntN(len(c))].parameters
		if len(d.keys) > 0 {
			change(d, d.keys[m.IntN(len(d.keys))])
		}
		return c
	}
}

// respelled changes what does not count in texts: case, separators, quotes.
func (m maker) respelled(v any) any {
	return m.inText(v, func(s string) string {
		s = strings.NewReplacer(" ", []string{"", "_", "-", "  "}[m.IntN(4)], "'", `"`, ",", "").Replace(s)
		if m.IntN(2) == 0 {
			s = strings.ToUpper(s)
		}
		return s + []string{"", ".", "*^"}[m.IntN(3)]
	})
}

// inText changes a text, also inside lists and objects.
func (m maker) inText(v any, change func(string) string) any {
	return m.inside(v, func(v any) any {
		if s, ok := v.(string); ok {
			return change(s)
		}
		return v
	})
}

func (m maker) inNumber(v any, change func(string) any) any {
	return m.inside(v, func(v any) any {
		switch v.(type) {
		case *big.Int, float64:
			if out := change(string(encode(v))); out != nil {
				return out
			}
		}
		return v
	})
}

// inside changes a value, or one that a list or an object holds.
func (m maker) inside(v any, change func(any) any) any {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			i := m.IntN(len(v))
			v[i] = m.inside(v[i], change)
		}
		return v
	case *dict:
		if len(v.keys) > 0 {
			key := v.keys[m.IntN(len(v.keys))]
			v.values[key] = m.inside(v.values[key], change)
		}
		return v
	}
	return change(v)
}

func (m maker) reversed(v any) any {
	if list, ok := v.([]any); ok {
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
	}
	return v
}

func (m maker) shorter(v any) any {
	if list, ok := v.([]any); ok && len(list) > 0 {
		return list[1:]
	}
	return v
}

// changed adds a member to an object or removes one, also in a list.
func (m maker) changed(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			v[0] = m.changed(v[0])
		}
	case *dict:
		if m.IntN(2) == 0 || len(v.keys) == 0 {
			v.set("other", "x")
			return v
		}
		delete(v.values, v.keys[0])
		v.keys = v.keys[1:]
	}
	return v
}

// spell writes arguments in the syntax of Java or JavaScript, most of the time.
func (m maker) spell(l language, functions []any, arguments *dict) {
	properties := functions[0].(*dict).object("parameters").object("properties")
	for _, key := range arguments.keys {
		if m.IntN(30) == 0 {
			continue
		}
		declared := properties.object(key).text("type")
		if l == java {
			arguments.values[key] = m.javaText(declared, arguments.values[key])
		} else {
			arguments.values[key] = m.javascriptText(declared, arguments.values[key])
		}
	}
}

func (m maker) javaText(declared string, v any) any {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i], _ = m.quotedIn(item, `"`).(string)
		}
		switch {
		case declared == "Array":
			return "new " + []string{"String", "int"}[m.IntN(2)] + "[]" + []string{"", " "}[m.IntN(2)] + "{" + strings.Join(parts, ", ") + "}"
		case len(parts) == 0:
			return "new ArrayList<>()"
		case m.IntN(2) == 0:
			return "new ArrayList<String>() {{ add(" + strings.Join(parts, "); add(") + "); }}"
		}
		return "new ArrayList<>(Arrays.asList(" + strings.Join(parts, ", ") + "))"
	case *dict:
		text := "new HashMap<String, Object>() {{"
		for _, key := range v.keys {
			value, _ := m.quotedIn(v.values[key], `"`).(string)
			text += ` put("` + key + `", ` + value + ");"
		}
		return text + " }}"
	}
	text := string(encode(v))
	switch declared {
	case "long":
		text += "L"
	case "float":
		text += "f"
	}
	return text
}

func (m maker) javascriptText(declared string, v any) any {
	switch v := v.(type) {
	case string:
		if declared == "String" && m.IntN(2) == 0 {
			return `"` + v + `"`
		}
		return v
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i], _ = m.quotedIn(item, []string{`"`, "'"}[m.IntN(2)]).(string)
		}
		if m.IntN(3) == 0 {
			return "new Array(" + strings.Join(parts, ", ") + ")"
		}
		return "[" + strings.Join(parts, []string{",", ", "}[m.IntN(2)]) + "]"
	case *dict:
		parts := make([]string, len(v.keys))
		for i, key := range v.keys {
			value, _ := m.quotedIn(v.values[key], []string{`"`, "'"}[m.IntN(2)]).(string)
			parts[i] = []string{key, `"` + key + `"`}[m.IntN(2)] + []string{":", ": "}[m.IntN(2)] + value
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return string(encode(v))
}

func (m maker) quotedIn(v any, quote string) any {
	if s, ok := v.(string); ok {
		return quote + s + quote
	}
	return string(encode(v))
}
