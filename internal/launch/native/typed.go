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

// Option describes a tool that [Typed] makes.
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

// Title sets the title that people see.
func Title(title string) Option { return func(d *definition) { d.Title = title } }

// ReadOnly says that the tool changes nothing (readOnlyHint).
func ReadOnly() Option { return hint(func(a *annotations, v *bool) { a.ReadOnly = v }, true) }

// Idempotent says that repeating a call with the same arguments has no further effect
// (idempotentHint).
func Idempotent() Option { return hint(func(a *annotations, v *bool) { a.Idempotent = v }, true) }

// Destructive says whether the tool may delete or overwrite (destructiveHint).
func Destructive(v bool) Option {
	return hint(func(a *annotations, v *bool) { a.Destructive = v }, v)
}

// OpenWorld says whether the tool reaches systems outside (openWorldHint).
func OpenWorld(v bool) Option { return hint(func(a *annotations, v *bool) { a.OpenWorld = v }, v) }

func hint(set func(*annotations, *bool), v bool) Option {
	return func(d *definition) {
		if d.Annotations == nil {
			d.Annotations = &annotations{}
		}
		set(d.Annotations, &v)
	}
}

// InputSchema replaces the schema that is derived from the type of the arguments. schema
// is a JSON Schema of an object.
func InputSchema(schema json.RawMessage) Option {
	return func(d *definition) { d.InputSchema = schema }
}

// Function is a tool's implementation with Go types.
type Function[In, Out any] func(ctx context.Context, c *Call, in In) (Out, error)

// Typed makes a tool from a function.
//
// In is a struct, or a map with string keys: the arguments are decoded into it with
// encoding/json, and its JSON schema is the tool's inputSchema. The comment of a field in
// the schema is its "jsonschema" tag. Fields without omitempty or omitzero, other than
// pointers, are required. Arguments that In has no field for are refused. A number is
// an integer by its value, however it is written.
//
// Out decides the result. Result is used as it is. A string is a text. nil interfaces and
// empty structs are an empty text. A struct or a map with string keys becomes
// structuredContent with an outputSchema; another type becomes the member "result" of
// such an object. A nil pointer to a struct with required fields is a result with isError,
// because no object that the outputSchema allows says the same.
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
		if string(schema) == "{}" { // any, or a type that reads its own JSON
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

// describesObject says that a schema has the type "object". MCP clients refuse the whole list of
// a server with a tool whose inputSchema has not.
func describesObject(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}

// Must returns the tool, or panics where there is an error: for tools whose types are
// known when the program is written.
func Must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// outputKind is how a value of Go becomes a result.
type outputKind int

const (
	outputRaw outputKind = iota
	outputRawPointer
	outputText
	outputNothing
	outputObject
	outputWhole // an object with members that are never left out
	outputValue // goes into an object
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
		return outputValue, nil // its values may be anything
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

// hasRequired reports whether the JSON objects of a type have a member that is never left out.
func hasRequired(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && slices.ContainsFunc(fieldsOf(t), func(f field) bool { return !f.optional })
}

// noValue is what the model reads of a tool that returned nil: its outputSchema, as MCP wants
// one, describes an object, and {} is not one that it describes.
const noValue = "The tool returned no value (nil)."

// result writes the value that out points to: by the pointer, so that methods of pointers
// write it too.
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

// decode reads arguments and refuses members that the type does not have.
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
