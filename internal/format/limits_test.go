package format

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// These checks compare the output with the providers' documentation. They are written independently
// of the conversion, so that they do not repeat its mistakes.

// faults collects the reasons for which a provider would reject a request.
type faults []string

func (f *faults) add(at, what string) { *f = append(*f, at+": "+what) }

func provider(f Format) func(*value, *faults) {
	switch f {
	case OpenAI, Responses:
		return openAIRules
	case Anthropic:
		return anthropicRules
	}
	return geminiRules
}

func rootRules(root *value, f *faults, refused ...string) {
	if root.get("type").text() != "object" {
		f.add("", "the type of the root is not object")
	}
	for _, name := range refused {
		if root.get(name) != nil {
			f.add("", name+" at the top")
		}
	}
}

func openAIRules(root *value, f *faults) {
	rootRules(root, f, "oneOf", "anyOf", "allOf", "enum", "not")
	if !root.get("properties").isObject() {
		f.add("", "no properties")
	}
	var walk func(s *value, at string)
	walk = func(s *value, at string) {
		if !s.isObject() {
			return
		}
		if slices.Contains(types(s), "array") && s.get("items") == nil {
			f.add(at, "an array without items")
		}
		if s.get("items").isList() {
			f.add(at, "items is a list")
		}
		eachSchema(s, at, walk)
	}
	walk(root, "")
}

var anthropicKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func anthropicRules(root *value, f *faults) {
	rootRules(root, f, "oneOf", "anyOf", "allOf")
	var walk func(s *value, at string)
	walk = func(s *value, at string) {
		if !s.isObject() {
			return
		}
		for _, p := range membersOf(s.get("properties")) {
			if !anthropicKey.MatchString(p.name) {
				f.add(at, "the property "+p.name)
			}
		}
		if e := s.get("exclusiveMinimum"); e != nil && e.kind != '0' {
			f.add(at, "not of draft 2020-12")
		}
		if s.get("items").isList() {
			f.add(at, "not of draft 2020-12: items is a list")
		}
		eachSchema(s, at, walk)
	}
	walk(root, "")
}

var (
	geminiKey      = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
	geminiKeywords = []string{
		"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties", "maxProperties",
		"minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum",
	}
	geminiFormats = map[string][]string{"string": {"date-time", "enum"}, "integer": {"int32", "int64"}, "number": {"float", "double"}}
)

func geminiRules(root *value, f *faults) {
	rootRules(root, f, "anyOf")
	var walk func(s *value, at string)
	walk = func(s *value, at string) {
		t := s.get("type").text()
		for _, m := range s.members {
			if !slices.Contains(geminiKeywords, m.name) {
				f.add(at, "the keyword "+m.name)
			}
		}
		if a := s.get("anyOf"); a != nil {
			if len(s.members) > 1 && !(len(s.members) == 2 && s.get("description") != nil) {
				f.add(at, "something beside anyOf")
			}
			for _, b := range a.items {
				walk(b, at+"/anyOf")
			}
			return
		}
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array", "object"}, t) {
			f.add(at, "no type")
		}
		if e := s.get("enum"); e != nil {
			if t != "string" || len(e.items) == 0 {
				f.add(at, "an enum of "+t)
			}
			for _, v := range e.items {
				if v.text() == "" {
					f.add(at, "an enum value that is no text")
				}
			}
		}
		if form := s.get("format"); form != nil && !slices.Contains(geminiFormats[t], form.text()) {
			f.add(at, "the format "+form.text())
		}
		if t == "array" && !s.get("items").isObject() {
			f.add(at, "an array without items")
		}
		if p := s.get("properties"); p != nil && len(p.members) == 0 {
			f.add(at, "no properties")
		}
		for _, p := range membersOf(s.get("properties")) {
			if !geminiKey.MatchString(p.name) {
				f.add(at, "the property "+p.name)
			}
			walk(p.value, at+"/"+p.name)
		}
		for _, name := range s.get("required").texts() {
			if s.get("properties").get(name) == nil {
				f.add(at, name+" is required and not there")
			}
		}
		if i := s.get("items"); i != nil {
			walk(i, at+"/items")
		}
	}
	walk(root, "")
}

var strictKeywords = []string{
	"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "pattern", "format",
	"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}

func strictRules(root *value, f *faults) {
	openAIRules(root, f)
	properties, values := 0, 0
	var walk func(s *value, at string, level int)
	walk = func(s *value, at string, level int) {
		for _, m := range s.members {
			if !slices.Contains(strictKeywords, m.name) {
				f.add(at, "the keyword "+m.name)
			}
		}
		if form := s.get("format"); form != nil && !slices.Contains([]string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}, form.text()) {
			f.add(at, "the format "+form.text())
		}
		if e := s.get("enum"); e != nil {
			values += len(e.items)
		}
		if slices.Contains(types(s), "object") {
			if level > 10 {
				f.add(at, "more than 10 levels")
			}
			if a := s.get("additionalProperties"); a == nil || a.kind != 'f' {
				f.add(at, "not closed")
			}
			all := membersOf(s.get("properties"))
			properties += len(all)
			for _, p := range all {
				if !slices.Contains(s.get("required").texts(), p.name) {
					f.add(at, p.name+" is not required")
				}
				walk(p.value, at+"/"+p.name, level+1)
			}
		}
		for _, b := range s.get("anyOf").itemsOf() {
			walk(b, at+"/anyOf", level)
		}
		if i := s.get("items"); i != nil {
			walk(i, at+"/items", level)
		}
	}
	walk(root, "", 1)
	if properties > 5000 || values > 1000 {
		f.add("", "too many properties or values")
	}
}

