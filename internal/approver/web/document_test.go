package web

import (
	"encoding/json"
	"testing"

	"github.com/callyard/callyard/internal/openapitest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestDocumentDefinesAllReferencedSchemas(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(unserved().document.RawMessage, &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(at string, v any)
	visit = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if to, ok := v["$ref"].(string); ok && doc.Components.Schemas[to[len(schemaPrefix):]] == nil {
				t.Errorf("%s refers to %s, which is not there", at, to)
			}
			for name, each := range v {
				visit(at+"/"+name, each)
			}
		case []any:
			for _, each := range v {
				visit(at, each)
			}
		}
	}
	var whole any
	if err := json.Unmarshal(unserved().document.RawMessage, &whole); err != nil {
		t.Fatal(err)
	}
	visit("", whole)
}

func TestEveryMemberAndParameterOfTheDocumentHasADescription(t *testing.T) {
	missing, members, err := openapitest.Undescribed(unserved().document.RawMessage)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range missing {
		t.Errorf("%s has no description: add a doc tag to the Go field, or a description to the operation", name)
	}
	if members < 200 {
		t.Errorf("only %d members and parameters were found", members)
	}
}

func TestEveryExampleOfTheDocumentMatchesItsSchema(t *testing.T) {
	bad, examples, err := openapitest.BadExamples(unserved().document.RawMessage)
	if err != nil || len(bad) > 0 || examples == 0 {
		t.Errorf("%d examples, bad: %q, %v", examples, bad, err)
	}
}

func TestBodyMustMatchItsSchemaExactly(t *testing.T) {
	for _, body := range []string{
		`{"kind":"approve"}`, `{"kind":"approve","digest":"x","arguments":{}}`, `{"kind":"edit","digest":"x"}`, `{"kind":"deny","other":1}`, `{"Kind":"deny"}`, `{"kind":"deny","kind":"deny"}`,
		`{"kind":"approve","digest":"x","allow":{"until":"soon","pattern":{"kind":"any"}}}`, `{"kind":"approve","digest":"x","allow":{"until":"2026-01-02T03:04:05Z","pattern":{"kind":"any"},"uses":1}}`,
	} {
		if err := unserved().shapes.read("Answer", []byte(body), new(Answer)); schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("%s: %v", body, err)
		}
	}
	var a Answer
	if err := unserved().shapes.read("Answer", []byte(`{"kind":"edit","digest":"x","arguments":{ "n" : 1.0e0 }}`), &a); err != nil || string(a.answer().Arguments) != `{ "n" : 1.0e0 }` {
		t.Errorf("%s, %v", a.answer().Arguments, err)
	}
}
