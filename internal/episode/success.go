package episode

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"github.com/callyard/callyard/pkg/risk/celcost"
)

const (
	maxCondition  = 4096
	conditionCost = 1_000_000 // in CEL's units
	// conditionLimit limits a condition in case the cost of a function is wrong. It is far above what
	// conditionCost allows, because the load of the machine must not change a reward.
	conditionLimit = 5 * time.Second
)

// condition is a compiled success condition. It is safe for concurrent use.
type condition struct{ program cel.Program }

// compile compiles a condition. The error is a sentence with the line and column of the fault.
func compile(source string) (c *condition, err error) {
	defer func() {
		if recover() != nil {
			c, err = nil, fmt.Errorf("the condition cannot be parsed; simplify it.")
		}
	}()
	if len(source) > maxCondition {
		return nil, fmt.Errorf("the condition has more than %d characters; shorten it.", maxCondition)
	}
	results := cel.ListType(cel.MapType(cel.StringType, cel.DynType))
	env, err := cel.NewEnv(
		cel.Variable("results", results), cel.Variable("answer", cel.DynType), cel.Variable("task", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("steps", cel.IntType), cel.Variable("state", cel.StringType), cel.Variable("expected_state", cel.StringType),
		cel.OptionalTypes(), ext.Strings(), cel.CrossTypeNumericComparisons(true),
	)
	if err != nil {
		return nil, fmt.Errorf("conditions cannot be compiled by this build: %w", err)
	}
	tree, issues := env.Compile(source)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("%s (line %d, column %d of the condition).", strings.TrimSuffix(first.Message, "."), first.Location.Line(), first.Location.Column()+1)
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the condition returns %s, but must return true or false.", cel.FormatCELType(out))
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize), celcost.Tracking(), cel.CostLimit(conditionCost), cel.InterruptCheckFrequency(32))
	if err != nil {
		return nil, fmt.Errorf("the condition cannot be used: %w", err)
	}
	return &condition{program}, nil
}

// facts holds the variables of a condition.
type facts struct {
	results              []map[string]any
	answer               any
	task                 map[string]any
	steps                int
	state, expectedState string
}

// holds evaluates the condition. It returns false for a condition that cannot be decided, for
// example because a member is missing.
func (c *condition) holds(f *facts) bool {
	ctx, cancel := context.WithTimeout(context.Background(), conditionLimit)
	defer cancel()
	answer := f.answer
	if answer == nil {
		answer = ""
	}
	out, _, err := c.program.ContextEval(ctx, map[string]any{
		"results": f.results, "answer": answer, "task": f.task, "steps": f.steps, "state": f.state, "expected_state": f.expectedState,
	})
	if err != nil {
		return false
	}
	yes, ok := out.Value().(bool)
	return ok && yes
}
