package housetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// described is a part of an OpenAPI document that may have a description.
type described struct {
	Ref         string               `json:"$ref"`
	Description string               `json:"description"`
	Properties  map[string]described `json:"properties"`
	Enum        []any                `json:"enum"`
}

// apiDocument holds the parts of an OpenAPI document that need a description.
type apiDocument struct {
	Paths map[string]map[string]struct {
		described
		Summary    string `json:"summary"`
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

// TestEveryMemberAndParameterOfTheAPIHasADescription checks the document of which the clients and the
// reference page are generated. Without a description, their readers have only a name.
func TestEveryMemberAndParameterOfTheAPIHasADescription(t *testing.T) {
	document := theAPIDocument(t)
	missing, members := document.undescribed()
	for _, name := range missing {
		t.Errorf("%s has no description: add a doc tag to the Go field, or a description to the operation, and run make generate", name)
	}
	if members < 1000 {
		t.Errorf("only %d members and parameters were found", members)
	}
}

// TestNoMemberWithNamedValuesHasTheNameOfItsModel checks a name that generators use twice: those of
// Rust clients declare a type for the values of a member, with the name of the member, in the file of
// the model.
func TestNoMemberWithNamedValuesHasTheNameOfItsModel(t *testing.T) {
	for name, s := range theAPIDocument(t).Components.Schemas {
		for member, of := range s.Properties {
			if of.Enum != nil && strings.EqualFold(name, strings.ReplaceAll(member, "_", "")) {
				t.Errorf("the model %s has the member %s with an enum: give the Go type another name", name, member)
			}
		}
	}
}

func theAPIDocument(t *testing.T) *apiDocument {
	t.Helper()
	raw, err := os.ReadFile(moduleRoot + "/clients/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document := &apiDocument{}
	if err := json.Unmarshal(raw, document); err != nil {
		t.Fatal(err)
	}
	return document
}

func TestMembersAndParametersWithoutADescriptionAreFound(t *testing.T) {
	var document apiDocument
	err := json.Unmarshal([]byte(`{
		"paths": {"/calls": {"get": {"summary": "s", "parameters": [{"name": "limit"}, {"name": "state", "description": "d"}], "responses": {"200": {}, "404": {"$ref": "r"}}}}},
		"components": {"schemas": {
			"Call": {"properties": {"id": {"description": "d"}, "state": {"$ref": "s"}, "docker": {"description": "d", "properties": {"image": {}}}}}
		}}}`), &document)
	if err != nil {
		t.Fatal(err)
	}
	missing, _ := document.undescribed()
	want := []string{"the answer 200 of get /calls", "the member Call.docker.image", "the member Call.state", "the operation get /calls", "the parameter limit of get /calls"}
	if !slices.Equal(missing, want) {
		t.Errorf("%q, want %q", missing, want)
	}
}

// undescribed returns the parts without a description, in order, and the number of members and
// parameters.
func (d *apiDocument) undescribed() (missing []string, members int) {
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
				if answer := op.Responses[status]; answer.Ref == "" {
					check("answer", status+" of "+name, answer)
				}
			}
		}
	}
	slices.Sort(missing)
	return missing, members
}
