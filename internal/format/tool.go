package format

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/schema"
)

// Tool is a tool in the provider's format.
type Tool struct {
	// Name is the name for the provider; see [Name].
	Name string
	// JSON is the tool as an item of the provider's list of tools; for Gemini, of
	// functionDeclarations.
	JSON json.RawMessage
	// Strict reports that the tool is in strict mode.
	Strict bool
	// Loosened lists the constraints that the provider's format does not express.
	Loosened []Loosening
	// Tokens is the estimated cost; see [Tokens].
	Tokens int
}

// Tool returns the tool in the provider's format, under the given name. strict requests strict mode;
// see [Format.Schema]. For MCP it is the definition with another name.
func (f Format) Tool(name string, t *schema.Tool, strict bool) Tool {
	if f == MCP {
		raw := withName(t.Raw, name)
		return Tool{Name: name, JSON: raw, Tokens: Tokens(raw)}
	}
	shape := f.Schema(t.Input, strict)
	out := Tool{Name: name, Strict: shape.Strict, Loosened: shape.Loosened}
	description := f.description(t.Raw, &out)
	if shape.NotStrict != "" { // added after the description, since the model need not know it
		out.Loosened = append(slices.Clip(out.Loosened), Loosening{"", "strict mode is off for this tool: " + shape.NotStrict})
	}
	b := []byte{'{'}
	switch f {
	case OpenAI:
		b = append(b, `"type":"function","function":{`...)
	case Responses:
		b = append(b, `"type":"function",`...)
	}
	b = append(append(b, `"name":`...), quote(name)...)
	if description != "" {
		b = append(append(b, `,"description":`...), quote(description)...)
	}
	if len(shape.Schema) > 0 {
		key := map[Format]string{OpenAI: "parameters", Responses: "parameters", Anthropic: "input_schema", Gemini: "parameters"}[f]
		b = append(append(append(b, `,"`...), key...), `":`...)
		b = append(b, shape.Schema...)
	}
	switch {
	case shape.Strict:
		b = append(b, `,"strict":true`...)
	case f == Responses: // the default in Responses is true
		b = append(b, `,"strict":false`...)
	}
	if f == OpenAI {
		b = append(b, '}')
	}
	out.JSON = append(b, '}')
	out.Tokens = Tokens(out.JSON)
	return out
}

// description returns the tool's description with a text about the constraints that the schema does
// not express.
func (f Format) description(raw []byte, t *Tool) string {
	var def struct {
		Title, Description string
		Annotations        struct{ Title string }
	}
	_ = json.Unmarshal(raw, &def) // an invalid definition is used as far as it can be read
	description := def.Description
	for _, other := range []string{def.Title, def.Annotations.Title} {
		if description == "" {
			description = other
		}
	}
	most := f.maxDescription()
	also := looseningText(t.Loosened)
	whole := join(description, also)
	if most == 0 || utf8.RuneCountInString(whole) <= most {
		return whole
	}
	// The truncation does not change the schema, and there is no space for it in the text, so it is
	// listed only.
	t.Loosened = append(slices.Clip(t.Loosened), Loosening{"", "the description is truncated to the " + strconv.Itoa(most) + " characters that the provider accepts"})
	space := most - utf8.RuneCountInString(also) - len("…\n\n")
	return join(string([]rune(description)[:max(space, 0)])+"…", also)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// withName returns the definition with another name. All other bytes are unchanged.
func withName(raw []byte, name string) json.RawMessage {
	v, err := read(raw)
	if err != nil || !v.isObject() {
		return raw
	}
	was := v.get("name")
	if was == nil {
		return raw
	}
	out := append(slices.Clone(raw[:was.start]), quote(name)...)
	return append(out, raw[was.end:]...)
}

// Wrap joins tools to the value of the member tools of a request.
func (f Format) Wrap(tools []Tool) json.RawMessage {
	size := 32
	for i := range tools {
		size += len(tools[i].JSON) + 1
	}
	b := append(make([]byte, 0, size), '[')
	if f == Gemini {
		if len(tools) == 0 {
			return append(b, ']')
		}
		b = append(b, `{"functionDeclarations":[`...)
	}
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, tools[i].JSON...)
	}
	if f == Gemini {
		b = append(b, "]}"...)
	}
	return append(b, ']')
}
