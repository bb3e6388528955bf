// Package celcost counts the cost of evaluating a CEL expression over values whose types are not
// declared, such as the arguments of a call.
//
// CEL finds the cost of a function call by its overload, such as in_list. For a function with several
// overloads and an argument without a declared type there is none, and CEL counts 1: a search of a
// list of 30,000 items costs as much as an addition. This package counts such calls by the sizes
// of the arguments. In contrast to a limit of time, a limit of cost decides the same on a slow machine
// and on a fast one.
package celcost

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// perUnit is the number of bytes of a string, or items of a list, that are compared or copied for one
// unit of cost. CEL's own model has the same factor for strings.
const perUnit = 10

// Tracking returns the option of a CEL program that counts calls by the sizes of their arguments. Use
// it together with [cel.CostLimit]. It is safe for concurrent use.
func Tracking() cel.ProgramOption { return cel.CostTracking(estimator{}) }

type estimator struct{}

// CallCost returns the cost of a call, or nil for a call whose cost CEL knows.
func (estimator) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	var units int
	switch {
	case function == "size": // for a string it counts the characters; CEL's model has 1
		units = length(args[0])
	case overload != "":
		return nil
	case function == operators.In:
		units = items(args[1])
	case function == operators.Less, function == operators.LessEquals, function == operators.Greater, function == operators.GreaterEquals:
		units = min(length(args[0]), length(args[1]))
	case function == operators.Add || len(args) == 1: // a concatenation, or a conversion such as double(x)
		for _, a := range args {
			units += length(a)
		}
	default:
		return nil
	}
	cost := 1 + uint64(units/perUnit)
	return &cost
}

// length returns the number of bytes of a string or of bytes, and 0 for other values.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// items returns the number of items of a list, and 0 for other values.
func items(v ref.Val) int {
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 0
}
