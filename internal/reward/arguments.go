package reward

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/validate"
)

// maxSchemas bounds the compiled schemas that a scorer keeps.
const maxSchemas = 1024

// schemas are compiled schemas by their digest.
type schemas struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*toolSchema
}

// toolSchema is the schema of a tool.
type toolSchema struct {
	checked  *validate.Schema // nil for one that cannot be compiled
	required []string
}

func (s *schemas) get(raw json.RawMessage) *toolSchema {
	key := sha256.Sum256(raw)
	s.mu.Lock()
	known := s.kept[key]
	s.mu.Unlock()
	if known != nil {
		return known
	}
	made := &toolSchema{}
	var shape struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(raw, &shape) == nil {
		made.required = shape.Required
	}
	if checked, err := validate.Compile(raw); err == nil {
		made.checked = checked
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxSchemas || s.kept == nil {
		s.kept = make(map[[sha256.Size]byte]*toolSchema)
	}
	s.kept[key] = made
	return made
}

// arguments is the mean over calls of the share of checks that hold: each required argument
// is given, and each given argument is valid. A call of an unknown tool, or with arguments
// that are no object, counts 0. Without calls it is 1 where no tool was expected, else 0.
func (s *Scorer) arguments(tools []eval.Tool, known *eval.Names, calls []Call, noTool bool) float64 {
	if len(calls) == 0 {
		return one(noTool)
	}
	sum := 0.0
	for i := range calls {
		name, ok := known.Known(calls[i].Name)
		for at := range tools {
			if ok && tools[at].Name == name {
				sum += s.valid(tools[at].Schema, calls[i].Arguments)
				break
			}
		}
	}
	return sum / float64(len(calls))
}

// valid is the share of checks that hold for the arguments of one call.
func (s *Scorer) valid(schema, arguments json.RawMessage) float64 {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil || given == nil {
		return 0
	}
	if len(schema) == 0 {
		return 1
	}
	tool := s.schemas.get(schema)
	checks, held := len(tool.required)+len(given), 0
	for _, name := range tool.required {
		if _, ok := given[name]; ok {
			held++
		}
	}
	held += len(given)
	if tool.checked != nil {
		held -= faulty(tool.checked, arguments, given)
	}
	if checks == 0 {
		return 1
	}
	return float64(held) / float64(checks)
}

// faulty is the number of given arguments that are not valid.
func faulty(schema *validate.Schema, arguments json.RawMessage, given map[string]json.RawMessage) int {
	wrong := make(map[string]bool)
	for _, f := range schema.Validate(arguments) {
		first, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		first = strings.NewReplacer("~1", "/", "~0", "~").Replace(first)
		if _, ok := given[first]; ok && f.Pointer != "" {
			wrong[first] = true
		}
	}
	return len(wrong)
}
