package reward

import (
	"encoding/json"

	"github.com/callyard/callyard/internal/eval"
)

// arguments returns the mean over all calls of the share of passed checks: each required argument is
// present, and each given argument is valid. A call of an unknown tool, or with arguments that are
// not an object, counts 0. Without calls, it is 1 if no tool was expected, else 0.
func (s *Scorer) arguments(p *eval.Prepared, calls []Call, noTool bool) float64 {
	if len(calls) == 0 {
		return one(noTool)
	}
	sum := 0.0
	for i := range calls {
		if schema, known := p.SchemaOf(calls[i].Name); known {
			sum += s.valid(schema, calls[i].Arguments)
		}
	}
	return sum / float64(len(calls))
}

// valid returns the share of checks that the arguments of one call pass.
func (s *Scorer) valid(schema, arguments json.RawMessage) float64 {
	c, object := s.checker.Check(schema, arguments)
	switch {
	case !object:
		return 0
	case c.Required+c.Given == 0:
		return 1
	}
	return float64(c.Present+c.Valid) / float64(c.Required+c.Given)
}
