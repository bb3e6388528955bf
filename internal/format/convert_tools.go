package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/pkg/schema"
)

// toolParts holds the values that a definition is read from.
type toolParts struct {
	block                                     *value
	name, title, description, schema, results *value
	strict                                    *value
	openAPI                                   bool // the schemas are in Gemini's format
}

// tools converts the tools of the document and records their schemas.
func (c *converter) tools(v *value, schemas map[string]*value) json.RawMessage {
	if !v.isList() && v.get("tools").isList() {
		v = v.get("tools")
	}
	same := list() // the tools as they are, if source and target format are equal
	var all []Tool
	seen := make(map[string]bool)
	each(v, func(item *value) {
		switch {
		case !item.isObject():
			c.note(item, NoteSkipped, "", "It is not a tool: it is not an object.")
			return
		case c.from == c.to:
			c.take(item)
			same.items = append(same.items, asWritten(item.source()))
			return
		}
		for _, p := range c.toolsOf(item) {
			if seen[p.name.text()] {
				c.changed(p.block, "Another tool has the name %s too, and the provider accepts each name once.", quote(p.name.text()))
			}
			seen[p.name.text()] = true
			all = append(all, c.tool(p, schemas))
		}
	})
	if !v.isList() && !v.isObject() {
		c.note(v, NoteSkipped, "", "It is not a list of tools.")
	}
	if c.from == c.to {
		return same.encode(nil)
	}
	return c.to.Wrap(all)
}

// toolsOf returns the definitions in an item of a list of tools. Other items get a note.
func (c *converter) toolsOf(v *value) []toolParts {
	if c.from != Gemini {
		if p, ok := c.parts(v); ok {
			return []toolParts{p}
		}
		return nil
	}
	declarations := v
	for _, name := range []string{"functionDeclarations", "function_declarations"} {
		if list := v.get(name); list != nil {
			declarations = list
		}
	}
	if declarations == v && v.get("name") == nil {
		c.note(v, NoteSkipped, "", "It is not a tool with function declarations; only functions can be converted.")
		return nil
	}
	var all []toolParts
	each(declarations, func(d *value) {
		if p, ok := c.parts(d); ok {
			all = append(all, p)
		}
	})
	return all
}

// parts reads one definition.
func (c *converter) parts(v *value) (p toolParts, ok bool) {
	p = toolParts{block: v}
	kind := v.get("type").text()
	switch c.from {
	case OpenAI, Responses:
		of := v
		if f := v.get("function"); f.isObject() {
			of = f
		} else if kind != "" && kind != "function" {
			return p, c.noFunction(v, kind)
		}
		p.name, p.description, p.schema, p.strict = of.get("name"), of.get("description"), of.get("parameters"), cmp.Or(of.get("strict"), v.get("strict"))
	case Anthropic:
		if kind != "" && kind != "custom" {
			return p, c.noFunction(v, kind)
		}
		p.name, p.description, p.schema, p.strict = v.get("name"), v.get("description"), v.get("input_schema"), v.get("strict")
	case Gemini:
		p.name, p.description = v.get("name"), v.get("description")
		if p.schema = first(v, "parametersJsonSchema", "parameters_json_schema"); p.schema == nil {
			p.schema, p.openAPI = v.get("parameters"), true
		}
		p.results = first(v, "responseJsonSchema", "response_json_schema", "response")
	case MCP:
		p.name, p.title, p.description, p.schema = v.get("name"), v.get("title"), v.get("description"), v.get("inputSchema")
	}
	if p.name.text() == "" {
		c.note(v, NoteSkipped, "", "The tool has no name.")
		return p, false
	}
	return p, true
}

func (c *converter) noFunction(v *value, kind string) bool {
	c.note(v, NoteSkipped, "", "The tool is of type %s; only functions can be converted.", quote(kind))
	return false
}

func first(v *value, names ...string) *value {
	for _, name := range names {
		if m := v.get(name); m != nil {
			return m
		}
	}
	return nil
}

