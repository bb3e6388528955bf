package validate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files anew")

func compile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("compile %s: %v", raw, err)
	}
	return s
}

func TestAnAbsentSchemaAcceptsAnyObjectAndNothingElse(t *testing.T) {
	for _, raw := range []string{"", "null", " null\n", "{}", " {} ", `true`} {
		s := compile(t, raw)
		for _, args := range []string{"", "{}", `{"any":["thing",1e999999]}`} {
			if faults := s.Validate([]byte(args)); faults != nil {
				t.Errorf("%q refused %q: %v", raw, args, faults)
			}
		}
		for _, args := range []string{"[]", "1", `"x"`, "null", "{", "{} {}"} {
			if diff := cmp.Diff([]schema.Fault{{Message: "expected an object"}}, s.Validate([]byte(args))); diff != "" {
				t.Errorf("%q with %q: %s", raw, args, diff)
			}
		}
	}
}

// Go servers write nil slices and maps as null, and people write required as in draft 3.
func TestCommonMistakesInSchemasCountAsAbsent(t *testing.T) {
	for _, draft := range []string{"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
		s := compile(t, `{"$schema":"`+draft+`","type":"object","required":null,"additionalProperties":null,"$defs":null,
			"properties":{"any":null,"n":{"type":"integer","enum":null,"default":null},"o":{"type":"object","properties":null,"required":null},"z":{"enum":[null]},"r":{"type":"string","required":true}}}`)
		if faults := s.Validate([]byte(`{"any":[1],"n":5,"o":{"x":1},"z":null,"more":1}`)); faults != nil {
			t.Errorf("%s: %v", draft, faults)
		}
		want := []schema.Fault{{Pointer: "/n", Message: "expected an integer"}, {Pointer: "/z", Message: "expected one of null"}}
		if diff := cmp.Diff(want, s.Validate([]byte(`{"n":"5","z":1}`))); diff != "" {
			t.Errorf("%s: %s", draft, diff)
		}
	}
	if faults := compile(t, `{"properties":{"c":{"const":null}}}`).Validate([]byte(`{"c":1}`)); len(faults) != 1 {
		t.Errorf("a value that must be null: %v", faults)
	}
}

// TestEveryFaultIsListedWithItsPlace runs testdata/faults.json: the sentences are
// part of what callers see.
func TestEveryFaultIsListedWithItsPlace(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "faults.json"))
	if err != nil {
		t.Fatal(err)
	}
	type faultCase struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Args   json.RawMessage `json:"args"`
		Faults []schema.Fault  `json:"faults"`
	}
	var cases []faultCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 30 {
		t.Fatalf("only %d cases", len(cases))
	}
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := compile(t, string(c.Schema)).Validate(c.Args)
			if diff := cmp.Diff(c.Faults, got); diff != "" && !*update {
				t.Errorf("want -, got +:\n%s", diff)
			}
			cases[i].Faults = got
		})
	}
	if *update {
		out, err := json.MarshalIndent(cases, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", "faults.json"), append(out, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFaultNeverRepeatsAValue(t *testing.T) {
	const secret = "hunter2"
	args := []byte(`{"a":"` + secret + `","b":["` + secret + `","` + secret + `"],"c":{"` + "k" + `":"` + secret + `"},"d":7654321,"e":"` + secret + `"}`)
	for _, raw := range []string{
		`{"properties":{"a":{"type":"integer"},"b":{"uniqueItems":true,"items":{"const":"x"}},"c":{"enum":[1]},"d":{"maximum":1,"multipleOf":2},"e":{"pattern":"^x$","maxLength":2}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"date"},"b":{"contains":{"type":"null"}},"c":{"additionalProperties":false},"d":{"not":{}},"e":{"format":"email"}}}`,
		`{"properties":{"a":{"anyOf":[{"minLength":99},{"format":"x","maxLength":1}]},"e":{"oneOf":[{},{}]}}}`,
	} {
		faults := compile(t, raw).Validate(args)
		if len(faults) < 2 {
			t.Errorf("%s: only %v", raw, faults)
		}
		for _, f := range faults {
			if text := fmt.Sprint(f); strings.Contains(text, secret) || strings.Contains(text, "7654321") {
				t.Errorf("%s: %v", raw, f)
			}
		}
	}
}

func TestALongListOfFaultsEndsInACount(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"items":{"type":"integer"}}}}`)
	faults := s.Validate([]byte(`{"n":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 1000), ",") + `]}`))
	if len(faults) != maxFaults+1 || faults[maxFaults] != (schema.Fault{Message: "and 936 more"}) {
		t.Errorf("%d faults, the last is %v", len(faults), faults[len(faults)-1])
	}
}

