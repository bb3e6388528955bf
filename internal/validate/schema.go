package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callyard/callyard/pkg/schema"
)

// Limits of a schema. The cost of the compiler grows with the square of its size.
const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 128
	maxSchemaNodes = 10_000
)

// location is the base URI of relative references in a schema. References to anything outside the
// schema are rejected.
const location = "tool:///input"

// Schema is a compiled input schema of a tool. It is safe for concurrent use.
type Schema struct {
	full       *jsonschema.Schema // nil means any object
	plan       *plan              // nil means that only full decides
	ways       int                // number of paths through full; see affordable
	unenforced []string
}

// Compile compiles a tool's inputSchema. It supports every draft from 4 to 2020-12; without $schema
// it is 2020-12. An absent, empty or null schema accepts any object.
//
// Some invalid keywords count as absent; see [withoutMistakes].
//
// The error is a *[schema.Error] with the reason: the schema is invalid or too large, or refers to
// something outside itself, which is never fetched.
func Compile(raw json.RawMessage) (s *Schema, err error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return &Schema{plan: anyObject()}, nil
	}
	if len(raw) > maxSchemaBytes {
		return nil, unusable(fmt.Errorf("it has %d bytes, more than %d", len(raw), maxSchemaBytes))
	}
	if sc := (scanner{raw: raw, maxDepth: maxSchemaDepth}); sc.document() < 0 {
		return nil, unusable(fmt.Errorf("%s, at byte %d%s", sc.wrong, sc.at, sc.place()))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, unusable(err)
	}
	if nodes(doc) > maxSchemaNodes {
		return nil, unusable(fmt.Errorf("it has more than %d values", maxSchemaNodes))
	}
	// The compiler panics on some invalid schemas. A schema of a server must not end the process.
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, unusable(errors.New("the compiler gave up on it"))
		}
	}()
	doc = boundNumbers(withoutMistakes(doc))
	s = &Schema{unenforced: relaxed(doc)}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(engine)
	if err := c.AddResource(location, doc); err != nil {
		return nil, unusable(err)
	}
	if s.full, err = c.Compile(location); err != nil {
		return nil, unusable(err)
	}
	if s.plan = newPlan(s.full, 0); s.plan != nil {
		s.plan = s.plan.forObjects()
	}
	s.ways = pathCount(s.full)
	return s, nil
}

func unusable(err error) *schema.Error {
	return schema.Errorf(schema.KindServerFailed,
		"The input schema of the tool cannot be used: %w. The MCP server has to fix it.", err)
}

// noLoader rejects every reference outside the schema. A schema comes from a server, and fetching
// its references would let the server make this process send requests.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("it is outside the schema, and nothing is fetched")
}

func nodes(doc any) int {
	n := 1
	switch doc := doc.(type) {
	case []any:
		for _, item := range doc {
			n += nodes(item)
		}
	case map[string]any:
		for _, item := range doc {
			n += nodes(item)
		}
	}
	return n
}

// Unenforced returns JSON pointers to the keywords that are not checked because Go cannot run their
// patterns, or nil if all are checked. The MCP server still checks them.
func (s *Schema) Unenforced() []string { return slices.Clone(s.unenforced) }

// Validate returns the faults of args, ordered by place; nil means that they match. Missing
// arguments count as an empty object, as in MCP. A long list ends with a fault that counts the
// rest.
//
// Validate expects args that [Arguments] accepted: of duplicate keys it reads the last, and for
// invalid JSON it only reports that it is not an object.
func (s *Schema) Validate(args []byte) []schema.Fault {
	if len(args) == 0 {
		args = []byte("{}")
	}
	if s.plan != nil {
		sc := scanner{raw: args, maxDepth: defaultDepth}
		if end := s.plan.match(&sc, sc.space(0), 1); end >= 0 && sc.space(end) == len(args) {
			return nil
		}
	}
	return s.faults(args)
}

func (s *Schema) faults(args []byte) (faults []schema.Fault) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if _, ok := doc.(map[string]any); err != nil || !ok {
		return []schema.Fault{{Message: "expected an object"}}
	}
	if s.full == nil {
		return nil
	}
	doc = boundNumbers(doc)
	if !affordable(s.full, s.ways, doc, len(args)) {
		return []schema.Fault{{Message: "expected arguments that the tool's schema can be applied to within bounds; send smaller or flatter ones"}}
	}
	// A panic of the validator must not end the process.
	defer func() {
		if r := recover(); r != nil {
			faults = []schema.Fault{{Message: "expected arguments that the tool's schema can be applied to; the check gave up on these"}}
		}
	}()
	var failed *jsonschema.ValidationError
	if err := s.full.Validate(doc); errors.As(err, &failed) {
		return listFaults(failed, doc)
	}
	return nil
}
