package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// evalTasks writes a data set of MCPToolBench++ with n labelled calls of a tool.
func evalTasks(t *testing.T, path string, n int, tool string, arguments func(i int) map[string]any) {
	t.Helper()
	tasks := make([]string, n)
	for i := range tasks {
		task, err := json.Marshal(map[string]any{
			"uuid": fmt.Sprint("t", i), "category": "books", "query": "q",
			"function_call_label": []any{map[string]any{"name": tool, "mcp_server": "library", "input": arguments(i)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		tasks[i] = string(task)
	}
	write(t, path, "["+strings.Join(tasks, ",\n")+"]")
}

// TestAnEvaluationRunsCallsNearlyAsFastAsABatch compares `callyard eval run` with `callyard
// batch` for the same calls, in turn, three times each. A further run of the same evaluation needs
// no Callyard. If CALLYARD_EVAL_EXECUTIONS is set to a number of calls such as 100000, on an
// otherwise idle machine, the median rate must be at least 0.8 of that of the batch. Otherwise the
// rates are only shown.
func TestAnEvaluationRunsCallsNearlyAsFastAsABatch(t *testing.T) {
	n, measured := 500, false
	if text := os.Getenv("CALLYARD_EVAL_EXECUTIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("CALLYARD_EVAL_EXECUTIONS is %q, and no number of calls", text)
		}
		measured = true
	}
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	evalTasks(t, filepath.Join(dir, "data.json"), n, "echo", func(i int) map[string]any {
		return map[string]any{"text": fmt.Sprint("call ", i)}
	})
	timed := func(args ...string) time.Duration {
		began := time.Now()
		p := start(t, program{name: "callyard", path: filepath.Join(bin(t), "callyard"), dir: dir, env: []string{"CALLYARD_URL=" + d.url}, args: args})
		if code := p.wait(t, 5*time.Minute); code != 0 {
			t.Fatalf("%v ends with %d: %s", args, code, p.out.String())
		}
		return time.Since(began)
	}
	eval := func(run string) time.Duration {
		return timed("eval", "run", run, "--data", "mcptoolbench:data.json", "--server", "library=books")
	}
	eval("warm")
	var ratios []float64
	for i := range 3 {
		ours := eval(fmt.Sprint("run", i))
		plain := timed("batch", "warm/labels/calls.jsonl", "--out", fmt.Sprint("batch", i))
		ratios = append(ratios, plain.Seconds()/ours.Seconds())
		t.Logf("%d calls: evaluation %v (%.0f/s), batch %v (%.0f/s), ratio %.2f", n, ours, float64(n)/ours.Seconds(), plain, float64(n)/plain.Seconds(), ratios[i])
	}
	slices.Sort(ratios)
	if measured && ratios[1] < 0.8 {
		t.Errorf("the median rate is %.2f of that of a batch, want at least 0.8", ratios[1])
	}
	d.stop(t)
	t.Logf("another run, without Callyard: %v", eval("run0"))
}
