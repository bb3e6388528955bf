package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Limits of OpenAI's strict mode.
const (
	strictLevels     = 10
	strictProperties = 5_000
	strictText       = 120_000 // length of all names and enum values
	strictEnums      = 1_000   // number of values in all enums
	strictLongEnum   = 250     // number of values above which the next limit applies
	strictEnumText   = 15_000
)

// strictFormats lists the formats that strict mode supports.
var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strictConverter converts a schema to strict mode: every object is closed, every property is required,
// and optional properties become nullable.
type strictConverter struct {
	inliner
	properties, text, enums int
	why                     string
}

// strictSchema returns the schema in strict mode, or the reason why that is not possible.
func strictSchema(root *value, n *notes) (fitting *value, why string) {
	c := &strictConverter{inliner: inliner{root: root, notes: n, space: inlineBudget}}
	out := c.convert(root, "", 1)
	switch {
	case c.why != "":
	case c.properties > strictProperties:
		c.why = fmt.Sprintf("it has more than %d properties", strictProperties)
	case c.text > strictText:
		c.why = "its names and values are too long"
	case c.enums > strictEnums:
		c.why = fmt.Sprintf("its enums have more than %d values", strictEnums)
	}
	if c.why != "" {
		return nil, c.why
	}
	return out, ""
}

func (c *strictConverter) fail(at, format string, args ...any) *value {
	if c.why == "" {
		c.why = strings.TrimPrefix(at+" ", " ") + fmt.Sprintf(format, args...)
	}
	return nil
}

// convert returns the schema in strict mode, or nil on failure. level is the nesting of objects.
func (c *strictConverter) convert(s *value, at string, level int) *value {
	if c.why != "" {
		return nil
	}
	s, done := c.open(s, at)
	defer done()
	if c.deep {
		return c.fail(at, "refers to itself")
	}
	if !s.isObject() || at != "" && anything(s) {
		return c.fail(at, "accepts any value")
	}
	if s.get("allOf").isList() {
		s = c.joined(s, at)
	}
	out := object()
	t := typesOf(s)
	if len(t) == 1 {
		out.set("type", str(t[0]))
	} else if len(t) > 1 {
		out.set("type", listOf(t))
	}
	for _, m := range s.members {
		here := at + "/" + jsonpointer.Token(m.name)
		switch m.name {
		case "type", "properties", "required", "items", "prefixItems", "additionalProperties", "default", "examples":
		case "title", "description", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems":
			out.set(m.name, m.value)
		case "const":
			c.text += len(m.value.encode(nil))
			out.set(m.name, m.value)
		case "enum":
			c.enum(out, m.value, here)
		case "pattern":
			if strings.Contains(m.value.text(), "(?") || strings.Contains(m.value.text(), `\b`) {
				c.notes.keyword(here, m.name, m.value)
			} else {
				out.set(m.name, m.value)
			}
		case "format":
			if slices.Contains(strictFormats, m.value.text()) {
				out.set(m.name, m.value)
			} else {
				c.notes.keyword(here, m.name, m.value)
			}
		case "anyOf", "oneOf":
			c.choice(out, m, here, level)
		default:
			if !annotation(m.name) {
				c.notes.keyword(here, m.name, m.value)
			}
		}
	}
	describeValues(out, s)
	if slices.Contains(t, "object") && out.get("anyOf") != nil {
		return c.fail(at, "is an object with a choice, and both would be closed to the properties of the other")
	}
	if slices.Contains(t, "object") {
		c.object(out, s, at, level)
	}
	if slices.Contains(t, "array") {
		c.array(out, s, at, level)
	}
	if c.why != "" {
		return nil
	}
	if len(t) == 0 && out.get("anyOf") == nil && out.get("const") == nil {
		return c.fail(at, "accepts values of any type")
	}
	return out
}

func (c *strictConverter) enum(out, values *value, at string) {
	size := 0
	for _, v := range values.items {
		size += len(v.raw)
	}
	if len(values.items) == 0 || len(values.items) > strictEnums || len(values.items) > strictLongEnum && size > strictEnumText {
		c.notes.keyword(at, "enum", values)
		return
	}
	c.enums += len(values.items)
	c.text += size
	out.set("enum", values)
}

func (c *strictConverter) choice(out *value, m member, at string, level int) {
	if out.get("anyOf") != nil || !m.value.isList() {
		c.notes.keyword(at, m.name, m.value)
		return
	}
	if at == "/"+m.name {
		c.fail("", "begins with a choice")
		return
	}
	if m.name == "oneOf" && len(m.value.items) > 1 {
		c.notes.add(at, "exactly one of its branches")
	}
	branches := list()
	for i, branch := range m.value.items {
		if b := c.convert(branch, at+"/"+strconv.Itoa(i), level); b != nil {
			branches.items = append(branches.items, b)
		}
	}
	out.set("anyOf", branches)
}

