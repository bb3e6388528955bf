package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxFaults = 64  // maximum number of listed faults
	maxWords  = 256 // maximum size of a message taken from the schema, in bytes
)

// listFaults turns the validator's tree into a list ordered by place. The sentences of the tree
// contain values, so every sentence is created here, only from the schema.
func listFaults(failed *jsonschema.ValidationError, doc any) []schema.Fault {
	l := faultList{doc: doc}
	l.add(failed)
	slices.SortFunc(l.faults, func(a, b schema.Fault) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
	})
	l.faults = slices.Compact(l.faults)
	if more := len(l.faults) - maxFaults; more > 0 {
		l.faults = append(l.faults[:maxFaults:maxFaults], schema.Fault{Message: "and " + strconv.Itoa(more) + " more"})
	}
	return l.faults
}

type faultList struct {
	doc    any
	faults []schema.Fault
}

func (l *faultList) put(place []string, message string) {
	l.faults = append(l.faults, schema.Fault{Pointer: pointer(place), Message: message})
}

func (l *faultList) add(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		if len(e.Causes) == 0 {
			l.put(e.InstanceLocation, "expected a value that matches the schema")
		}
		for _, cause := range e.Causes {
			l.add(cause)
		}
	case *kind.AnyOf:
		l.addChoice(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			l.put(e.InstanceLocation, "expected to match exactly one of the alternatives, but matches more")
			return
		}
		l.addChoice(e)
	case *kind.Required:
		l.addMissing(e, k.Missing, "")
	case *kind.Dependency:
		l.addMissing(e, k.Missing, k.Prop)
	case *kind.DependentRequired:
		l.addMissing(e, k.Missing, k.Prop)
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			l.put(append(slices.Clone(e.InstanceLocation), name), "unexpected property")
		}
	case *kind.PropertyNames:
		l.addName(e, k.Property)
	default:
		l.put(e.InstanceLocation, expected(e.ErrorKind))
	}
}

func (l *faultList) addMissing(e *jsonschema.ValidationError, missing []string, because string) {
	for _, name := range missing {
		message := "expected property " + quoted(name)
		if because != "" {
			message += ", because there is " + quoted(because)
		}
		l.put(e.InstanceLocation, message)
	}
}

// addName adds a fault of a property name. The validator reuses the memory of the place, so that
// only its depth is reliable: the fault gets a place if exactly one object at that depth has the
// property.
func (l *faultList) addName(e *jsonschema.ValidationError, name string) {
	const message = "expected another property name"
	if len(l.faults) < 4*maxFaults { // each search walks all arguments
		if places := holders(l.doc, name, len(e.InstanceLocation)); len(places) == 1 {
			l.put(append(places[0], name), message)
			return
		}
	}
	l.put(nil, message+" in place of "+quoted(name))
}

// holders returns the places of the first two objects at the given depth of doc that have the property.
func holders(doc any, name string, depth int) (places [][]string) {
	var walk func(v any, tokens []string)
	walk = func(v any, tokens []string) {
		if len(places) == 2 {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			if len(tokens) == depth {
				if _, there := v[name]; there {
					places = append(places, slices.Clone(tokens))
				}
				return
			}
			for token, sub := range v {
				walk(sub, append(tokens, token))
			}
		case []any:
			if len(tokens) == depth {
				return
			}
			for i, sub := range v {
				walk(sub, append(tokens, strconv.Itoa(i)))
			}
		}
	}
	walk(doc, nil)
	return places
}

// addChoice reports that no alternative matches. If the alternatives differ only in types, the
// fault names the types. If the type matches only one alternative, its faults are listed, because
// they are the ones to fix.
func (l *faultList) addChoice(e *jsonschema.ValidationError) {
	var (
		types []string
		other []*jsonschema.ValidationError
	)
	for _, cause := range e.Causes {
		if want, ok := wrongType(cause, len(e.InstanceLocation)); ok {
			types = append(types, want...)
		} else {
			other = append(other, cause)
		}
	}
	switch len(other) {
	case 0:
		slices.Sort(types)
		l.put(e.InstanceLocation, expectedType(slices.Compact(types)))
	case 1:
		l.add(other[0])
	default:
		l.put(e.InstanceLocation, fmt.Sprintf("expected to match one of %d alternatives", len(e.Causes)))
	}
}

// wrongType returns the types that e requires, if its only fault is the type of the value at that
// depth.
func wrongType(e *jsonschema.ValidationError, depth int) ([]string, bool) {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return k.Want, len(e.InstanceLocation) == depth
	case *kind.Reference:
		if len(e.Causes) == 1 {
			return wrongType(e.Causes[0], depth)
		}
	}
	return nil, false
}

// expected returns the requirement of one keyword.
func expected(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *kind.Type:
		return expectedType(k.Want)
	case *kind.Enum:
		return "expected one of " + listed(k.Want)
	case *kind.Const:
		return "expected " + literal(k.Want)
	case *kind.Format:
		return "expected the format " + quoted(k.Want)
	case *kind.Pattern:
		return "expected text that matches the pattern " + truncate.Text(k.Want, maxWords)
	case *kind.MinLength:
		return "expected at least " + count(k.Want, "character", "characters")
	case *kind.MaxLength:
		return "expected at most " + count(k.Want, "character", "characters")
	case *kind.MinItems:
		return "expected at least " + count(k.Want, "item", "items")
	case *kind.MaxItems:
		return "expected at most " + count(k.Want, "item", "items")
	case *kind.AdditionalItems:
		return "expected fewer items, by " + strconv.Itoa(k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("expected unique items, but those at %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "expected an item that the schema requires"
	case *kind.MinContains:
		return "expected at least " + count(k.Want, "item", "items") + " that the schema requires"
	case *kind.MaxContains:
		return "expected at most " + count(k.Want, "item", "items") + " that the schema requires"
	case *kind.MinProperties:
		return "expected at least " + count(k.Want, "property", "properties")
	case *kind.MaxProperties:
		return "expected at most " + count(k.Want, "property", "properties")
	case *kind.Minimum:
		return "expected a number of at least " + number(k.Want)
	case *kind.Maximum:
		return "expected a number of at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "expected a number greater than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "expected a number less than " + number(k.Want)
	case *kind.MultipleOf:
		return "expected a multiple of " + number(k.Want)
	case *kind.Not:
		return "expected a value that the schema allows"
	case *kind.FalseSchema:
		return "expected no value here"
	case *kind.RefCycle:
		return "the schema refers to itself endlessly; the MCP server has to fix it"
	case *kind.ContentEncoding:
		return "expected the encoding " + quoted(k.Want)
	case *kind.ContentMediaType:
		return "expected the media type " + quoted(k.Want)
	default:
		return "expected a value that matches the schema"
	}
}

func expectedType(want []string) string {
	named := make([]string, len(want))
	for i, name := range want {
		switch name {
		case "null", "":
			named[i] = name
		case "object", "array", "integer":
			named[i] = "an " + name
		default:
			named[i] = "a " + name
		}
	}
	return "expected " + strings.Join(named, " or ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func quoted(text string) string { return strconv.Quote(truncate.Text(text, maxToken)) }

// literal formats a value of the schema as JSON.
func literal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "the value in the schema"
	}
	return truncate.Text(string(text), maxWords)
}

func listed(values []any) string {
	var b strings.Builder
	for i, v := range values {
		if b.Len() > maxWords {
			fmt.Fprintf(&b, " and %d more", len(values)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(literal(v))
	}
	return b.String()
}

func number(n *big.Rat) string {
	if n.IsInt() {
		return truncate.Text(n.Num().String(), maxToken)
	}
	f, _ := n.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