// tool converts one definition.
func (c *converter) tool(p toolParts, schemas map[string]*value) Tool {
	c.take(p.name)
	definition := object().set("name", p.name)
	if p.description.isString() {
		c.take(p.description)
		definition.set("description", p.description)
	} else if p.title.isString() && c.to != MCP { // the title replaces a missing description
		c.take(p.title)
		definition.set("description", p.title)
	}
	input := c.schema(p)
	schemas[p.name.text()] = input
	strict := c.strict(p)
	name := c.named(p.name)
	if c.to == MCP {
		definition.set("name", str(name)).set("inputSchema", c.mcpSchema(p, input))
		if out := c.results(p); out != nil {
			definition.set("outputSchema", out)
		}
		return Tool{Name: name, JSON: definition.encodeWritten()}
	}
	var raw []byte
	if input != nil {
		raw = input.source()
	}
	tool := c.to.Tool(name, &schema.Tool{Name: p.name.text(), Raw: definition.encode(nil), Input: raw}, strict)
	if text := definition.get("description"); text != nil && len(tool.Loosened) > 0 && !bytes.Contains(tool.JSON, text.encode(nil)) {
		c.note(text, NoteChanged, "", "The description also tells what the schema does not express, or is truncated.")
	}
	for _, l := range tool.Loosened {
		if l.Pointer == "" {
			c.changed(p.block, "%s", "Not expressed as it was: "+l.Message+".")
		} else {
			c.note(p.schema, NoteDropped, l.Pointer, "%s", "The schema does not express it; the description does: "+l.Message+".")
		}
	}
	if input != nil {
		c.renames(p.schema, input)
		shape := c.to.Schema(raw, strict)
		if input == p.schema && !sameJSON(shape.Schema, raw) {
			c.note(p.schema, NoteChanged, "", "The schema is written in the form that %s accepts.", c.to)
		}
	}
	return tool
}

func sameJSON(a, b []byte) bool {
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && equalValues(x, y)
}

// strict reports whether the definition asks for strict mode and the target supports it. It adds a
// note if strict mode is lost.
func (c *converter) strict(p toolParts) bool {
	if p.strict == nil || p.strict.kind != 't' && p.strict.kind != 'f' {
		return false
	}
	c.take(p.strict)
	if !p.strict.isTrue() {
		return false
	}
	if c.to == OpenAI || c.to == Responses {
		return true
	}
	c.note(p.strict, NoteDropped, "", "The tool is not in strict mode here.")
	return false
}

// schema returns the input schema as JSON Schema, or nil if there is none.
func (c *converter) schema(p toolParts) *value {
	switch {
	case p.schema == nil || p.schema.isNull():
		return nil
	case !p.schema.isObject():
		c.note(p.schema, NoteDropped, "", "It is not a JSON Schema object; the tool accepts any arguments here.")
		return nil
	}
	c.take(p.schema)
	if tooLarge(p.schema) {
		c.note(p.schema, NoteDropped, "", "The schema is too large to be converted; the tool accepts any arguments here.")
		return nil
	}
	return c.jsonSchema(p.schema, p.openAPI)
}

// tooLarge reports whether a schema exceeds the limits for conversion.
func tooLarge(s *value) bool {
	return s.end-s.start > maxSchemaBytes || s.size(maxSchemaValues) > maxSchemaValues
}

// jsonSchema converts a schema that may be in Gemini's format to JSON Schema.
func (c *converter) jsonSchema(v *value, openAPI bool) *value {
	if !openAPI {
		return v
	}
	converted := c.plainSchema(v, v, "", 0)
	if equalValues(converted, v) {
		return v
	}
	c.note(v, NoteChanged, "", "The schema is written as JSON Schema.")
	again, err := read(converted.encode(nil))
	if err != nil { // impossible, since the input was valid
		return v
	}
	return again
}

// mcpSchema returns the input schema of a definition in MCP, which must be an object schema.
func (c *converter) mcpSchema(p toolParts, input *value) *value {
	if input == nil {
		return typed("object")
	}
	if input.get("type").text() == "object" {
		return input
	}
	out := input.clone()
	out.whole = nil // it no longer matches the original text
	out.drop("type")
	out.members = append([]member{{name: "type", value: str("object")}}, out.members...)
	c.note(p.schema, NoteChanged, "", "The type is object here, because MCP accepts no other.")
	return out
}

// results returns the output schema of a definition in MCP, or nil if there is none that MCP
// accepts.
func (c *converter) results(p toolParts) *value {
	if !p.results.isObject() {
		return nil
	}
	if tooLarge(p.results) {
		c.note(p.results, NoteDropped, "", "The schema is too large to be converted.")
		return nil
	}
	out := c.jsonSchema(p.results, p.openAPI)
	if out.get("type").text() != "object" {
		c.note(p.results, NoteDropped, "", "MCP accepts output schemas of type object only.")
		return nil
	}
	c.take(p.results)
	return out
}