func (v *value) itemsOf() []*value {
	if v == nil {
		return nil
	}
	return v.items
}

func TestToolsSatisfyTheRulesOfEveryProvider(t *testing.T) {
	strict := 0
	for _, tool := range recorded(t) {
		for _, f := range []Format{OpenAI, Responses, Anthropic, Gemini} {
			for _, mode := range []bool{false, true} {
				got := f.Tool(Name(string(tool.Server), tool.Name), tool, mode)
				v, err := read(got.JSON)
				if err != nil {
					t.Fatalf("%s for %s: %v: %s", tool.Name, f, err, got.JSON)
				}
				if inner := v.get("function"); inner.isObject() {
					v = inner
				}
				if !everyProviderTakes.MatchString(v.get("name").text()) {
					t.Errorf("%s for %s is called %s", tool.Name, f, v.get("name").text())
				}
				if n := utf8.RuneCountInString(v.get("description").text()); n > 1024 && f != Anthropic && f != Gemini {
					t.Errorf("%s for %s has a description of %d characters", tool.Name, f, n)
				}
				said := v.get("parameters")
				if f == Anthropic {
					said = v.get("input_schema")
				}
				if said == nil && f == Gemini {
					continue
				}
				var found faults
				if provider(f)(said, &found); got.Strict {
					strict++
					strictRules(said, &found)
					if v.get("strict").kind != 't' {
						t.Errorf("%s for %s does not say that it is strict", tool.Name, f)
					}
				}
				if len(found) > 0 {
					t.Errorf("%s for %s would be refused: %s\n%s", tool.Name, f, strings.Join(found, "; "), got.JSON)
				}
			}
		}
	}
	if strict < 20 {
		t.Errorf("only %d tools could be put into strict mode", strict)
	}
}

func TestAcceptedSchemaIsPassedByteForByte(t *testing.T) {
	raw := `{ "type" : "object", "properties":{"n":{"type":"integer","maximum":9007199254740993}, "é":{"type":"array","items":{"type":"string"}}},  "required":["n"] }`
	for _, f := range []Format{MCP, OpenAI, Responses} {
		if got := f.Schema([]byte(raw), false); string(got.Schema) != raw || len(got.Loosened) > 0 {
			t.Errorf("%s: %s %v", f, got.Schema, got.Loosened)
		}
	}
}

