package openapi

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// AnyObject is a JSON object that somebody else made; it is passed on.
type AnyObject struct{ json.RawMessage }

// Schema describes it; see [huma.SchemaProvider].
func (AnyObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Anything is JSON of any kind that somebody else made.
type Anything struct{ json.RawMessage }

// Schema describes it; see [huma.SchemaProvider].
func (Anything) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// SchemaProblem is the name of the schema of problem documents.
const SchemaProblem = "Problem"

// Ref refers to a schema by its name.
func Ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

// Text describes a string.
func Text(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: description}
}

// Words describes a string that is one of these.
func Words(enum ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: enum} }

// Integers describes a whole number within bounds.
func Integers(from, to float64) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &from, Maximum: &to}
}

// Boolean describes true or false.
func Boolean() *huma.Schema { return &huma.Schema{Type: huma.TypeBoolean} }

// String describes any string.
func String() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// Time describes a time as RFC 3339 writes it.
func Time() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "date-time"} }

// Object describes an object that somebody else made.
func Object(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: description}
}

// OpenObject describes an object that may have more members than these.
func OpenObject(description string, properties map[string]*huma.Schema, required ...string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: description, Properties: properties, Required: required, AdditionalProperties: true}
}

// ListOf describes an object whose member name is a list of items.
func ListOf(name string, item *huma.Schema, description string) *huma.Schema {
	return OpenObject(description, map[string]*huma.Schema{name: {Type: huma.TypeArray, Items: item}}, name)
}

// Described returns the schema with a description.
func Described(s *huma.Schema, description string) *huma.Schema {
	s.Description = description
	return s
}

// RefuseMore has schemas of bodies refuse members that they do not name; those that are
// not in the document are passed over.
func RefuseMore(schemas map[string]*huma.Schema, names ...string) {
	for _, name := range names {
		if s := schemas[name]; s != nil {
			s.AdditionalProperties = false
		}
	}
}

// DescribeMember gives a member of a schema another schema and keeps its description. A
// schema or a member that is not in the document is passed over.
func DescribeMember(schemas map[string]*huma.Schema, name, member string, as *huma.Schema) {
	if s := schemas[name]; s != nil && s.Properties[member] != nil {
		as.Description = s.Properties[member].Description
		s.Properties[member] = as
	}
}

// LinesOf is a text whose lines, or whose events, each hold JSON of the
// shape.
func LinesOf(shape *huma.Schema, description string) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Description: description,
		Extensions: map[string]any{"contentMediaType": "application/json", "contentSchema": shape},
	}
}

// Plain makes the schema of a Go type say what is sent and no more: a list that
// is not there is left out and never null, and that answers may gain members is
// what JSON Schema means where it is silent. Generated types are simpler for it.
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
