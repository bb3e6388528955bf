package openapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/yaml"
)

// withoutSchemas loads the operations of a document that has a schema which the loader cannot read,
// such as one with "required": true. Published documents have such schemas. The tools get their
// schemas from root, where malformed keywords are omitted; see wellFormed. If something else is
// wrong with the document, ok is false, and root is nil only if the text cannot be parsed.
func withoutSchemas(ctx context.Context, text []byte) (model *openapi3.T, root any, ok bool) {
	if json.Valid(text) {
		root, ok = decoded(text)
	} else {
		var raw json.RawMessage
		if _, err := yaml.Unmarshal(text, &raw, yaml.DecodeOpts{DisableTimestamps: true}); err == nil {
			root, ok = decoded(raw)
		}
	}
	if !ok || hasExternalReference(root) {
		return nil, root, false
	}
	rest, err := json.Marshal(strip(root, false))
	if err != nil {
		return nil, root, false
	}
	model, err = newLoader(ctx).LoadFromData(rest)
	return model, root, err == nil
}

func decoded(text []byte) (root any, ok bool) {
	root, err := plainJSON(text)
	return root, err == nil
}

// named are the members of a document whose own members have names that the author chose.
var named = []string{"paths", "responses", "headers", "content", "encoding", "callbacks", "links", "requestBodies", "securitySchemes", "pathItems", "parameters", "variables"}

// strip returns a copy of a part of the document with empty schemas and without examples. names means
// that the members of v have names of the author, so that "schema" is one of these.
func strip(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch {
			case names:
				out[key] = strip(value, false)
			case key == "schema":
				out[key] = map[string]any{}
			case key == "schemas" || key == "example" || key == "examples" || strings.HasPrefix(key, "x-"):
			default:
				out[key] = strip(value, slices.Contains(named, key))
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = strip(item, false)
		}
		return out
	}
	return v
}

// hasExternalReference reports whether v has a reference to another document, outside of extensions.
func hasExternalReference(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return true
		}
		for key, value := range v {
			if !strings.HasPrefix(key, "x-") && hasExternalReference(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasExternalReference)
	}
	return false
}

// types are the types of JSON Schema.
var types = []any{"array", "boolean", "integer", "null", "number", "object", "string"}

// wellFormed reports whether JSON Schema allows the value for a keyword. A schema with a malformed
// keyword cannot be compiled, so that its tool could not be called.
func wellFormed(keyword string, v any) bool {
	switch keyword {
	case "type":
		list, isList := v.([]any)
		if !isList {
			return slices.Contains(types, v)
		}
		return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return !slices.Contains(types, v) })
	case "enum", "examples":
		_, ok := v.([]any)
		return ok
	case "title", "description", "format", "pattern", "contentEncoding", "contentMediaType":
		_, ok := v.(string)
		return ok
	case "uniqueItems", "deprecated":
		_, ok := v.(bool)
		return ok
	case "maximum", "minimum", "multipleOf":
		_, ok := v.(json.Number)
		return ok
	case "exclusiveMaximum", "exclusiveMinimum":
		_, old := v.(bool)
		_, ok := v.(json.Number)
		return ok || old
	case "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains":
		n, ok := v.(json.Number)
		return ok && !strings.ContainsAny(n.String(), "-.eE")
	}
	return true
}