func TestCommonMistakesInSchemasAreNotSentToProviders(t *testing.T) {
	const input = `{"type":"object","properties":{"a":{"type":"string","enum":null,"required":true},"b":null,"c":{"const":null},"d":{"type":"object","properties":null,"required":null}},"required":null}`
	const want = `{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{"const":null},"d":{"type":"object"}}}`
	for _, f := range []Format{OpenAI, Responses, Anthropic} {
		if got := f.Schema([]byte(input), false); string(got.Schema) != want || len(got.Loosened) > 0 {
			t.Errorf("%s: %s, %v", f, got.Schema, got.Loosened)
		}
	}
	var found faults
	if geminiRules(must(read(Gemini.Schema([]byte(input), false).Schema)), &found); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestRemovedConstraintsAreListedAndDescribed(t *testing.T) {
	for _, c := range []struct {
		format  Format
		input   string
		pointer string
		says    string
	}{
		{Gemini, `{"type":"object","properties":{"n":{"type":"integer","multipleOf":5}}}`, "/properties/n/multipleOf", "multipleOf 5"},
		{Gemini, `{"type":"object","properties":{"n":{"type":"string","format":"uri"}}}`, "/properties/n/format", `format "uri"`},
		{Gemini, `{"type":"object","properties":{"n":{"type":"integer","enum":[1,2]}}}`, "/properties/n/enum", "enum [1,2]"},
		{Gemini, `{"type":"object","properties":{"n":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}`, "/properties/n/uniqueItems", "uniqueItems true"},
		{Gemini, `{"type":"object","properties":{"n":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}`, "/properties/n/oneOf", "exactly one"},
		{OpenAI, `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "/anyOf", `anyOf [{"required":["a"]}`},
		{OpenAI, `{"type":"object","not":{"required":["x"]}}`, "/not", "not"},
		{Anthropic, `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, "/oneOf", "oneOf"},
		{Anthropic, `{"type":"object","properties":{"a":{"$ref":"https://example.org/a"}}}`, "/properties/a/$ref", "a referenced schema"},
	} {
		tool := toolOf(t, "s", `{"name":"t","description":"Does it.","inputSchema":`+c.input+`}`)
		got := c.format.Tool("s__t", tool, false)
		if !slices.ContainsFunc(got.Loosened, func(l Loosening) bool { return l.Pointer == c.pointer && strings.Contains(l.Message, c.says) }) {
			t.Errorf("%s of %s: %+v", c.format, c.input, got.Loosened)
		}
		v, _ := read(got.JSON)
		if inner := v.get("function"); inner.isObject() {
			v = inner
		}
		if d := v.get("description").text(); !strings.HasPrefix(d, "Does it.\n\nIn addition to this schema") || !strings.Contains(d, c.says) {
			t.Errorf("%s of %s says %q", c.format, c.input, d)
		}
	}
}

func TestLongDescriptionIsTruncatedWithANote(t *testing.T) {
	tool := toolOf(t, "s", `{"name":"t","description":"`+strings.Repeat("wörd ", 500)+`","inputSchema":{"type":"object","not":{"required":["x"]}}}`)
	got := OpenAI.Tool("s__t", tool, false)
	v, _ := read(got.JSON)
	d := v.get("function").get("description").text()
	if n := utf8.RuneCountInString(d); n > 1024 || n < 900 || !strings.Contains(d, "not {") || !slices.ContainsFunc(got.Loosened, func(l Loosening) bool { return strings.Contains(l.Message, "1024") }) {
		t.Errorf("%d characters, %+v: %s", n, got.Loosened, d)
	}
	if a := Anthropic.Tool("s__t", tool, false); len(a.Loosened) != 0 {
		t.Errorf("Anthropic takes it whole: %+v", a.Loosened)
	}
}

func TestAHostileSchemaIsBounded(t *testing.T) {
	var wide strings.Builder
	wide.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 40 {
		next := strconv.Itoa(i + 1)
		wide.WriteString(`"d` + strconv.Itoa(i) + `":{"type":"object","properties":{"x":{"$ref":"#/$defs/d` + next + `"},"y":{"$ref":"#/$defs/d` + next + `"}}},`)
	}
	wide.WriteString(`"d40":{"type":"string"}}}`)
	for what, input := range map[string]string{
		"doubling references": wide.String(),
		"a loop":              `{"$ref":"#","type":"object"}`,
		"two that loop":       `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"allOf itself":        `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`,
		"anyOf itself":        `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"string"}]}}}`,
		"very deep":           `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 250) + `{}` + strings.Repeat(`}`, 250) + `}}`,
		"far too deep":        strings.Repeat(`{"not":`, 9000) + `{}` + strings.Repeat(`}`, 9000),
		"no schema":           `[]`,
		"false":               `false`,
		"odd members":         `{"type":7,"properties":[],"required":{},"items":3,"anyOf":{},"enum":1,"$ref":4,"allOf":[1,null]}`,
	} {
		for _, f := range []Format{OpenAI, Responses, Anthropic, Gemini} {
			got := f.Schema([]byte(input), true)
			if _, err := read(got.Schema); len(got.Schema) > 0 && err != nil || len(got.Schema) > 1<<20 {
				t.Errorf("%s for %s: %d bytes, %v", what, f, len(got.Schema), err)
			}
			f.Restore([]byte(input), []byte(`{"a":{"x":{"y":[null]}}}`))
		}
	}
}

func FuzzSchema(f *testing.F) {
	for _, tool := range recorded(f) {
		f.Add([]byte(tool.Input), []byte(`{"a":null,"b":[{"c":null}]}`))
	}
	f.Fuzz(func(t *testing.T, input, arguments []byte) {
		for _, p := range []Format{OpenAI, Responses, Anthropic, Gemini} {
			got := p.Schema(input, true)
			if len(got.Schema) == 0 {
				continue
			}
			v, err := read(got.Schema)
			if err != nil || !v.isObject() {
				t.Fatalf("%s makes %q of %q", p, got.Schema, input)
			}
			if restored := p.Restore(input, arguments); len(restored) > len(arguments)+64*len(input) {
				t.Fatalf("%s restores %q as %q", p, arguments, restored)
			}
		}
	})
}

func TestReasonForNonStrictToolIsNotSentToTheModel(t *testing.T) {
	for input, why := range map[string]string{
		`{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"type":"string"}}}}`:                                 "properties of any name",
		`{"type":"object","properties":{"x":{}}}`:                                                                                           "any value",
		`{"type":"object","properties":{"x":{"type":"object"}}}`:                                                                            "any object",
		`{"type":"object","properties":{"x":{"type":"array"}}}`:                                                                             "any value",
		`{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}}}`: "refers to itself",
		`{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string"}}},{"properties":{"c":{"type":"string"}}}]}}}`: "with a choice",
	} {
		got := OpenAI.Tool("s__t", toolOf(t, "s", `{"name":"t","inputSchema":`+input+`}`), true)
		if got.Strict || len(got.Loosened) != 1 || !strings.Contains(got.Loosened[0].Message, "strict mode is off") || !strings.Contains(got.Loosened[0].Message, why) {
			t.Errorf("%s: strict %t, %+v", input, got.Strict, got.Loosened)
		}
		if strings.Contains(string(got.JSON), "strict mode") {
			t.Errorf("the model is told: %s", got.JSON)
		}
	}
}
