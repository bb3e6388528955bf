package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/callyard/callyard/internal/kit/plainjson"
)

// Option sets a property of a tool of [Typed].
type Option func(*definition)

// definition is a Tool object of the MCP specification.
type definition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *annotations    `json:"annotations,omitempty"`
}

// annotations are ToolAnnotations of the MCP specification; nil members are not sent.
type annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Title sets the title for people.
func Title(title string) Option { return func(d *definition) { d.Title = title } }

// ReadOnly declares that the tool changes nothing (readOnlyHint).
func ReadOnly() Option { return hint(func(a *annotations, v *bool) { a.ReadOnly = v }, true) }

// Idempotent declares that repeating a call with the same arguments has no further effect
// (idempotentHint).
func Idempotent() Option { return hint(func(a *annotations, v *bool) { a.Idempotent = v }, true) }

// Destructive declares whether the tool may delete or overwrite (destructiveHint).
func Destructive(v bool) Option {
	return hint(func(a *annotations, v *bool) { a.Destructive = v }, v)
}

// OpenWorld declares whether the tool accesses external systems (openWorldHint).
func OpenWorld(v bool) Option { return hint(func(a *annotations, v *bool) { a.OpenWorld = v }, v) }

func hint(set func(*annotations, *bool), v bool) Option {
	return func(d *definition) {
		if d.Annotations == nil {
			d.Annotations = &annotations{}
		}
		set(d.Annotations, &v)
	}
}

// InputSchema replaces the schema derived from the type of the arguments. schema is a JSON Schema
// of an object.
func InputSchema(schema json.RawMessage) Option {
	return func(d *definition) { d.InputSchema = schema }
}

// Function is a tool's implementation with Go types.
type Function[In, Out any] func(ctx context.Context, c *Call, in In) (Out, error)

// Typed creates a tool from a function.
//
// In is a struct or a map with string keys. The arguments are decoded into it with encoding/json,
// and its JSON schema is the tool's inputSchema. The "jsonschema" tag of a field is its
// description. Fields without omitempty or omitzero, except pointers, are required. Arguments
// without a field in In are refused. A number such as 1.0 or 1e3 is a valid integer.
//
// Out determines the result. A Result is used unchanged. A string becomes a text. A nil interface
// and an empty struct become an empty text. A struct or a map with string keys becomes
// structuredContent with an outputSchema. Any other type becomes the member "result" of such an
// object. A nil pointer to a struct with required fields becomes a result with isError, because no
// object that matches the outputSchema means nil.
func Typed[In, Out any](name, description string, f Function[In, Out], options ...Option) (Tool, error) {
	raw, kind, err := define(name, description, reflect.TypeFor[In](), reflect.TypeFor[Out](), options)
	if err != nil {
		return Tool{}, err
	}
	return Tool{Name: name, Definition: raw, Call: func(ctx context.Context, c *Call) (Result, error) {
		var in In
		if err := decode(c.Arguments, &in); err != nil {
			return Result{}, fmt.Errorf("the arguments do not fit the tool: %w", err)
		}
		out, err := f(ctx, c, in)
		if err != nil {
			return Result{}, err
		}
		return result(kind, &out)
	}}, nil
}

// define returns the definition of a tool with the types of its arguments and its result.
func define(name, description string, in, out reflect.Type, options []Option) (json.RawMessage, outputKind, error) {
	d := definition{Name: name, Description: description}
	for _, o := range options {
		o(&d)
	}
	if d.InputSchema == nil {
		schema, err := schemaFor(in)
		if err != nil {
			return nil, 0, fmt.Errorf("tool %q: the type of its arguments has no JSON schema: %w", name, err)
		}
		if string(schema) == "{}" { // any, or a type that decodes its own JSON
			schema = json.RawMessage(`{"type":"object"}`)
		}
		if !describesObject(schema) {
			return nil, 0, fmt.Errorf("tool %q: the type of its arguments is %s, and MCP requires a JSON object; take a struct, or a map with string keys", name, in)
		}
		d.InputSchema = schema
	} else if !describesObject(d.InputSchema) {
		return nil, 0, fmt.Errorf(`tool %q: its InputSchema is not a JSON Schema with "type": "object", which MCP requires`, name)
	}
	kind, err := d.output(out)
	if err != nil {
		return nil, 0, fmt.Errorf("tool %q: the type of its result has no JSON schema: %w", name, err)
	}
	raw, err := plainjson.Marshal(d)
	if err != nil {
		return nil, 0, fmt.Errorf("tool %q: encoding its definition: %w", name, err)
	}
	return raw, kind, nil
}

