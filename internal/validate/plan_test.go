package validate

import (
	"encoding/json"
	"strings"
	"testing"
)

// everyday are schemas of the kinds that real tools have, each with arguments
// that fit and arguments that do not.
var everyday = []struct{ raw, good, bad string }{
	{`{"type":"object","properties":{"message":{"type":"string","description":"Message to echo"}},"required":["message"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`,
		`{"message":"hello"}`, `{"message":1}`},
	{`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`,
		`{"a":1.5,"b":-2}`, `{"a":1}`},
	{`{"type":"object","properties":{"path":{"type":"string"},"head":{"type":["integer","null"],"minimum":0,"maximum":1000,"default":null},"all":{"type":"boolean"}},"required":["path"]}`,
		` { "path" : "/tmp/\u00e9" , "head" : null , "all" : true } `, `{"path":"/","head":-1}`},
	{`{"type":"object","properties":{"level":{"type":"string","enum":["debug","info"]},"n":{"type":"integer","minimum":1}}}`,
		`{"level":"info","n":3,"other":{"x":[1,2]}}`, `{"level":"loud"}`},
	{`{"type":"object","properties":{"entities":{"type":"array","minItems":1,"items":{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":40},"tags":{"type":"array","items":{"type":"string"}}},"required":["name"],"additionalProperties":false}}},"required":["entities"]}`,
		`{"entities":[{"name":"é","tags":["a","b"]},{"name":"y"}]}`, `{"entities":[{"name":""}]}`},
	{`{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1}`, `{"a":1}`, `{}`},
	{`{"type":"object","required":["x"]}`, `{"x":null}`, `{}`},
	{`{"properties":{"x":{}},"required":["x"]}`, `{"x":[{}]}`, `[]`},
}

func TestEverydayArgumentsAreCheckedWithoutDecoding(t *testing.T) {
	for _, c := range everyday {
		s := compile(t, c.raw)
		if s.plan == nil {
			t.Errorf("no plan for %s", c.raw)
			continue
		}
		good := []byte(c.good)
		if n := testing.AllocsPerRun(20, func() {
			if faults := s.Validate(good); faults != nil {
				t.Fatalf("%s refused %s: %v", c.raw, c.good, faults)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.raw, n)
		}
		if s.Validate([]byte(c.bad)) == nil {
			t.Errorf("%s accepted %s", c.raw, c.bad)
		}
	}
}

func TestUnusualValidArgumentsAreAccepted(t *testing.T) {
	for _, c := range []struct{ raw, args string }{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"\u0061":"x"}`},
		{`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":1.0}`},
		{`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":1e3}`},
		{`{"type":"object","properties":{"n":{"type":"integer","maximum":1e30}}}`, `{"n":123456789012345678901234567890}`},
		{`{"type":"object","properties":{"n":{"type":"number","minimum":0}}}`, `{"n":0.5}`},
		{`{"type":"object","properties":{"s":{"enum":["é"]}}}`, `{"s":"\u00e9"}`},
		{`{"type":"object","properties":{"s":{"type":"string","maxLength":1}}}`, `{"s":"\ud83d\ude00"}`},
		{`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":"x","n":1}`},
	} {
		if faults := compile(t, c.raw).Validate([]byte(c.args)); faults != nil {
			t.Errorf("%s refused %s: %v", c.raw, c.args, faults)
		}
	}
}

// planSchemas is what FuzzPlan draws from: all of it within reach of plans.
var planSchemas = []string{
	`{"type":"object","properties":{"a":{"type":"string","minLength":1,"maxLength":3},"b":{"type":["integer","null"],"minimum":-5,"maximum":100},"c":{"type":"number"},"d":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3},"b":{"type":"object","properties":{"a":{"type":"null"}},"required":["a","z"],"maxProperties":3}}}`,
	`{"properties":{"a":{"enum":["x","é","\""]},"b":{},"c":{"type":"string"}},"additionalProperties":{"type":["integer","string"]}}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"items":{"type":"number"}}},"required":["b"]}`,
	`{"type":"object","minProperties":1,"maxProperties":2,"required":["q"]}`,
	`{"type":["object","string"],"properties":{"a":{"type":["array","string"],"maxLength":2,"items":{"enum":["a"]}}}}`,
	`true`, `{}`,
}

// FuzzPlan holds plans against the full validator: what a plan accepts, the
// validator accepts.
func FuzzPlan(f *testing.F) {
	for which := range planSchemas {
		for _, args := range []string{
			`{}`, `{"a":"xyz","b":null,"c":1.5e3,"d":true}`, `{"a":[1,2,3],"b":{"a":null,"z":1}}`, `{"a":"é","zz":"y","q":0}`,
			`{"a":1,"b":[1.5,2]}`, `{"a":"\u00e9","a":1}`, `{"q":1,"r":[[{"x":1e400}]]}`, `{"b":100,"a":"abcd"}`, `["a"]`, `{"a":["a","a"]}`,
		} {
			f.Add(which, []byte(args))
		}
	}
	compiled := make([]*Schema, len(planSchemas))
	for i, raw := range planSchemas {
		if compiled[i] = compile(f, raw); compiled[i].plan == nil {
			f.Fatalf("no plan for %s", raw)
		}
	}
	f.Fuzz(func(t *testing.T, which int, args []byte) {
		if which < 0 || len(args) == 0 {
			return
		}
		s := compiled[which%len(compiled)]
		byPlan := s.Validate(args)
		byFull := s.faults(args)
		if byPlan == nil && byFull != nil {
			t.Fatalf("%s: the plan accepts %s: %v", planSchemas[which%len(compiled)], args, byFull)
		}
		if byPlan != nil && byFull == nil {
			t.Fatalf("%s: the plan refuses %s: %v", planSchemas[which%len(compiled)], args, byPlan)
		}
	})
}

// FuzzCompile holds that no schema and no arguments break the process, and that
// plan and validator agree for schemas nobody thought of.
func FuzzCompile(f *testing.F) {
	for _, c := range everyday {
		f.Add([]byte(c.raw), []byte(c.good))
		f.Add([]byte(c.raw), []byte(c.bad))
	}
	f.Add([]byte(`{"properties":{"a":{"not":{"pattern":"(?=x)"}}}}`), []byte(`{"a":"x"}`))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"$id":"x","$ref":"#"}}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		s, err := Compile(json.RawMessage(raw))
		if err != nil || len(args) == 0 || len(args) > 1<<12 {
			return
		}
		if byPlan, byFull := s.Validate(args), s.faults(args); (byPlan == nil) != (byFull == nil) {
			t.Fatalf("%s with %s: %v and %v", raw, args, byPlan, byFull)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	echo := everyday[0].raw
	for _, c := range []struct{ name, raw, args string }{
		{"echo", echo, `{"message":"` + strings.Repeat("hello ", 30) + `"}`},
		{"nested", everyday[4].raw, everyday[4].good},
		{"full", strings.Replace(echo, `"type":"string"`, `"type":"string","pattern":"^h"`, 1), `{"message":"` + strings.Repeat("hello ", 30) + `"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := compile(b, c.raw)
			args := []byte(c.args)
			b.ReportAllocs()
			for b.Loop() {
				if faults := s.Validate(args); faults != nil {
					b.Fatal(faults)
				}
			}
		})
	}
}
