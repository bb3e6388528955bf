package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// described is a part of an OpenAPI document that may have a description.
type described struct {
	Ref         string               `json:"$ref"`
	Description string               `json:"description"`
	Properties  map[string]described `json:"properties"`
	Items       *described           `json:"items"`
	Headers     map[string]header    `json:"headers"`
}

// header is a response header. Huma puts its description into its schema.
type header struct {
	described
	Schema described `json:"schema"`
}

// describedDocument holds the parts of an OpenAPI document that need a description.
type describedDocument struct {
	Paths map[string]map[string]struct {
		described
		Parameters []struct {
			described
			Name string `json:"name"`
		} `json:"parameters"`
		RequestBody *described           `json:"requestBody"`
		Responses   map[string]described `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]described `json:"schemas"`
	} `json:"components"`
}

// Undescribed returns the operations, parameters, bodies, responses, headers and members of a document
// that have no description, sorted, and the number of all members and parameters.
func Undescribed(raw []byte) (missing []string, members int, err error) {
	var d describedDocument
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, 0, err
	}
	check := func(kind, name string, part described) {
		if strings.TrimSpace(part.Description) == "" {
			missing = append(missing, fmt.Sprintf("the %s %s", kind, name))
		}
	}
	var walk func(name string, s described)
	walk = func(name string, s described) {
		for member, of := range s.Properties {
			members++
			check("member", name+"."+member, of)
			walk(name+"."+member, of)
		}
		if s.Items != nil {
			walk(name, *s.Items)
		}
	}
	for name, s := range d.Components.Schemas {
		walk(name, s)
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			name := method + " " + path
			check("operation", name, op.described)
			for _, p := range op.Parameters {
				members++
				check("parameter", p.Name+" of "+name, p.described)
			}
			if op.RequestBody != nil {
				check("body", "of "+name, *op.RequestBody)
			}
			for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
				answer := op.Responses[status]
				if answer.Ref == "" {
					check("answer", status+" of "+name, answer)
				}
				for header, of := range answer.Headers {
					if of.Description == "" {
						of.described = of.Schema
					}
					check("header", header+" of the answer "+status+" of "+name, of.described)
				}
			}
		}
	}
	slices.Sort(missing)
	return missing, members, nil
}
