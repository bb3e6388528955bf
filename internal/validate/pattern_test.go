package validate

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatternsFollowECMAScript(t *testing.T) {
	for _, c := range []struct{ source, ok, no string }{
		{`^\d{3}-\d{4}$`, "555-1234", "555-123"},
		{`^[\w.\-]+@[\w\-]+\.[a-z]{2,}$`, "a.b-c@d-e.org", "a b@c.d"},
		{`^[a\-z]$`, "-", "b"},
		{`^\u00e9\u{1F600}$`, "é😀", "e😀"},
		{`^\ud83d\ude00$`, "😀", "x"},
		{`^[\u0041-\u0043]$`, "B", "D"},
		{`^\/v1\/x$`, "/v1/x", "v1/x"},
		{`^\s$`, "\u00a0", "x"},
		{`^\S$`, "x", "\ufeff"},
		{`^[\s,]+$`, " ,\u2003", "a"},
		{`^.$`, "x", "\u2028"},
		{`^[^]$`, "\n", ""},
		{`^(?:x[])?$`, "", "x"},
		{`^[[:alpha:]]$`, "a]", "a"},
		{`^\cA$`, "\x01", "A"},
		{`^[\b]$`, "\b", "b"},
		{`^\0$`, "\x00", "0"},
		{`^\x41$`, "A", "x41"},
		{`^\p{Lu}\p{Script=Greek}$`, "Aα", "aα"},
		{`^\P{L}$`, "1", "a"},
		{`^(?<year>\d+)$`, "2026", "x"},
		{`^a{2}$`, "aa", "a{2}"},
		{`b`, "abc", "ac"},
		{`^x$`, "x", "x\n"},
	} {
		p, err := compilePattern(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if !p.MatchString(c.ok) || p.MatchString(c.no) {
			t.Errorf("%s: %q %v, %q %v", c.source, c.ok, p.MatchString(c.ok), c.no, p.MatchString(c.no))
		}
		if p.String() != c.source {
			t.Errorf("%s prints as %s", c.source, p)
		}
	}
}

func TestPatternsThatGoCannotRunAreNotEnforced(t *testing.T) {
	for _, source := range []string{`(?=x)`, `(?!x)`, `(?<=x)`, `(a)\1`, `\k<n>`, `\Z`, `[\B]`, `[\S]`, `\u{110000}`, `\ud800`, `\p{Emoji=Yes}`, `(`, `\`, `x{1,5000}`, `\q`, `\cé`, `\xg1`, `\p`, `\u12`} {
		if _, err := compilePattern(source); err == nil {
			t.Errorf("%s compiles", source)
		}
	}
}

func TestUnenforceableKeywordsAreListedAndRefuseNothing(t *testing.T) {
	const look = `(?=x)`
	for _, c := range []struct {
		raw        string
		unenforced []string
		good       []string
		bad        []string
	}{
		{`{"properties":{"a":{"type":"string","pattern":"(?=x)"}}}`,
			[]string{"/properties/a/pattern"}, []string{`{"a":"y"}`}, []string{`{"a":1}`}},
		{`{"properties":{"a":{"not":{"pattern":"(?=x)"}},"b":{"not":{"type":"null"}}}}`,
			[]string{"/properties/a/not", "/properties/a/not/pattern"}, []string{`{"a":"y"}`}, []string{`{"b":null}`}},
		{`{"properties":{"a":{"oneOf":[{"type":"string","pattern":"(?=x)"},{"type":"string","maxLength":1}]}}}`,
			[]string{"/properties/a/oneOf", "/properties/a/oneOf/0/pattern"}, []string{`{"a":"y"}`}, nil},
		{`{"properties":{"a":{"anyOf":[{"type":"string","pattern":"(?=x)"},{"type":"null"}]}}}`,
			[]string{"/properties/a/anyOf/0/pattern"}, []string{`{"a":"y"}`, `{"a":null}`}, []string{`{"a":1}`}},
		{`{"if":{"properties":{"a":{"pattern":"(?=x)"}}},"then":false,"else":{"required":["a"]}}`,
			[]string{"/else", "/if", "/if/properties/a/pattern", "/then"}, []string{`{"a":"y"}`, `{}`}, nil},
		{`{"patternProperties":{"^(?!x)":{"type":"integer"},"^n":{"type":"null"}},"additionalProperties":false}`,
			[]string{"/additionalProperties", "/patternProperties/^(?!x)"}, []string{`{"y":"z"}`}, []string{`{"n":1}`}},
		{`{"properties":{"a":{"not":{"$ref":"#/$defs/p"}}},"$defs":{"p":{"pattern":"(?=x)"}}}`,
			[]string{"/$defs/p/pattern", "/properties/a/not"}, []string{`{"a":"y"}`}, nil},
		{`{"oneOf":[{"properties":{"a":{"pattern":"(?=x)"}}}],"unevaluatedProperties":false}`,
			[]string{"/oneOf", "/oneOf/0/properties/a/pattern", "/unevaluatedProperties"}, []string{`{"a":"y"}`}, nil},
		{`{"properties":{"a":{"const":{"pattern":"(?=x)"}},"pattern":{"enum":["(?=x)"]}}}`,
			nil, []string{`{"a":{"pattern":"(?=x)"},"pattern":"(?=x)"}`}, []string{`{"a":{}}`, `{"pattern":"x"}`}},
		{`{"properties":{"a":{"pattern":"^x"}},"propertyNames":{"pattern":"^(?!y)"}}`,
			[]string{"/propertyNames/pattern"}, []string{`{"a":"x","y":1}`}, []string{`{"a":"y"}`}},
	} {
		s := compile(t, c.raw)
		if diff := cmp.Diff(c.unenforced, s.Unenforced()); diff != "" {
			t.Errorf("%s: %s", c.raw, diff)
		}
		for _, args := range c.good {
			if faults := s.Validate([]byte(args)); faults != nil {
				t.Errorf("%s refused %s: %v", c.raw, args, faults)
			}
		}
		for _, args := range c.bad {
			if s.Validate([]byte(args)) == nil {
				t.Errorf("%s accepted %s", c.raw, args)
			}
		}
	}
	if _, err := compilePattern(look); err == nil {
		t.Errorf("%s compiles: the cases above show nothing", look)
	}
}

func FuzzPattern(f *testing.F) {
	for _, source := range []string{`^[\w.\-]+$`, `[^]\u{1F600}[\s\b-z]`, `\p{sc=Latin}`, `(?<n>a)\k<n>`, `[[:x:]]`, `\ud83d\ude00.`} {
		f.Add(source, "text")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if p, err := compilePattern(source); err == nil {
			p.MatchString(text)
		}
		if plainText := regexp.QuoteMeta(text); len(text) < 200 && json.Valid([]byte(`"`+text+`"`)) {
			if p, err := compilePattern("^" + plainText + "$"); err == nil && !p.MatchString(text) {
				t.Fatalf("%q does not match itself as %s", text, plainText)
			}
		}
	})
}
