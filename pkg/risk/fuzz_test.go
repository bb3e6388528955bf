package risk

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"unicode/utf8"

	"cel.dev/cel-go/common/types/ref"

	"github.com/callyard/callyard/pkg/schema"
)

func FuzzParse(f *testing.F) {
	faulty, err := os.ReadFile("testdata/faults.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{office, string(faulty), "rules: [{when: '[1,2].all(x, x > 0)', deny: n}]", "- *a", "a: !!x b", "? a\n: b", "|\n a", "rules:\n- &a\n  deny: x\n  <<: *a\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		p, err := Parse(source, "p.yaml")
		var faults *Faults
		if (p == nil) == (err == nil) || err != nil && (!errors.As(err, &faults) || len(faults.List) == 0) {
			t.Fatalf("%v %v", p, err)
		}
		if p != nil {
			p.Check(Known{Groups: map[string][]string{}, Servers: []string{"s"}, Tools: map[string][]string{"s": {"t"}}})
			if a := p.Assess(&Input{Server: "s", Tool: "t", Arguments: []byte(`{"a":1}`)}); len(a.Reasons) == 0 || a.Version != p.version || !a.Deny && a.Level == Medium && a.Approval == nil {
				t.Errorf("%+v", a)
			}
		}
		if _, err := ParseExamples(source, "c.yaml"); err != nil && !errors.As(err, &faults) {
			t.Error(err)
		}
	})
}

func FuzzAssess(f *testing.F) {
	p, err := Parse([]byte(office+`
  - {name: loop, when: 'args.list.exists(x, x.n > 1)', level: 2}
  - {name: text, when: 'args.text.matches("^a+$") || args.n == 1', deny: no}
`), "p.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("bank", "pay", []byte(`{"amount":1e9}`), definition(readOnly), "admin", 0)
	f.Add("db", "dr\u043ep_x", []byte(`{"list":[{"n":2}],"text":"aaa","n":18446744073709551616}`), []byte(`{"annotations":{"\u0072":1}}`), "", 3)
	f.Add("", "\xff", []byte(`{"a":[[[{}]]],"a":"\ud800"}`), []byte(`{"annotations":"\`), "", -1)
	f.Fuzz(func(t *testing.T, server, tool string, arguments, def []byte, group string, level int) {
		in := &Input{Server: server, Tool: tool, Arguments: arguments, Definition: def, ServerRisk: level, Principal: schema.Principal{Groups: []string{group}}}
		a := p.Assess(in)
		if len(a.Reasons) == 0 || a.Level < Low || a.Level > High || a.Version != p.version {
			t.Errorf("%+v", a)
		}
		if !a.Deny && (a.Level == Medium && a.Approval == nil || a.Level == High && a.Sandbox == "") {
			t.Errorf("%+v", a)
		}
		if short(p.Assess(in)) != short(a) {
			t.Error("the same call is judged in two ways")
		}
	})
}

// FuzzArguments compares the decoder with the standard library's.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[1.5,true,null,"x\n\u00e9"],"c":{}}`, ` { } `, `{"a":1,"a":2}`, `[]`, `{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v := argsOf(raw)
		var std map[string]any
		if err := json.Unmarshal(raw, &std); (err != nil || !utf8.Valid(raw)) && len(raw) > 0 {
			if v.Type().TypeName() != "error" {
				t.Errorf("%v: read as %v", err, v)
			}
			return
		}
		if v.Type().TypeName() == "map" {
			if got := len(v.Value().(map[string]ref.Val)); len(std) != got {
				t.Errorf("%d keys, want %d", got, len(std))
			}
		}
	})
}