func TestEverySchemaDraftIsSupportedAndNewestIsDefault(t *testing.T) {
	// Each schema uses what only its draft means: the boolean bounds of 4, the
	// items list of 7 and before, the prefixItems of 2020-12.
	for _, c := range []struct{ raw, good, bad string }{
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"minimum":1,"exclusiveMinimum":true}}}`, `{"n":2}`, `{"n":1}`},
		{`{"$schema":"http://json-schema.org/draft-06/schema#","properties":{"n":{"const":1}}}`, `{"n":1.0}`, `{"n":2}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"n":{"items":[{"type":"null"}]}}}`, `{"n":[null,1]}`, `{"n":[1]}`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"n":{"contains":{"const":1},"minContains":2}}}`, `{"n":[1,1]}`, `{"n":[1]}`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"n":{"prefixItems":[{"type":"null"}]}}}`, `{"n":[null,1]}`, `{"n":[1]}`},
		{`{"properties":{"n":{"prefixItems":[{"type":"null"}]}}}`, `{"n":[null,1]}`, `{"n":[1]}`},
		{`{"$id":"sub/x.json","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"$id":"y.json","type":"null"}}}`, `{"n":null}`, `{"n":1}`},
		{`{"properties":{"n":{"$ref":"http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}}}`, `{"n":1}`, `{"n":-1}`},
	} {
		s := compile(t, c.raw)
		if faults := s.Validate([]byte(c.good)); faults != nil {
			t.Errorf("%s: %s: %v", c.raw, c.good, faults)
		}
		if s.Validate([]byte(c.bad)) == nil {
			t.Errorf("%s accepted %s", c.raw, c.bad)
		}
	}
}

func TestUnusableSchemaReportsTheReason(t *testing.T) {
	secretFile := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secretFile, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ raw, want string }{
		{`{`, "a property name in double quotes is missing"},
		{`{"type":"strnig"}`, "not valid against metaschema"},
		{`{"properties":{"a":{"$ref":"http://127.0.0.1:9/x.json"}}}`, "outside the schema"},
		{`{"properties":{"a":{"$ref":"file://` + secretFile + `"}}}`, "outside the schema"},
		{`{"properties":{"a":{"$ref":"other.json#/x"}}}`, "outside the schema"},
		{`{"$schema":"https://example.com/own-dialect"}`, "outside the schema"},
		{`{"properties":{"a":{"$ref":"#/$defs/none"}}}`, "not found"},
		{`{"type":"object","type":"string"}`, "a property appears twice"},
		{`{"enum":[` + strings.TrimSuffix(strings.Repeat(`0,`, maxSchemaNodes), ",") + `]}`, "has more than"},
		{strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), "nesting exceeds the limit"},
		{`5`, "not valid against metaschema"},
	} {
		_, err := Compile(json.RawMessage(c.raw))
		if schema.KindOf(err) != schema.KindServerFailed || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%.80s: got %v, want %q", c.raw, err, c.want)
		}
	}
}

func TestNumbersKeepTheirPrecision(t *testing.T) {
	s := compile(t, `{"properties":{"id":{"type":"integer","const":9007199254740993},"max":{"maximum":18446744073709551616},"step":{"multipleOf":0.1}}}`)
	for args, want := range map[string]int{
		`{"id":9007199254740993}`:      0,
		`{"id":9007199254740992}`:      1,
		`{"max":18446744073709551616}`: 0,
		`{"max":18446744073709551617}`: 1,
		`{"step":0.3}`:                 0,
		`{"step":0.35}`:                1,
	} {
		if faults := s.Validate([]byte(args)); len(faults) != want {
			t.Errorf("%s: %v", args, faults)
		}
	}
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}},"required":["a"]}`)
	done := make(chan []schema.Fault)
	for range 8 {
		go func() {
			var last []schema.Fault
			for range 50 {
				last = s.Validate([]byte(`{"a":"y"}`))
			}
			done <- last
		}()
	}
	for range 8 {
		if got := <-done; len(got) != 1 {
			t.Error(got)
		}
	}
}
