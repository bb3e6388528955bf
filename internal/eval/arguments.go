package eval

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// ArgumentChecker checks arguments against the schemas of tools. It compiles each schema once. It
// is safe for concurrent use.
type ArgumentChecker struct{ schemas *validate.Cache }

// NewArgumentChecker returns a checker without schemas.
func NewArgumentChecker() *ArgumentChecker { return &ArgumentChecker{validate.NewCache(0)} }

// ArgumentCheck counts the arguments of a call that match the schema of its tool.
type ArgumentCheck struct {
	// Required is the number of arguments that the schema requires, and Present the number of those
	// that are given.
	Required, Present int
	// Given is the number of arguments, and Valid the number of those without a fault.
	Given, Valid int
	// Readable means that the schema could be compiled. One that could not forbids nothing.
	Readable bool
}

// Check checks arguments. Missing arguments count as an empty object. object is false if the
// arguments are not an object. A tool without a schema forbids nothing.
func (c *ArgumentChecker) Check(input, arguments json.RawMessage) (check ArgumentCheck, object bool) {
	var compiled *validate.Schema // nil forbids nothing
	var required []string
	check.Readable = true
	if len(input) > 0 {
		var err error
		compiled, err = c.schemas.Get(schema.Digest(input), input)
		check.Readable = err == nil
		if list := rawjson.Get(input, "required"); list != nil && json.Unmarshal(list, &required) != nil {
			check.Readable, required = false, nil
		}
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil || given == nil {
		return check, false
	}
	check.Required, check.Given = len(required), len(given)
	for _, name := range required {
		if _, ok := given[name]; ok {
			check.Present++
		}
	}
	check.Valid = check.Given
	if compiled != nil {
		check.Valid -= faulty(compiled, arguments, given)
	}
	return check, true
}

// faulty returns the number of given arguments with a fault.
func faulty(schema *validate.Schema, arguments json.RawMessage, given map[string]json.RawMessage) int {
	wrong := make(map[string]bool)
	for _, f := range schema.Validate(arguments) {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		name = jsonpointer.Name(name)
		if _, ok := given[name]; ok && f.Pointer != "" {
			wrong[name] = true
		}
	}
	return len(wrong)
}

// SchemaOf returns the schema of the tool that a model means by a name. known is false if it is not
// a tool of the sample.
func (p *Prepared) SchemaOf(called string) (schema json.RawMessage, known bool) {
	return schemaOf(p.Sample.Tools, p.Names, called)
}

func schemaOf(tools []Tool, names *Names, called string) (schema json.RawMessage, known bool) {
	key, known := names.Known(called)
	i := slices.IndexFunc(tools, func(t Tool) bool { return known && t.Name == key })
	if i < 0 {
		return nil, false
	}
	return tools[i].Schema, true
}

// checker caches the schemas of samples, which often share tools.
var checker = NewArgumentChecker()

// arguments returns the mean over calls of two shares: the required arguments that are given, and
// the given arguments that match the schema. It returns nil without calls. A call of an unknown
// tool counts 0, one of a tool without a schema 1.
func (p *Prepared) arguments(calls []Call) *float64 {
	if len(calls) == 0 {
		return nil
	}
	sum := 0.0
	for i := range calls {
		if schema, known := p.SchemaOf(calls[i].Name); known {
			sum += argumentsOf(schema, calls[i].Arguments)
		}
	}
	sum /= float64(len(calls))
	return &sum
}

func argumentsOf(schema, arguments json.RawMessage) float64 {
	if len(schema) == 0 {
		return 1
	}
	switch c, object := checker.Check(schema, arguments); {
	case !c.Readable:
		return 1
	case !object:
		return 0
	default:
		return (share(c.Present, c.Required) + share(c.Valid, c.Given)) / 2
	}
}

// share returns n/all, or 1 if all is 0.
func share(n, all int) float64 {
	if all == 0 {
		return 1
	}
	return float64(n) / float64(all)
}
