package calculator

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch/native"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func call1(t *testing.T, tool string, arguments any) (text string, structured map[string]any, err error) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range Tools() {
		if one.Name != tool {
			continue
		}
		r, err := one.Call(t.Context(), &native.Call{Arguments: raw})
		if err != nil {
			return "", nil, err
		}
		var body struct {
			Content           []struct{ Text string }
			StructuredContent map[string]any
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		return body.Content[0].Text, body.StructuredContent, nil
	}
	t.Fatalf("no tool %s", tool)
	return "", nil, nil
}

func TestEvaluateReturnsTheValueAsTextAndAsJSON(t *testing.T) {
	for expression, want := range map[string]struct {
		text string
		json any
	}{
		"(2 + 3) * 2 ** 3":   {"40", 40.0},
		"7 / 2":              {"3.5", 3.5},
		"4 / 2":              {"2.0", 2.0},
		"1 < 2":              {"True", true},
		"2 ** 64":            {"18446744073709551616", "18446744073709551616"},
		"2 ** 53":            {"9007199254740992", 9007199254740992.0},
		"inf":                {"inf", "inf"},
		"-inf":               {"-inf", "-inf"},
		"1e22":               {"1e+22", 1e22},
		"mode([1, 2, 2, 1])": {"[1, 2]", []any{1.0, 2.0}},
	} {
		text, structured, err := call1(t, "evaluate", map[string]any{"expression": expression})
		if err != nil || text != want.text || fmt.Sprint(structured["result"]) != fmt.Sprint(want.json) {
			t.Errorf("%s: %q, %v, %v", expression, text, structured, err)
		}
	}
}

func TestErrorsNameTheFault(t *testing.T) {
	for expression, want := range map[string]string{
		"2 ^ 3":                       "write ** for a power",
		"2pi":                         "write * between",
		"(1).real":                    "attributes are not allowed",
		"x + 1":                       `"x" is not a function or constant. Call list_allowed_fns`,
		"__import__('os')":            "is not a function or constant",
		"().__class__":                "attributes are not allowed",
		"sqrt":                        "sqrt is a function; write its arguments in parentheses, as in sqrt(x)",
		"max(1, 2)":                   "max is given 2 arguments. Its arguments are max(numbers)",
		"max(1)":                      "a list of numbers is required",
		"sqrt(-1)":                    "no real value",
		"1 / 0":                       "division by zero",
		"(-8) ** 0.5":                 "no real value",
		"1 +":                         "ends where a number",
		"":                            "the expression is empty",
		"[1, 2":                       `where "]" or an operator is expected`,
		"log(100, base=2, base=3)":    "twice",
		"log(100, foo=2)":             "has no argument of a name that is given",
		"0123":                        "leading zeros",
		"1 + \"abc":                   "string does not end",
		"lambda: 1":                   "is not part of an arithmetic expression",
		"[x for x in [1]]":            "is not a function",
		"factorial(10001)":            "above 10000",
		"10 ** 100000":                "more than 120000 bits",
		"dist([1], [2], 'chebyshev')": "metric must be",
	} {
		if _, err := evaluate(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}

// cpuTime returns the CPU time of this process.
func cpuTime(t *testing.T) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// leastCPU returns the least CPU time of f in some runs.
func leastCPU(t *testing.T, runs int, f func()) time.Duration {
	least := time.Hour
	for range runs {
		start := cpuTime(t)
		f()
		least = min(least, cpuTime(t)-start)
	}
	return least
}

// wholeBudget takes as much work as an evaluation may take, in multiplications.
func wholeBudget() {
	n := new(big.Int).Lsh(big.NewInt(1), 64*50-1)
	product := new(big.Int)
	for range maxWork / (50 * 50) {
		product.Mul(n, n)
	}
}

// The multiplications of the whole budget take 4 to 15 ms. Other work may take some times as long.
func TestHostileExpressionsEndWithinTheirBudgetAnd64MiB(t *testing.T) {
	long := strings.Repeat("9", 9000)
	for name, expression := range map[string]string{
		"tower of powers":      "9**9**9",
		"larger tower":         "9**9**9**9**9**9",
		"factorial":            "factorial(10**9)",
		"factorial of itself":  "factorial(factorial(factorial(20)))",
		"parentheses":          strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000),
		"fewer parentheses":    strings.Repeat("(", 4_000) + "1" + strings.Repeat(")", 4_000),
		"brackets":             strings.Repeat("[", 4_000),
		"signs":                strings.Repeat("-", 9_000) + "1",
		"nots":                 strings.Repeat("not ", 9_000) + "1",
		"a million numbers":    strings.Repeat("1+", 1_000_000) + "1",
		"a list of a million":  "sum([" + strings.Repeat("1,", 1_000_000) + "])",
		"a long number":        strings.Repeat("9", 1_000_000),
		"many factorials":      strings.Repeat("factorial(10000)-", 1_000) + "1",
		"many products":        strings.Repeat(long+"*1%7+", 10) + "1",
		"growing product":      "prod([" + strings.Repeat("9**3000,", 1_500) + "])",
		"many large powers":    strings.Repeat("2**119999*1+", 1_000) + "1",
		"many large divisions": strings.Repeat("2**119999//3**30000+", 700) + "1",
		"median of large":      "median([" + strings.Repeat("2**119999,", 1_500) + "])",
		"mode of large":        "mode([" + strings.Repeat("3**60000,", 1_500) + "])",
		"gcds":                 strings.Repeat("gcd(3**70000,7**40000)+", 500) + "1",
		"combinations":         strings.Repeat("comb(10**18,10**4)+comb(10**5,5*10**4)+comb(10**4,5000)+", 100) + "1",
		"permutations":         strings.Repeat("perm(10**9,4000)-", 400) + "1",
		"rounding":             strings.Repeat("round(7**40000,-10000)+", 400) + "1",
		"roots":                strings.Repeat("isqrt(7**40000)+", 400) + "1",
		"a shift":              "ldexp(1, 10**100)",
		"a long chain":         strings.Repeat("1<", 4_000) + "1",
		"exact sums":           strings.Repeat("fsum(["+strings.Repeat("1e300,1e-300,", 100)+"])+", 40) + "1",
		"logarithms":           strings.Repeat("log(7**40000)+", 700) + "1",
		"quotients":            strings.Repeat("7**40000/3**40000+", 700) + "1",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := evaluate(expression)
			runtime.ReadMemStats(&after)
			most := after.TotalAlloc - before.TotalAlloc
			if strings.HasSuffix(name, "s of a million") && err == nil {
				t.Error("no error")
			}
			took, budget := leastCPU(t, 3, func() { _, _ = evaluate(expression) }), leastCPU(t, 3, wholeBudget)
			t.Logf("%.2f of %v, %d KiB", float64(took)/float64(budget), budget, most>>10)
			if took > 6*budget {
				t.Errorf("it takes %v", took)
			}
			if most > 64<<20 { // total allocations, an upper bound of the memory held at once
				t.Errorf("it allocates %d MiB", most>>20)
			}
		})
	}
}

