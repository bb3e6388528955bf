// Package form makes a form of a JSON Schema, and JSON of what is filled in.
//
// It owns how the arguments of a tool become fields: objects, arrays, enums, constants,
// choices (anyOf, oneOf, several types), references within the schema, defaults and null. It
// promises that its work and its output are bounded whatever the schema is, that numbers
// keep their digits, that a document is the same after it went through a form that holds
// all of it, and that what it cannot show as fields is left to an editor of JSON.
//
// It refuses to validate: the gate of a call does that, with the same schema. It knows
// nothing of HTML.
package form
