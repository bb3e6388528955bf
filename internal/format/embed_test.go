package format

import (
	"encoding/json"
	"strings"
	"testing"
)

// embedded embeds a schema and returns the document's schemas by name.
func embedded(t *testing.T, raw string) (map[string]string, Embedded) {
	t.Helper()
	e := Embed(json.RawMessage(raw), "s")
	all := make(map[string]string, len(e.Schemas))
	for _, one := range e.Schemas {
		if !json.Valid(one.JSON) || all[one.Name] != "" {
			t.Errorf("%s: %s is %s", raw, one.Name, one.JSON)
		}
		all[one.Name] = string(one.JSON)
	}
	if e.Schemas[0].Name != "s" {
		t.Errorf("the first schema is %s", e.Schemas[0].Name)
	}
	return all, e
}

func TestSchemaReferencesResolveInTheDocument(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want map[string]string
	}{
		"a definition": {
			`{"properties":{"a":{"$ref":"#/$defs/p","description":"d"}},"$defs":{"p":{"type":"string"},"unused":{}}}`,
			map[string]string{"s": `{"properties":{"a":{"description":"d","$ref":"#/components/schemas/s.p"}}}`, "s.p": `{"type":"string"}`},
		},
		"recursion": {
			`{"$ref":"#/definitions/n","definitions":{"n":{"properties":{"next":{"$ref":"#/definitions/n"},"all":{"$ref":"#"}}}}}`,
			map[string]string{"s": `{"$ref":"#/components/schemas/s.n"}`, "s.n": `{"properties":{"next":{"$ref":"#/components/schemas/s.n"},"all":{"$ref":"#/components/schemas/s"}}}`},
		},
		"inside a definition": {
			`{"items":{"$ref":"#/$defs/p%20q/properties/a~1b"},"$defs":{"p q":{"properties":{"a/b":{"type":"null"}}}}}`,
			map[string]string{"s": `{"items":{"$ref":"#/components/schemas/s.p_q/properties/a~1b"}}`, "s.p_q": `{"properties":{"a/b":{"type":"null"}}}`},
		},
		"a property": {
			`{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`,
			map[string]string{"s": `{"properties":{"a":{"type":"string"},"b":{"$ref":"#/components/schemas/s/properties/a"}}}`},
		},
		"anchors": {
			`{"properties":{"a":{"$anchor":"here","type":"string"},"b":{"$ref":"#here"},"c":{"$dynamicRef":"#node"}},"$defs":{"node":{"$dynamicAnchor":"node","type":"object"}}}`,
			map[string]string{"s": `{"properties":{"a":{"type":"string"},"b":{"$ref":"#/components/schemas/s/properties/a"},"c":{"$ref":"#/components/schemas/s.node"}}}`, "s.node": `{"type":"object"}`},
		},
		"identifiers": {
			`{"$id":"https://example.org/root.json","properties":{"a":{"$ref":"other.json#/properties/x"},"b":{"$ref":"https://example.org/root.json#/properties/a"}},"$defs":{"o":{"$id":"other.json","properties":{"x":{"$ref":"#/$defs/y"}},"$defs":{"y":{"type":"integer"}}}}}`,
			map[string]string{
				"s":   `{"properties":{"a":{"$ref":"#/components/schemas/s.o/properties/x"},"b":{"$ref":"#/components/schemas/s/properties/a"}}}`,
				"s.o": `{"properties":{"x":{"$ref":"#/components/schemas/s.y"}}}`, "s.y": `{"type":"integer"}`,
			},
		},
		"definitions of one name": {
			`{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/definitions/x"}},"$defs":{"x":{"type":"string"}},"definitions":{"x":{"type":"null"}}}`,
			map[string]string{"s": `{"properties":{"a":{"$ref":"#/components/schemas/s.x"},"b":{"$ref":"#/components/schemas/s.x_2"}}}`, "s.x": `{"type":"string"}`, "s.x_2": `{"type":"null"}`},
		},
		"draft 4": {
			`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://example.org/s","properties":{"n":{"minimum":3,"exclusiveMinimum":true},"pair":{"items":[{"$ref":"#/definitions/d"}],"additionalItems":false},"r":{"$ref":"#/definitions/d","minimum":3,"title":"t"}},"dependencies":{"n":["pair"],"pair":{"$ref":"#/properties/pair/items/0"}},"definitions":{"d":{"type":"integer"}}}`,
			map[string]string{
				"s":   `{"id":"http://example.org/s","properties":{"n":{"exclusiveMinimum":3},"pair":{"prefixItems":[{"$ref":"#/components/schemas/s.d"}],"items":{"not":{}}},"r":{"title":"t","$ref":"#/components/schemas/s.d"}},"dependentRequired":{"n":["pair"]},"dependentSchemas":{"pair":{"$ref":"#/components/schemas/s/properties/pair/prefixItems/0"}}}`,
				"s.d": `{"type":"integer"}`,
			},
		},
		"an enum without values": {
			`{"properties":{"a":{"type":"string","enum":[]},"b":{"enum":[],"not":{"type":"string"}}}}`,
			map[string]string{"s": `{"properties":{"a":{"type":"string","not":{}},"b":{"not":{}}}}`},
		},
		"lists of named values in a choice": {
			`{"properties":{"a":{"anyOf":[{"type":"array","items":{"enum":["x","y"]}},{"type":"string"}]},"b":{"type":["array","string"],"items":{"enum":["z"]}},"c":{"$ref":"#/properties/a/anyOf/0/items"},"d":{"type":"array","items":{"enum":["w"]}}}}`,
			map[string]string{
				"s":        `{"properties":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/components/schemas/s.enum"}},{"type":"string"}]},"b":{"anyOf":[{"type":"array","items":{"$ref":"#/components/schemas/s.enum_2"}},{"type":"string"}]},"c":{"$ref":"#/components/schemas/s.enum"},"d":{"type":"array","items":{"enum":["w"]}}}}`,
				"s.enum":   `{"enum":["x","y"]}`,
				"s.enum_2": `{"enum":["z"]}`,
			},
		},
		"booleans": {
			`{"properties":{"a":true,"b":false},"additionalProperties":false,"not":true}`,
			map[string]string{"s": `{"properties":{"a":{},"b":{"not":{}}},"additionalProperties":false,"not":{}}`},
		},
		"a circle": {`{"$ref":"#"}`, map[string]string{"s": `{}`}},
		"true":     {`true`, map[string]string{"s": `{}`}},
		"names":    {`{"properties":{"$ref":{"type":"string"},"id":{"type":"string"}}}`, map[string]string{"s": `{"properties":{"$ref":{"type":"string"},"id":{"type":"string"}}}`}},
	} {
		all, e := embedded(t, c.raw)
		if len(all) != len(c.want) || len(e.Omitted) > 0 {
			t.Errorf("%s: %v, omitted %v", name, all, e.Omitted)
		}
		for part, want := range c.want {
			if all[part] != want {
				t.Errorf("%s: %s is\n%s, want\n%s", name, part, all[part], want)
			}
		}
	}
}

