package calculator

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/callyard/callyard/internal/launch/native"
)

type (
	evaluateArguments struct {
		Expression string `json:"expression" jsonschema:"The expression, such as (2 + 3) * 2 ** 3 or sqrt(16) + max([1, 2]). Write ** for a power and * for every product."`
	}
	listArguments struct {
		WithHelp bool `json:"with_help,omitempty" jsonschema:"If true, the description of each function is included."`
	}
	helpArguments struct {
		Name string `json:"fn_name,omitempty" jsonschema:"Name of a function or constant. If left out, all are described."`
	}
)

// Tools returns the tools evaluate, list_allowed_fns and help. They keep no state.
func Tools() []native.Tool {
	return []native.Tool{
		native.Must(native.Typed("evaluate", `Evaluates an arithmetic expression and returns its exact or floating-point value.
Operators: + - * / // (division rounded down) % ** (power), comparisons, and, or, not. Functions: sqrt, log, sin, factorial, comb, sum, average, median, round and others; list_allowed_fns names all. Constants: pi, e, tau, inf, nan. Lists are written [1, 2, 3]. Angles are radians. log has base 10 unless another is given; ln is the natural logarithm.
Integers are exact up to 120,000 bits. An integer above 2^53 is returned as a string of digits. An expression has at most 10,000 numbers, names and operators, nested 64 deep.`,
			evaluateTool, native.Title("Evaluate an expression"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
		native.Must(native.Typed("list_allowed_fns", "Lists the functions and constants that evaluate knows, as JSON: an array of names, or with with_help an object from names to descriptions.",
			listTool, native.Title("List functions"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
		native.Must(native.Typed("help", "Describes one function or constant of evaluate, or all of them.",
			helpTool, native.Title("Describe functions"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
	}
}

func evaluateTool(_ context.Context, _ *native.Call, in evaluateArguments) (native.Result, error) {
	v, err := evaluate(in.Expression)
	if err != nil {
		return native.Result{}, fmt.Errorf("invalid expression: %w", err)
	}
	object, err := json.Marshal(struct {
		Result any `json:"result"`
	}{forJSON(v)})
	if err != nil {
		return native.Result{}, err
	}
	text, err := json.Marshal(format(v))
	if err != nil {
		return native.Result{}, err
	}
	body := `{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":` + string(object) + `}`
	return native.Result{Body: []byte(body)}, nil
}

// forJSON returns a value that every JSON reader interprets correctly: infinities, nan and
// integers that a float cannot hold exactly become strings.
func forJSON(v value) any {
	const exact = 1 << 53
	switch v := v.(type) {
	case *big.Int:
		if v.CmpAbs(big.NewInt(exact)) <= 0 {
			return v.Int64()
		}
		return v.String()
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return formatFloat(v)
		}
		return json.RawMessage(formatFloat(v))
	case []value:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = forJSON(one)
		}
		return out
	}
	return v
}

func listTool(_ context.Context, _ *native.Call, in listArguments) (string, error) {
	if !in.WithHelp {
		b, err := json.Marshal(Names())
		return string(b), err
	}
	all := map[string]string{}
	for _, name := range Names() {
		all[name] = help(name)
	}
	b, err := json.Marshal(all)
	return string(b), err
}

func helpTool(_ context.Context, _ *native.Call, in helpArguments) (string, error) {
	if in.Name == "" {
		return overview(), nil
	}
	if text := help(strings.TrimSpace(in.Name)); text != "" {
		return text, nil
	}
	return "", fmt.Errorf("%q is not a function or constant. Call list_allowed_fns for the names", brief(in.Name))
}