// renames adds a note for each property with another name in the target. at is the schema in the
// input: either root or the schema that root was converted from.
func (c *converter) renames(at, root *value) {
	names := c.to.propertyNames(root)
	if len(names) == 0 {
		return
	}
	var walk func(s *value, below string, depth int)
	walk = func(s *value, below string, depth int) {
		if depth > maxDepth || !s.isObject() {
			return
		}
		for _, m := range membersOf(s.get("properties")) {
			if shown, ok := names[m.name]; ok {
				c.note(at, NoteChanged, below+"/properties/"+jsonpointer.Token(m.name), "The property is named %s here.", quote(shown))
			}
		}
		eachSchema(s, below, func(sub *value, below string) { walk(sub, below, depth+1) })
	}
	walk(root, "", 0)
}

// encodeWritten is encode, but writes values that were read in their original spelling.
func (v *value) encodeWritten() []byte {
	if v.whole != nil {
		return v.source()
	}
	b := []byte{'{'}
	for i, m := range v.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, quote(m.name)...), ':')
		if m.value.isObject() && m.value.whole == nil {
			b = m.value.encode(b)
		} else {
			b = append(b, m.value.source()...)
		}
	}
	return append(b, '}')
}

// geminiWords maps keywords of Gemini schemas to those of JSON Schema.
var geminiWords = map[string]string{
	"any_of": "anyOf", "min_items": "minItems", "max_items": "maxItems", "min_length": "minLength", "max_length": "maxLength",
	"min_properties": "minProperties", "max_properties": "maxProperties", "property_ordering": "propertyOrdering",
}

// plainSchema converts a schema of Gemini, a subset of OpenAPI 3.0, to JSON Schema. Unknown keywords
// are unchanged.
func (c *converter) plainSchema(s, root *value, at string, depth int) *value {
	if !s.isObject() || depth > maxDepth {
		return s
	}
	out := object()
	nullable := s.get("nullable").isTrue()
	for _, m := range s.members {
		name := m.name
		if w, ok := geminiWords[name]; ok {
			name = w
		}
		here := at + "/" + jsonpointer.Token(m.name)
		sub := func(v *value, here string) *value { return c.plainSchema(v, root, here, depth+1) }
		switch name {
		case "nullable":
		case "type":
			out.set(name, plainType(m.value, nullable))
		case "enum":
			values := list(m.value.items...)
			if nullable {
				values.items = append(values.items, null())
			}
			out.set(name, values)
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			out.set(name, plainNumber(m.value))
		case "example":
			out.set("examples", list(m.value))
		case "propertyOrdering":
			c.note(root, NoteDropped, here, "JSON Schema has no order of properties.")
		default:
			out.set(name, convertSubschemas(name, m.value, here, sub))
		}
	}
	if any := out.get("anyOf"); nullable && any.isList() && out.get("type") == nil {
		any.items = append(any.items, typed("null"))
	}
	return out
}

// convertSubschemas converts the schemas inside the value of a keyword.
func convertSubschemas(name string, v *value, at string, sub func(*value, string) *value) *value {
	alone := object().set(name, v)
	out := v.clone()
	i := 0
	eachSchema(alone, "", func(s *value, below string) {
		_, below, _ = strings.Cut(strings.TrimPrefix(below, "/"), "/")
		if below != "" {
			below = "/" + below
		}
		converted := sub(s, at+below)
		switch {
		case s == v:
			out = converted
		case out.isList():
			out.items[i] = converted
		default:
			out.members[i].value = converted
		}
		i++
	})
	return out
}

func plainType(v *value, nullable bool) *value {
	if !v.isString() {
		return v
	}
	name := str(strings.ToLower(v.text()))
	if nullable && name.text() != "null" {
		return list(name, str("null"))
	}
	return name
}

// plainNumber removes the quotes in which protocol buffers write large numbers.
func plainNumber(v *value) *value {
	text := v.text()
	if text == "" || len(text) > 18 || strings.Trim(text, "0123456789") != "" || len(text) > 1 && text[0] == '0' {
		return v
	}
	return number(text)
}
