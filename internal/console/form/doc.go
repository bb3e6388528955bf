// Package form builds a form from a JSON Schema, and JSON from the values of the form.
//
// It maps the arguments of a tool to fields: objects, arrays, enums, constants, alternatives
// (anyOf, oneOf, several types), references within the schema, defaults and null. It guarantees
// that its work and its output are bounded for every schema, that numbers keep their digits, and
// that a document is unchanged by a round trip through a form that holds all of it. Parts that it
// cannot show as fields are left to a JSON editor.
//
// It does not validate: the gate of a call does, with the same schema. It has no HTML.
package form
