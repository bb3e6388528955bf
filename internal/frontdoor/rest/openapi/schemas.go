package openapi

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// AnyObject is a JSON object from an external source, such as an MCP server, that is forwarded
// verbatim.
type AnyObject struct{ json.RawMessage }

// Schema returns its schema; see [huma.SchemaProvider].
func (AnyObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Anything is a JSON value of any type from an external source.
type Anything struct{ json.RawMessage }

// Schema returns its schema; see [huma.SchemaProvider].
func (Anything) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// SchemaProblem is the name of the schema of problem documents.
const SchemaProblem = "Problem"

// Ref refers to a schema by its name.
func Ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

// Text describes a string.
func Text(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: description}
}

// Words describes a string that is one of the given values.
func Words(enum ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: enum} }

// Integers describes an integer between from and to.
func Integers(from, to float64) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &from, Maximum: &to}
}

// Boolean describes a boolean.
func Boolean() *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

// String describes any string.
func String() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// Time describes a time in the format of RFC 3339.
func Time() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "date-time"} }

// Object describes an object from an external source.
func Object(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: description}
}

// OpenObject describes an object that may have additional members.
func OpenObject(description string, properties map[string]*huma.Schema, required ...string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: description, Properties: properties, Required: required, AdditionalProperties: true}
}

// ListOf describes an object whose member name is a list of items. The description is that of both.
func ListOf(name string, item *huma.Schema, description string) *huma.Schema {
	return OpenObject(description, map[string]*huma.Schema{name: {Type: huma.TypeArray, Items: item, Description: description}}, name)
}

// Described returns the schema with a description.
func Described(s *huma.Schema, description string) *huma.Schema {
	s.Description = description
	return s
}

// ForbidUnknownMembers makes schemas of bodies refuse members that they do not list. It ignores names that are
// not in the document.
func ForbidUnknownMembers(schemas map[string]*huma.Schema, names ...string) {
	for _, name := range names {
		if s := schemas[name]; s != nil {
			s.AdditionalProperties = false
		}
	}
}

// DescribeMember replaces the schema of a member and keeps its description. It ignores a schema or a
// member that is not in the document.
func DescribeMember(schemas map[string]*huma.Schema, name, member string, as *huma.Schema) {
	if s := schemas[name]; s != nil && s.Properties[member] != nil {
		as.Description = s.Properties[member].Description
		s.Properties[member] = as
	}
}

// LinesOf describes a text whose lines or events each contain JSON with this schema.
func LinesOf(shape *huma.Schema, description string) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Description: description,
		Extensions: map[string]any{"contentMediaType": "application/json", "contentSchema": shape},
	}
}

// Plain simplifies the schema of a Go type to what is sent: an absent list is omitted and never
// null, and additional members are allowed by default in JSON Schema, so that is not stated.
// Generated types become simpler.
func Plain(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if open, is := s.AdditionalProperties.(bool); is && open && len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	Plain(s.Items)
	for _, member := range s.Properties {
		Plain(member)
	}
}