// describesObject reports whether a schema has the type "object". MCP clients reject the whole list
// of a server if the inputSchema of one tool does not.
func describesObject(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}

// Must returns the tool, or panics if there is an error. Use it for tools whose types are fixed at
// compile time.
func Must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// outputKind is the way in which a Go value becomes a result.
type outputKind int

const (
	outputRaw outputKind = iota
	outputRawPointer
	outputText
	outputNothing
	outputObject
	outputWhole // an object with required members
	outputValue // wrapped in an object
)

// output sets the outputSchema for a type.
func (d *definition) output(t reflect.Type) (outputKind, error) {
	switch {
	case t == reflect.TypeFor[Result]():
		return outputRaw, nil
	case t == reflect.TypeFor[*Result]():
		return outputRawPointer, nil
	case t.Kind() == reflect.String && !isMarshaler(t):
		return outputText, nil
	case t.Kind() == reflect.Struct && t.NumField() == 0, t.Kind() == reflect.Interface && t.NumMethod() > 0:
		return outputNothing, nil
	case t.Kind() == reflect.Interface:
		return outputValue, nil // its values may be of any type
	}
	schema, err := schemaFor(t)
	if err != nil {
		return 0, err
	}
	if isObject(t) {
		d.OutputSchema = schema
		if hasRequired(t) {
			return outputWhole, nil
		}
		return outputObject, nil
	}
	d.OutputSchema, err = wrapped(schema, t.Kind() == reflect.Pointer)
	return outputValue, err
}

// hasRequired reports whether the JSON objects of a type have a required member.
func hasRequired(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && slices.ContainsFunc(fieldsOf(t), func(f field) bool { return !f.optional })
}

// noValue is the text for the model if a tool returned nil. The outputSchema describes an object, as
// MCP requires, and {} does not match it.
const noValue = "The tool returned no value (nil)."

// result encodes the value that out points to. It uses the pointer so that pointer methods apply.
func result(kind outputKind, out any) (Result, error) {
	switch kind {
	case outputRaw:
		return *out.(*Result), nil
	case outputRawPointer:
		if r := *out.(**Result); r != nil {
			return *r, nil
		}
		return Failed(noValue), nil
	case outputText:
		return Text(reflect.ValueOf(out).Elem().String()), nil
	case outputNothing:
		return Text(""), nil
	}
	if kind == outputValue {
		out = struct {
			Result any `json:"result"`
		}{out}
	}
	raw, err := plainjson.Marshal(out)
	if err != nil {
		return Result{}, fmt.Errorf("the tool ran, but its result cannot be written as JSON: %w", err)
	}
	switch {
	case raw[0] == '{':
	case kind == outputWhole:
		return Failed(noValue), nil
	default: // a nil map, or a nil pointer to a struct whose members may all be left out
		raw = []byte("{}")
	}
	return Structured(raw), nil
}

// decode decodes arguments and rejects members that the type does not have.
func decode(arguments []byte, into any) error {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	err := decodeStrict(arguments, into)
	if isIntegerFault(err) {
		v := reflect.ValueOf(into).Elem()
		v.SetZero() // it holds what was decoded before the fault
		return decodeStrict(withIntegers(arguments, v.Type()), into)
	}
	return err
}

func decodeStrict(arguments []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("text follows the arguments")
	}
	return nil
}
