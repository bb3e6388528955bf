package bfcl

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Call is a tool call of a model.
type Call struct {
	Name      string
	Arguments json.RawMessage
}

// Fault is the type of the first fault of an answer with the name that the official checker uses,
// or "". [Unreadable] and [Undecided] belong to this package.
type Fault string

const (
	// Unreadable is an answer whose arguments are not a JSON object.
	Unreadable Fault = "ast_decoder:decoder_wrong_output_format"
	// Undecided is an answer for which the official checker raises an exception, such as a string
	// where the possible answers are objects. It is invalid.
	Undecided Fault = "exception"
)

// Options change the rules.
type Options struct {
	// UnderscoresForDots expects underscores instead of dots in function names, for providers that
	// do not accept dots.
	UnderscoresForDots bool
}

// Check checks the calls of one answer against the possible answers. category is the category of
// the data set without the version prefix, such as "live_parallel". functions and answers are JSON
// of the data set ("function" and "ground_truth"). The error means that functions or answers cannot
// be parsed. It is safe for concurrent use.
func Check(category string, functions, answers json.RawMessage, calls []Call, o Options) (Fault, error) {
	switch {
	case strings.Contains(category, "irrelevance"):
		if len(calls) > 0 {
			return "irrelevance_error:decoder_success", nil
		}
		return "", nil
	case strings.Contains(category, "relevance"):
		if len(calls) == 0 {
			return "relevance_error:decoder_failed", nil
		}
		return "", nil
	}
	c := checker{options: o, language: languageOf(category)}
	if err := readObjects(functions, &c.functions); err != nil {
		return "", fmt.Errorf("reading the functions: %w", err)
	}
	var possible []*dict
	if err := readObjects(answers, &possible); err != nil {
		return "", fmt.Errorf("reading the possible answers: %w", err)
	}
	output := make([]call, len(calls))
	for i := range calls {
		v, err := read(calls[i].Arguments)
		parameters, ok := v.(*dict)
		if err != nil || !ok {
			return Unreadable, nil
		}
		output[i] = call{calls[i].Name, parameters}
	}
	return c.check(category, output, possible), nil
}

func readObjects(raw json.RawMessage, to *[]*dict) error {
	v, err := read(raw)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("they are not a list")
	}
	for _, item := range list {
		object, ok := item.(*dict)
		if !ok {
			return fmt.Errorf("one of them is not an object")
		}
		*to = append(*to, object)
	}
	return nil
}

type call struct {
	name       string
	parameters *dict
}

type checker struct {
	options   Options
	language  language
	functions []*dict
}

func (c *checker) check(category string, output []call, possible []*dict) Fault {
	switch {
	case strings.Contains(category, "parallel"):
		return c.parallel(output, possible)
	case strings.Contains(category, "multiple"):
		if len(output) != len(possible) {
			return "multiple_function_checker:wrong_count"
		}
		if len(possible) == 0 || len(possible[0].keys) == 0 {
			return Undecided
		}
		return c.function(c.description(possible[0].keys[0]), output[0], possible[0])
	}
	if len(output) != 1 {
		return "simple_function_checker:wrong_count"
	}
	if len(possible) == 0 || len(c.functions) == 0 {
		return Undecided
	}
	return c.function(c.functions[0], output[0], possible[0])
}

func (c *checker) description(name string) *dict {
	for _, f := range c.functions {
		if f.text("name") == name {
			return f
		}
	}
	return nil
}

// parallel assigns to each possible answer the first matching call that is not assigned yet.
func (c *checker) parallel(output []call, possible []*dict) Fault {
	if len(output) != len(possible) {
		return "parallel_function_checker_no_order:wrong_count"
	}
	used := make([]bool, len(output))
	for _, answer := range possible {
		if len(answer.keys) == 0 {
			return Undecided
		}
		description, found := c.description(answer.keys[0]), false
		for i := 0; i < len(output) && !found; i++ {
			if used[i] {
				continue
			}
			switch c.function(description, output[i], answer) {
			case Undecided:
				return Undecided
			case "":
				used[i], found = true, true
			}
		}
		if !found {
			return "parallel_function_checker_no_order:cannot_find_match"
		}
	}
	return ""
}

