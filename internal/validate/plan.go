package validate

import (
	"math"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// plan is the subset of a schema that most tools use, in a form that is checked on raw bytes:
// types, properties, required, additionalProperties, items, enums of strings, lengths, counts and
// integer bounds. The result of a plan is a match or a request for the full validator, never a
// mismatch, so that all faults come from the validator.
type plan struct {
	free    bool // no requirements: any JSON value matches
	types   typeSet
	choices map[string]struct{} // enum of strings; nil means none

	props    []prop
	required uint64 // bit i means that props[i] is required
	closed   bool   // no other properties
	extra    *plan  // for other properties; nil means any value

	items *plan // for array items; nil means any value

	minLen, maxLen     int // of strings, in characters; maxLen -1 means no limit
	minCount, maxCount int // of items or properties; maxCount -1 means no limit

	bounded   bool // low and high apply
	low, high int64
}

type prop struct {
	name string
	plan *plan
}

type typeSet uint8

const (
	isNull typeSet = 1 << iota
	isBoolean
	isInteger
	isNumber
	isString
	isArray
	isObject
	isAny = isNull | isBoolean | isInteger | isNumber | isString | isArray | isObject
)

// maxProps is the number of bits in one word.
const maxProps = 64

func anything() *plan  { return &plan{free: true, types: isAny, maxLen: -1, maxCount: -1} }
func anyObject() *plan { return &plan{types: isObject, maxLen: -1, maxCount: -1} }

// newPlan returns the plan of a compiled schema, or nil if a plan cannot express the schema. It
// reads the compiled keywords, so a keyword that has no effect in the schema's draft has no effect
// here either.
func newPlan(s *jsonschema.Schema, depth int) *plan {
	if s == nil || s.Bool != nil && *s.Bool {
		return anything()
	}
	if s.Bool != nil || depth > 16 || needsValidator(s) {
		return nil
	}
	p := &plan{types: isAny, maxLen: -1, maxCount: -1}
	if s.Types != nil && !s.Types.IsEmpty() {
		p.types = typesOf(s.Types)
	}
	if !p.addChoices(s) || !p.addBounds(s) || !p.addProperties(s, depth) || !p.addItems(s, depth) {
		return nil
	}
	p.free = p.asksNothing()
	return p
}

func (p *plan) asksNothing() bool {
	return p.types == isAny && p.choices == nil && len(p.props) == 0 && p.required == 0 &&
		!p.closed && (p.extra == nil || p.extra.free) && (p.items == nil || p.items.free) &&
		p.minLen <= 0 && p.maxLen < 0 && p.minCount <= 0 && p.maxCount < 0 && !p.bounded
}

// needsValidator reports whether a schema uses a keyword that plans leave to the validator.
func needsValidator(s *jsonschema.Schema) bool {
	return s.Ref != nil || s.RecursiveRef != nil || s.DynamicRef != nil || s.Const != nil ||
		s.Not != nil || s.AllOf != nil || s.AnyOf != nil || s.OneOf != nil ||
		s.If != nil || s.Then != nil || s.Else != nil || s.Format != nil ||
		s.PropertyNames != nil || s.PatternProperties != nil || s.Dependencies != nil ||
		s.DependentRequired != nil || s.DependentSchemas != nil || s.UnevaluatedProperties != nil ||
		s.UniqueItems || s.Contains != nil || s.MinContains != nil || s.MaxContains != nil ||
		s.AdditionalItems != nil || s.PrefixItems != nil || s.UnevaluatedItems != nil ||
		s.Pattern != nil || s.ContentEncoding != nil || s.ContentMediaType != nil || s.ContentSchema != nil ||
		s.ExclusiveMaximum != nil || s.ExclusiveMinimum != nil || s.MultipleOf != nil || s.Extensions != nil
}

func typesOf(types *jsonschema.Types) typeSet {
	var set typeSet
	for _, name := range types.ToStrings() {
		switch name {
		case "null":
			set |= isNull
		case "boolean":
			set |= isBoolean
		case "integer":
			set |= isInteger
		case "number":
			set |= isNumber | isInteger
		case "string":
			set |= isString
		case "array":
			set |= isArray
		case "object":
			set |= isObject
		}
	}
	return set
}

// addChoices adds an enum of strings. Values of another type cannot match.
func (p *plan) addChoices(s *jsonschema.Schema) bool {
	if s.Enum == nil {
		return true
	}
	p.choices = make(map[string]struct{}, len(s.Enum.Values))
	for _, v := range s.Enum.Values {
		text, ok := v.(string)
		if !ok {
			return false
		}
		p.choices[text] = struct{}{}
	}
	p.types &= isString
	return true
}

func (p *plan) addBounds(s *jsonschema.Schema) bool {
	set := func(to *int, from *int) {
		if from != nil {
			*to = *from
		}
	}
	if s.MinItems != nil && s.MinProperties != nil || s.MaxItems != nil && s.MaxProperties != nil {
		return false
	}
	set(&p.minLen, s.MinLength)
	set(&p.maxLen, s.MaxLength)
	if s.MinItems != nil || s.MaxItems != nil {
		// Arrays and objects share one pair of counts, so only one of them may use it.
		if p.types&isObject != 0 {
			return false
		}
		set(&p.minCount, s.MinItems)
		set(&p.maxCount, s.MaxItems)
	}
	if s.MinProperties != nil || s.MaxProperties != nil {
		if p.types&isArray != 0 {
			return false
		}
		set(&p.minCount, s.MinProperties)
		set(&p.maxCount, s.MaxProperties)
	}
	if s.Minimum == nil && s.Maximum == nil {
		return true
	}
	p.bounded, p.low, p.high = true, math.MinInt64, math.MaxInt64
	return toInt64(&p.low, s.Minimum) && toInt64(&p.high, s.Maximum)
}

func toInt64(to *int64, from *big.Rat) bool {
	if from == nil {
		return true
	}
	if !from.IsInt() || !from.Num().IsInt64() {
		return false
	}
	*to = from.Num().Int64()
	return true
}

func (p *plan) addProperties(s *jsonschema.Schema, depth int) bool {
	switch extra := s.AdditionalProperties.(type) {
	case nil:
	case bool:
		p.closed = !extra
	case *jsonschema.Schema:
		if p.extra = newPlan(extra, depth+1); p.extra == nil {
			return false
		}
	}
	if len(s.Properties) > maxProps {
		return false
	}
	for name, sub := range s.Properties {
		q := newPlan(sub, depth+1)
		if q == nil {
			return false
		}
		p.props = append(p.props, prop{name: name, plan: q})
	}
	for _, name := range s.Required {
		at := p.findKey([]byte(name))
		if at < 0 {
			if p.closed || len(p.props) == maxProps {
				return false
			}
			q := p.extra
			if q == nil {
				q = anything()
			}
			at = len(p.props)
			p.props = append(p.props, prop{name: name, plan: q})
		}
		p.required |= 1 << at
	}
	return true
}

func (p *plan) addItems(s *jsonschema.Schema, depth int) bool {
	items := s.Items2020
	switch old := s.Items.(type) {
	case nil:
	case *jsonschema.Schema:
		items = old
	default:
		return false
	}
	if items == nil {
		return true
	}
	p.items = newPlan(items, depth+1)
	return p.items != nil
}

// forObjects restricts the plan of a tool to objects, because arguments always are.
func (p *plan) forObjects() *plan {
	q := *p
	q.free = false
	if q.types &= isObject; q.types == 0 {
		return nil
	}
	return &q
}