func TestSchemaPartsThatADocumentOmitsAreListed(t *testing.T) {
	for raw, where := range map[string]string{
		`{"properties":{"a":{"$ref":"https://example.org/x.json"}}}`: "",
		`{"properties":{"a":{"$ref":"#/$defs/gone"}}}`:               "",
		`{"properties":{"a":{"$ref":7}}}`:                            "",
		`{"properties":{"a":{"required":true}}}`:                     "/properties/a/required",
		`{"properties":{"a":"string"}}`:                              "/properties/a",
		`{"type":"any"}`:                                             "/type",
		`{"nullable":true}`:                                          "/nullable",
		`[]`:                                                         "",
		`{`:                                                          "",
	} {
		_, e := embedded(t, raw)
		if len(e.Omitted) != 1 || e.Omitted[0].Pointer != where {
			t.Errorf("%s: omitted %v", raw, e.Omitted)
		}
	}
}

func FuzzEmbeddedSchemaReferencesResolve(f *testing.F) {
	for _, tool := range recorded(f) {
		f.Add([]byte(tool.Input))
	}
	f.Add([]byte(`{"$defs":{"a":{"$id":"x","$ref":"#/$defs/b","$defs":{"b":{"$anchor":"c","$ref":"y#c"}}}},"allOf":[{"$ref":"x"},{"$dynamicRef":"#c","$ref":"#"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := Embed(raw, "s")
		places := object()
		for _, one := range e.Schemas {
			v, err := read(one.JSON)
			if err != nil || places.get(one.Name) != nil {
				t.Fatalf("%s: %s", one.Name, one.JSON)
			}
			places.set(one.Name, v)
		}
		document := object().set("components", object().set("schemas", places))
		for _, m := range places.members {
			everySchema(m.value, 0, func(s *value) {
				for _, word := range []string{"$ref", "$id", "$defs", "definitions", "$schema", "$anchor", "$dynamicRef"} {
					ref := s.get(word)
					if ref == nil {
						continue
					}
					if word != "$ref" || !strings.HasPrefix(ref.text(), "#/components/schemas/s") || !lookup(document, ref.text()).isObject() {
						t.Fatalf("%s is %s in %s", word, ref.brief(), m.value.encode(nil))
					}
				}
			})
		}
	})
}
