package housetest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/openapitest"
)

// TestEveryMemberAndParameterOfTheAPIHasADescription checks the document of which the clients and the
// reference page are generated. Without a description, their readers have only a name. A test of
// internal/approver/web checks the document of the approver, which is not a file, in the same way.
func TestEveryMemberAndParameterOfTheAPIHasADescription(t *testing.T) {
	missing, members, err := openapitest.Undescribed(theAPIDocument(t))
	if err != nil {
		t.Fatal(err)
	}
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
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Enum []any `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(theAPIDocument(t), &document); err != nil {
		t.Fatal(err)
	}
	for name, s := range document.Components.Schemas {
		for member, of := range s.Properties {
			if of.Enum != nil && strings.EqualFold(name, strings.ReplaceAll(member, "_", "")) {
				t.Errorf("the model %s has the member %s with an enum: give the Go type another name", name, member)
			}
		}
	}
}

func theAPIDocument(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile(moduleRoot + "/clients/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