func (c *strictConverter) object(out, s *value, at string, level int) {
	if level > strictLevels {
		c.fail(at, "nests deeper than %d objects", strictLevels)
		return
	}
	properties, more := s.get("properties"), s.get("additionalProperties")
	closed := more != nil && more.kind == 'f'
	switch {
	case more != nil && !closed:
		c.fail(at, "accepts properties of any name")
		return
	case s.get("patternProperties") != nil && !closed:
		c.fail(at, "accepts properties by a pattern")
		return
	case (!properties.isObject() || len(properties.members) == 0) && !closed && at != "":
		c.fail(at, "accepts any object")
		return
	}
	required := s.get("required").texts()
	all, names := object(), list()
	if properties.isObject() {
		for _, m := range properties.members {
			here := at + "/properties/" + jsonpointer.Token(m.name)
			if m.value.kind == 'f' {
				c.notes.add(here, "no value at all")
				continue
			}
			p := c.convert(m.value, here, level+1)
			if p == nil {
				return
			}
			if !slices.Contains(required, m.name) {
				p = nullable(p)
			}
			c.properties++
			c.text += len(m.name)
			all.set(m.name, p)
			names.items = append(names.items, str(m.name))
		}
	}
	out.set("properties", all)
	out.set("required", names)
	out.set("additionalProperties", falseSchema())
}

func (c *strictConverter) array(out, s *value, at string, level int) {
	items := s.get("items")
	if first := s.get("prefixItems"); first.isList() {
		c.notes.keyword(at+"/prefixItems", "prefixItems", first)
		ends(out, first, items)
		items = itemOf(first, items)
	}
	if items == nil {
		c.fail(at, "accepts items of any type")
		return
	}
	if converted := c.convert(items, at+"/items", level); converted != nil {
		out.set("items", converted)
	}
}

// ends sets maxItems for a tuple that allows no further items.
func ends(out, first, more *value) {
	if more != nil && more.kind == 'f' && out.get("maxItems") == nil {
		out.set("maxItems", number(strconv.Itoa(len(first.items))))
	}
}

// itemOf returns a schema that matches every item of a tuple.
func itemOf(first, more *value) *value {
	branches := list()
	for _, item := range first.items {
		if !slices.ContainsFunc(branches.items, func(have *value) bool { return equalValues(have, item) }) {
			branches.items = append(branches.items, item)
		}
	}
	if more.isObject() && !anything(more) {
		branches.items = append(branches.items, more)
	}
	if len(branches.items) == 1 {
		return branches.items[0]
	}
	return object().set("anyOf", branches)
}

// nullable makes an optional property accept null. Strict mode has no other way to express it.
func nullable(s *value) *value {
	t := types(s)
	if slices.Contains(t, "null") {
		return s
	}
	switch {
	case s.get("const") != nil:
	case len(t) > 0:
		s.set("type", listOf(append(slices.Clone(t), "null")))
		if e := s.get("enum"); e.isList() && !slices.ContainsFunc(e.items, (*value).isNull) {
			s.set("enum", list(append(slices.Clone(e.items), null())...))
		}
		return s
	case s.get("anyOf").isList():
		return s.set("anyOf", list(append(slices.Clone(s.get("anyOf").items), typed("null"))...))
	}
	return object().set("anyOf", list(s, typed("null")))
}

// typesOf returns the types of a schema. If it does not state them, they are inferred from its other
// keywords; nil means unknown.
func typesOf(s *value) []string {
	if t := types(s); len(t) > 0 {
		return t
	}
	values := s.get("enum")
	if c := s.get("const"); c != nil {
		values = list(c)
	}
	if values.isList() {
		var t []string
		for _, v := range values.items {
			if name := typeOf(v); !slices.Contains(t, name) {
				t = append(t, name)
			}
		}
		return t
	}
	for _, m := range s.members {
		switch m.name {
		case "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties":
			return []string{"object"}
		case "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains":
			return []string{"array"}
		case "pattern", "minLength", "maxLength", "format":
			return []string{"string"}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			return []string{"number"}
		}
	}
	return nil
}

// typeOf returns the JSON Schema type of a value.
func typeOf(v *value) string {
	if v.kind == '0' {
		return rawjson.TypeOf(v.raw)
	}
	return rawjson.TypeOf([]byte{v.kind})
}
