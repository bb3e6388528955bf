package validate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// bounded is far over what the slowest of these checks takes, with -race and on
// a busy machine, and far under what they would take unbounded.
const bounded = 30 * time.Second

func inTime(t *testing.T, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	took := time.Since(start)
	t.Logf("%s took %v", what, took)
	if took > bounded {
		t.Errorf("%s took %v", what, took)
	}
}

func TestHostileSchemaIsCheckedInBoundedTime(t *testing.T) {
	doubling := func(wrap string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"d%d":`+wrap+`,`, i, i+1, i+1)
		}
		b.WriteString(`"d60":{"type":"null"}}}`)
		return b.String()
	}
	nested := strings.Repeat(`{"x":`, 60) + `1` + strings.Repeat(`}`, 60)
	items := `{"n":[` + strings.TrimSuffix(strings.Repeat(`1,`, 300_000), ",") + `]}`
	var manyAlternatives strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&manyAlternatives, `{"const":%d.5},`, i)
	}
	for _, c := range []struct{ name, schema, args string }{
		{"doubling in place", doubling(`{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`), `{}`},
		{"doubling on the way down", doubling(`{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/d%d"}}},{"properties":{"x":{"$ref":"#/$defs/d%d"}}}]}`), nested},
		{"doubling by recursion", `{"anyOf":[{"required":["y"],"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}],"minProperties":1}`, nested},
		{"many alternatives for many items", `{"properties":{"n":{"items":{"anyOf":[` + strings.TrimSuffix(manyAlternatives.String(), ",") + `]}}}}`, items},
		{"a long enum for many items", `{"properties":{"n":{"items":{"enum":[` + strings.TrimSuffix(strings.Repeat(`0.5,`, 9000), ",") + `]}}}}`, items},
	} {
		s := compile(t, c.schema)
		inTime(t, c.name, func() {
			faults := s.Validate([]byte(c.args))
			if len(faults) != 1 || !strings.Contains(faults[0].Message, "within bounds") {
				t.Errorf("%s: %v", c.name, faults)
			}
		})
	}
}

func TestARecursiveSchemaInOrdinaryUseIsChecked(t *testing.T) {
	s := compile(t, `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","required":["v"],"properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`)
	var tree func(depth int) string
	tree = func(depth int) string {
		if depth == 0 {
			return `{"v":1}`
		}
		kid := tree(depth - 1)
		return `{"v":1,"kids":[` + kid + `,` + kid + `]}`
	}
	good := tree(8)
	if faults := s.Validate([]byte(good)); faults != nil {
		t.Errorf("refused: %v", faults)
	}
	if faults := s.Validate([]byte(strings.Replace(good, `{"v":1}`, `{"v":"x"}`, 1))); len(faults) != 1 || faults[0].Message != "expected an integer" {
		t.Errorf("got %v", faults)
	}
}

func TestInfinitelyRecursiveSchemaIsAFault(t *testing.T) {
	s := compile(t, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`)
	if faults := s.Validate([]byte(`{}`)); len(faults) != 1 {
		t.Errorf("got %v", faults)
	}
}

func TestHugeNumbersAreCheckedSafely(t *testing.T) {
	const raw = `{"properties":{"low":{"minimum":10},"high":{"maximum":10},"whole":{"type":"integer"},"few":{"enum":[1,2]},"set":{"uniqueItems":true},"any":{}}}`
	s := compile(t, raw)
	digits := strings.Repeat("9", 100_000)
	for _, c := range []struct {
		args string
		good bool
	}{
		{`{"low":1e999999999}`, true},
		{`{"low":-1e999999999}`, false},
		{`{"low":1e-99999999999999999999999}`, false},
		{`{"high":1e99999999999999999999999}`, false},
		{`{"high":-1e99999999999999999999999}`, true},
		{`{"high":0e99999999999999999999999}`, true},
		{`{"high":0.` + digits + `}`, true},
		{`{"high":` + digits + `e-100000}`, true},
		{`{"high":` + digits + `}`, false},
		{`{"low":0.` + strings.Repeat("0", 1000) + `1e1003}`, true},
		{`{"low":0.` + strings.Repeat("0", 1000) + `1e1001}`, false},
		{`{"whole":1e999999999}`, true},
		{`{"whole":1e-999999999}`, false},
		{`{"whole":` + digits + `}`, true},
		{`{"few":1e999999999}`, false},
		{`{"few":0.1e1}`, true},
		{`{"any":[1e999999999,` + digits + `]}`, true},
	} {
		if faults := s.Validate([]byte(c.args)); (faults == nil) != c.good {
			t.Errorf("%.60s: %v", c.args, faults)
		}
	}
	many := `{"set":[` + strings.TrimSuffix(strings.Repeat(`1e999999,`, 50_000), ",") + `]}`
	inTime(t, "50,000 huge numbers", func() { s.Validate([]byte(many)) })
	distinct := make([]string, 20_000)
	for i := range distinct {
		distinct[i] = fmt.Sprintf("%d.%de-350", i, i)
	}
	inTime(t, "20,000 small fractions", func() {
		if faults := s.Validate([]byte(`{"set":[` + strings.Join(distinct, ",") + `]}`)); faults != nil {
			t.Error(faults)
		}
	})
}

func TestALargeSchemaCompilesInTime(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"properties":{"a":{}`)
	for i := range maxSchemaNodes/2 - 2 {
		fmt.Fprintf(&b, `,"p%d":{"type":"null"}`, i)
	}
	b.WriteString(`}}`)
	inTime(t, "a schema of many properties", func() { compile(t, b.String()) })
}

func TestAnEnormousPatternIsNotRun(t *testing.T) {
	s := compile(t, `{"properties":{"a":{"pattern":"([a-f]x|[g-k]y|[l-z]z){0,1000}$"},"b":{"pattern":"^[a-z]+$"}}}`)
	if got := s.Unenforced(); len(got) != 1 || got[0] != "/properties/a/pattern" {
		t.Errorf("unenforced: %v", got)
	}
	inTime(t, "a megabyte of text", func() {
		args, err := json.Marshal(map[string]string{"a": strings.Repeat("ab", 1<<18), "b": strings.Repeat("ab", 1<<18)})
		if err != nil {
			t.Fatal(err)
		}
		if faults := s.Validate(args); faults != nil {
			t.Error(faults)
		}
	})
}
