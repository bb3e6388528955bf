package web

import (
	"encoding/json"
	"fmt"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// shapes are the bodies of the API as its document describes them, so that the two
// cannot differ.
type shapes map[string]*validate.Schema

// Names of the schemas of bodies.
const (
	shapeAnswer     = "Answer"
	shapeAnswers    = "Answers"
	shapeRevocation = "Revocation"
)

func readShapes() (shapes, error) {
	var document struct {
		Components json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(openapi, &document); err != nil {
		return nil, fmt.Errorf("web: reading the OpenAPI document: %w", err)
	}
	s := make(shapes)
	for _, name := range []string{shapeAnswer, shapeAnswers, shapeRevocation} {
		raw, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "components": document.Components})
		if err != nil {
			return nil, fmt.Errorf("web: the schema %s: %w", name, err)
		}
		if s[name], err = validate.Compile(raw); err != nil {
			return nil, fmt.Errorf("web: the schema %s: %w", name, err)
		}
	}
	return s, nil
}

// check says where a body is not what the document says of it, every place of it.
func (s shapes) check(name string, body []byte) error {
	if err := validate.Value(body, len(body)+1, 0); err != nil {
		return err
	}
	faults := s[name].Validate(body)
	if len(faults) == 0 {
		return nil
	}
	at := faults[0].Pointer
	if at == "" {
		at = "the whole"
	}
	e := schema.Errorf(schema.KindInvalidRequest, "The body is not as GET /openapi.json says; nothing was done. At %s: %s", at, faults[0].Message)
	e.Faults = faults
	return e
}
