package format

import (
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Generators of typed clients fail on a list of types. A document has an equivalent anyOf instead.
func TestTypeListsBecomeAnyOfInTheDocument(t *testing.T) {
	values := []any{nil, true, 1.0, 1.5, 7.0, "", "ab", "abcdef", []any{}, []any{"a"}, []any{1.0}, map[string]any{}, map[string]any{"a": "x"}, map[string]any{"a": 1.0}, map[string]any{"a": "x", "b": "x"}}
	for raw, want := range map[string]string{
		`{"type":["boolean","string"],"description":"d"}`:                                                `{"description":"d","anyOf":[{"type":"boolean"},{"type":"string"}]}`,
		`{"type":["string","number","null","integer"],"minLength":1,"maximum":5,"enum":["ab",1,7,null]}`: `{"enum":["ab",1,7,null],"anyOf":[{"type":"string","minLength":1},{"type":"number","maximum":5},{"type":"null"}]}`,
		`{"type":["object","array","integer"],"properties":{"a":{"type":["string","boolean"]}},"additionalProperties":false,"items":{"type":"string"},"minimum":2}`: `{"anyOf":[` +
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"boolean"}]}},"additionalProperties":false},{"type":"array","items":{"type":"string"}},{"type":"integer","minimum":2}]}`,
		`{"type":["string","integer"],"anyOf":[{"minLength":3},{"minimum":2}]}`:   `{"anyOf":[{"minLength":3},{"minimum":2}],"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]}]}`,
		`{"type":["array","string"],"items":{"type":"string"},"minProperties":3}`: `{"minProperties":3,"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"string"}]}`,
		`{"type":["string","null"],"minLength":3}`:                                `{"type":["string","null"],"minLength":3}`,
		`{"type":["integer","number"],"maximum":5}`:                               `{"type":"number","maximum":5}`,
		`{"type":["integer","number","null"]}`:                                    `{"type":["number","null"]}`,
		`{"type":["string"],"maxLength":2}`:                                       `{"type":["string"],"maxLength":2}`,
	} {
		all, e := embedded(t, raw)
		if all["s"] != want || len(e.Omitted) > 0 {
			t.Errorf("%s is\n%s, want\n%s (%v)", raw, all["s"], want, e.Omitted)
		}
		before, after := compiled(t, raw), compiled(t, all["s"])
		for _, v := range values {
			if a, b := before.Validate(v) == nil, after.Validate(v) == nil; a != b {
				t.Errorf("%v is valid by %s: %v, by %s: %v", v, raw, a, all["s"], b)
			}
		}
	}
}

func TestReferenceIntoATypeListResolves(t *testing.T) {
	all, _ := embedded(t, `{"type":["object","string"],"properties":{"a":{"type":"null"},"b":{"$ref":"#/properties/a"}}}`)
	want := `{"anyOf":[{"type":"object","properties":{"a":{"type":"null"},"b":{"$ref":"#/components/schemas/s/anyOf/0/properties/a"}}},{"type":"string"}]}`
	if all["s"] != want {
		t.Errorf("%s, want\n%s", all["s"], want)
	}
}

// compiled returns a compiled schema.
func compiled(t *testing.T, raw string) *jsonschema.Schema {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(raw), &document); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return s
}