func TestFactorialOfTenThousandIsExact(t *testing.T) {
	v, err := evaluate("factorial(10000) // factorial(9999)")
	if err != nil || v.(*big.Int).Int64() != 10000 {
		t.Error(v, err)
	}
}

func TestHelpDescribesEveryName(t *testing.T) {
	text, _, err := call1(t, "list_allowed_fns", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) < 70 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	all, _, err := call1(t, "help", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		one, _, err := call1(t, "help", map[string]any{"fn_name": name})
		if err != nil || !strings.Contains(one, name) || !strings.Contains(all, "\n  "+name) {
			t.Errorf("%s: %q, %v", name, one, err)
		}
	}
	text, _, err = call1(t, "list_allowed_fns", map[string]any{"with_help": true})
	if err != nil || !strings.Contains(text, "log(x, base=10)") {
		t.Error(text, err)
	}
	if _, _, err := call1(t, "help", map[string]any{"fn_name": "eval"}); err == nil {
		t.Error("eval is described")
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"1 + 2 * 3", "sum([1, 2.5])", "-2 ** -2 // 3 % 4", "log(x=8, base=2)", "1 < 2 and not 3", "'a' \"b\"", "0x1f_f 1e5 .5", "((", "round(1.5, -3)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		start := time.Now()
		v, err := evaluate(expression)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it takes %v", took)
		}
		if err != nil {
			return
		}
		if _, err := json.Marshal(forJSON(v)); err != nil {
			t.Error(err)
		}
		if again, err := evaluate("(" + expression + "\n)"); err != nil && !strings.Contains(err.Error(), "deep") && !strings.Contains(err.Error(), "more than") || err == nil && format(again) != format(v) {
			t.Errorf("in parentheses: %v, %v; alone: %v", again, err, v)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	tool := Tools()[0]
	for b.Loop() {
		if _, err := tool.Call(context.Background(), &native.Call{Arguments: []byte(`{"expression":"(2 + 3) * 2 ** 3 + sqrt(16)"}`)}); err != nil {
			b.Fatal(err)
		}
	}
}
