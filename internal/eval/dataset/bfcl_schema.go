package dataset

import (
	"bytes"
	"encoding/json"
	"strings"
)

// languages maps the sets whose arguments are texts in the syntax of a language to that language.
var languages = map[string]string{"simple_java": "Java", "simple_javascript": "JavaScript"}

// jsonSchema converts the types of BFCL to JSON Schema, for models and validators. With a language,
// all arguments are strings, as the checker requires. The definitions that the checker reads stay
// unchanged.
func jsonSchema(raw json.RawMessage, language string) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return raw
	}
	if language != "" {
		asSourceText(v, language)
	}
	out, err := json.Marshal(withTypes(v, false))
	if err != nil {
		return raw
	}
	return out
}

var bfclTypes = map[string]string{
	"dict": "object", "float": "number", "double": "number", "tuple": "array", "list": "array", "any": "string", "char": "string", "String": "string",
	"byte": "integer", "short": "integer", "long": "integer", "Bigint": "integer", "bool": "boolean", "Boolean": "boolean",
	"Array": "array", "ArrayList": "array", "Queue": "array", "Stack": "array", "Set": "array", "HashMap": "object", "Hashtable": "object",
}

// withTypes replaces types. properties means that the members of v are names of arguments.
func withTypes(v any, properties bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if name, ok := member.(string); ok && key == "type" && !properties {
				if other := bfclTypes[name]; other != "" {
					v[key] = other
				}
				continue
			}
			v[key] = withTypes(member, key == "properties" && !properties)
		}
	case []any:
		for i := range v {
			v[i] = withTypes(v[i], false)
		}
	}
	return v
}

// asSourceText turns the arguments of a function into strings and explains the strings in their
// descriptions.
func asSourceText(v any, language string) {
	parameters, _ := v.(map[string]any)
	properties, _ := parameters["properties"].(map[string]any)
	for _, p := range properties {
		property, ok := p.(map[string]any)
		if !ok {
			continue
		}
		kind, _ := property["type"].(string)
		note := language + " source text of a value"
		if kind != "" && kind != "any" {
			note += " of type " + kind
		}
		if items, ok := property["items"].(map[string]any); ok {
			if inner, ok := items["type"].(string); ok {
				note += " with elements of type " + inner
			}
		}
		description, _ := property["description"].(string)
		property["description"] = strings.TrimSpace(description + " " + note + ".")
		property["type"] = "string"
		delete(property, "items")
		delete(property, "properties")
	}
}
