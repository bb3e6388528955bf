package openapitest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/callyard/callyard/internal/validate"
)

// media holds the examples of a body or an answer.
type media map[string]struct {
	Schema   json.RawMessage `json:"schema"`
	Example  json.RawMessage `json:"example"`
	Examples map[string]struct {
		Value json.RawMessage `json:"value"`
	} `json:"examples"`
}

// BadExamples returns the examples of JSON bodies and answers that do not match their schemas, sorted,
// and the number of all examples.
func BadExamples(raw []byte) (bad []string, examples int, err error) {
	var d struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content media `json:"content"`
			} `json:"requestBody"`
			Responses map[string]struct {
				Content media `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
		Components json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, 0, err
	}
	check := func(name string, all media) error {
		of, ok := all["application/json"]
		if !ok {
			return nil
		}
		compiled, err := compile(of.Schema, d.Components)
		if err != nil {
			return fmt.Errorf("the schema of %s: %w", name, err)
		}
		values := []json.RawMessage{of.Example}
		for _, one := range of.Examples {
			values = append(values, one.Value)
		}
		for _, value := range values {
			if len(value) == 0 {
				continue
			}
			examples++
			for _, fault := range compiled.Validate(value) {
				bad = append(bad, fmt.Sprintf("%s: at %q: %s", name, fault.Pointer, fault.Message))
			}
		}
		return nil
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if err := check("the body of "+method+" "+path, op.RequestBody.Content); err != nil {
				return nil, 0, err
			}
			for status, answer := range op.Responses {
				if err := check("the answer "+status+" of "+method+" "+path, answer.Content); err != nil {
					return nil, 0, err
				}
			}
		}
	}
	slices.Sort(bad)
	return bad, examples, nil
}

func compile(s, components json.RawMessage) (*validate.Schema, error) {
	text, err := json.Marshal(map[string]any{"allOf": []json.RawMessage{s}, "components": components})
	if err != nil {
		return nil, err
	}
	return validate.Compile(text)
}
