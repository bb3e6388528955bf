package openapitest_test

import (
	"slices"
	"testing"

	"github.com/callyard/callyard/internal/openapitest"
)

func TestExamplesThatDoNotMatchTheirSchemaAreFound(t *testing.T) {
	bad, examples, err := openapitest.BadExamples([]byte(`{
		"paths": {"/calls": {"post": {
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Call"}, "example": {"id": 1}}}},
			"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Call"}, "examples": {"good": {"value": {"id": "a"}}, "bad": {"value": {}}}}}}}}}},
		"components": {"schemas": {"Call": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(bad) != 2 || examples != 3 {
		t.Errorf("%d examples, bad: %q", examples, bad)
	}
}

func TestPartsWithoutADescriptionAreFound(t *testing.T) {
	missing, members, err := openapitest.Undescribed([]byte(`{
		"paths": {"/calls": {"get": {"summary": "s", "parameters": [{"name": "limit"}, {"name": "state", "description": "d"}],
			"responses": {"200": {"headers": {"ETag": {}, "Link": {"description": "d"}, "Age": {"schema": {"description": "d"}}}}, "404": {"$ref": "r"}}}}},
		"components": {"schemas": {
			"Call": {"properties": {"id": {"description": "d"}, "state": {"$ref": "s"}, "docker": {"description": "d", "properties": {"image": {}}},
				"list": {"description": "d", "items": {"properties": {"one": {}}}}}}
		}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the answer 200 of get /calls", "the header ETag of the answer 200 of get /calls", "the member Call.docker.image", "the member Call.list.one",
		"the member Call.state", "the operation get /calls", "the parameter limit of get /calls",
	}
	if !slices.Equal(missing, want) {
		t.Errorf("%q, want %q", missing, want)
	}
	if members != 8 {
		t.Errorf("%d members and parameters, want 8", members)
	}
}
