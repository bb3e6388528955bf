package celcost_test

import (
	"strings"
	"testing"

	"cel.dev/cel-go/cel"

	"github.com/callyard/callyard/pkg/risk/celcost"
)

// Each expression over data without declared types costs about what the same work costs with
// declared types.
func TestCostFollowsTheSizesOfTheArguments(t *testing.T) {
	const size = 100_000
	data := map[string]any{"text": strings.Repeat("a", size), "list": make([]any, size)}
	for i := range size {
		data["list"].([]any)[i] = int64(i)
	}
	env, err := cel.NewEnv(cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	for expression, atLeast := range map[string]uint64{
		`-1 in args.list`:             size / 10,
		`size(args.text) == 1`:        size / 10,
		`args.text.size() == 1`:       size / 10,
		`args.text + args.text == ""`: 2 * size / 10,
		`args.text < args.text`:       size / 10,
		`bytes(args.text) == b"a"`:    size / 10,
		`args.text.contains("b")`:     size / 100, // by the model of CEL
		`args.list.size() == 1`:       1,
		`args.text < "b"`:             1,
		`args.list[1] + 1 == 1`:       1,
	} {
		t.Run(expression, func(t *testing.T) {
			tree, issues := env.Compile(expression)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			program, err := env.Program(tree, celcost.Tracking(), cel.CostLimit(10*size))
			if err != nil {
				t.Fatal(err)
			}
			_, details, err := program.Eval(map[string]any{"args": data})
			if err != nil {
				t.Fatal(err)
			}
			if cost := *details.ActualCost(); cost < atLeast || cost > atLeast+20 {
				t.Errorf("cost %d, want at least %d and at most %d", cost, atLeast, atLeast+20)
			}
		})
	}
}