// function checks one call against the possible values of its arguments.
func (c *checker) function(description *dict, output call, answer *dict) Fault {
	if description == nil || len(answer.keys) == 0 {
		return Undecided
	}
	possible, ok := answer.values[answer.keys[0]].(*dict)
	schema := description.object("parameters")
	properties := schema.object("properties")
	if !ok || properties == nil {
		return Undecided
	}
	name := description.text("name")
	if c.options.UnderscoresForDots {
		name = strings.ReplaceAll(name, ".", "_")
	}
	if output.name != name {
		return "simple_function_checker:wrong_func_name"
	}
	for _, required := range schema.list("required") {
		key, _ := required.(string)
		if _, ok := output.parameters.get(key); !ok {
			return "simple_function_checker:missing_required"
		}
	}
	for _, key := range output.parameters.keys {
		property, known := properties.get(key)
		accepted, expected := possible.get(key)
		if !known || !expected {
			return "simple_function_checker:unexpected_param"
		}
		details, isDict := property.(*dict)
		list, isList := accepted.([]any)
		if !isDict || !isList {
			return Undecided
		}
		if fault := c.parameter(details, output.parameters.values[key], list); fault != "" {
			return fault
		}
	}
	for _, key := range possible.keys {
		list, ok := possible.values[key].([]any)
		if _, given := output.parameters.get(key); given {
			continue
		}
		if !ok {
			return Undecided
		}
		if !in("", list) {
			return "simple_function_checker:missing_optional"
		}
	}
	return ""
}

// parameter checks the value of one argument.
func (c *checker) parameter(details *dict, value any, possible []any) Fault {
	declared := details.text("type")
	value, expected, nested, fault := c.language.convert(details, declared, value)
	if fault != "" {
		return fault
	}
	if n, ok := value.(*big.Int); ok && c.language == python && declared == "float" {
		value, _ = new(big.Float).SetInt(n).Float64()
	}
	fault, variable := typed(value, possible, expected, nested)
	if fault != "" {
		return fault
	}
	if !variable {
		switch {
		case expected == "dict":
			return checkDict(value, possible)
		case expected == "list" && nested == "dict":
			return checkListOfDicts(value, possible)
		case expected == "str":
			return checkString(value, possible)
		case expected == "list":
			return checkList(value, possible)
		}
	}
	if !in(value, possible) {
		return "value_error:others"
	}
	return ""
}

// typed checks the type of a value. variable means that it has the type of the possible answers and
// not the declared one, so that it counts as the name of a variable.
func typed(value any, possible []any, expected, nested string) (fault Fault, variable bool) {
	of := ""
	for _, answer := range possible {
		if answer != "" {
			of = kind(answer)
			break
		}
	}
	variable = of != "" && of != expected
	if kind(value) == expected {
		if nested == "" {
			return "", variable
		}
		items, ok := characters(value)
		if !ok {
			return Undecided, false
		}
		for _, answer := range possible {
			list, isList := answer.([]any)
			fits := true
			if isList {
				for _, item := range items {
					if fault, _ := typed(item, list, nested, ""); fault != "" {
						fits = false
						break
					}
				}
			}
			if fits {
				return "", variable
			}
		}
		if of == kind(value) {
			return "type_error:nested", true
		}
		return "type_error:simple", false
	}
	if of != "" && kind(value) == of {
		return "", true
	}
	return "type_error:simple", false
}

// characters returns the items of a list or the characters of a string, because Python iterates
// over both.
func characters(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case string:
		var out []any
		for _, r := range v {
			out = append(out, string(r))
		}
		return out, true
	}
	return nil, false
}
