package format

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// sample returns a value that matches a schema, with all optional properties or with none. It
// returns nil if it finds none.
func sample(root, s *value, full bool, depth int) *value {
	if depth > 20 || s == nil || s.kind == 'f' {
		return nil
	}
	if !s.isObject() {
		return str("anything")
	}
	if ref := s.get("$ref"); ref.isString() {
		return sample(root, lookup(root, ref.text()), full, depth+1)
	}
	if c := s.get("const"); c != nil {
		return c
	}
	if e := s.get("enum"); e.isList() && len(e.items) > 0 {
		return e.items[0]
	}
	if all := s.get("allOf"); all.isList() {
		joined := s.clone()
		joined.drop("allOf")
		for _, b := range all.items {
			for b.get("$ref").isString() {
				b = lookup(root, b.get("$ref").text())
			}
			merge(joined, b.clone(), "", &notes{})
		}
		return sample(root, joined, full, depth+1)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if c := s.get(name); c.isList() && len(c.items) > 0 {
			one := s.clone()
			one.drop(name)
			b := c.items[0]
			for b.get("$ref").isString() {
				b = lookup(root, b.get("$ref").text())
			}
			merge(one, b.clone(), "", &notes{})
			return sample(root, one, full, depth+1)
		}
	}
	t := typesOf(s)
	if len(t) == 0 {
		return str("anything")
	}
	switch t[0] {
	case "object":
		return sampleObject(root, s, full, depth)
	case "array":
		v := list()
		if first := s.get("prefixItems"); first.isList() {
			for _, item := range first.items {
				v.items = append(v.items, sample(root, item, full, depth+1))
			}
			return v
		}
		if first := s.get("items"); first.isList() {
			for _, item := range first.items {
				v.items = append(v.items, sample(root, item, full, depth+1))
			}
			return v
		}
		if item := sample(root, s.get("items"), full, depth+1); item != nil && (full || s.get("minItems") != nil) {
			v.items = append(v.items, item)
		}
		return v
	case "string":
		return sampleText(s)
	case "integer", "number":
		for _, name := range []string{"minimum", "default", "maximum", "exclusiveMinimum"} {
			if n := s.get(name); n != nil && n.kind == '0' {
				if name == "exclusiveMinimum" {
					f, _ := strconv.ParseFloat(string(n.raw), 64)
					return number(strconv.FormatFloat(f+1, 'f', -1, 64))
				}
				if e := s.get("exclusiveMinimum"); e != nil && e.kind == 't' {
					return number(string(n.raw) + "0")
				}
				return n
			}
		}
		return number("5")
	case "boolean":
		return ok()
	}
	return null()
}

func sampleText(s *value) *value {
	switch s.get("format").text() {
	case "date-time":
		return str("2026-01-02T03:04:05Z")
	case "date":
		return str("2026-01-02")
	case "uri":
		return str("https://example.org/")
	case "email":
		return str("a@example.org")
	}
	text := "abc"
	if n, err := strconv.Atoi(string(orEmpty(s).get("minLength").source2())); err == nil && n > len(text) {
		text = strings.Repeat("a", n)
	}
	return str(text)
}

func (v *value) source2() []byte {
	if v == nil {
		return nil
	}
	return v.encode(nil)
}

func sampleObject(root, s *value, full bool, depth int) *value {
	v := object()
	for _, p := range membersOf(s.get("properties")) {
		if !full && !slices.Contains(s.get("required").texts(), p.name) {
			continue
		}
		if of := sample(root, p.value, full, depth+1); of != nil {
			v.set(p.name, of)
		}
	}
	return v
}

// variantsOf returns variants of arguments, some of which a schema may reject.
func variantsOf(v *value) (all []*value) {
	for i, m := range v.members {
		without := v.clone()
		without.members = slices.Delete(without.members, i, i+1)
		all = append(all, without)
		for _, other := range []*value{str("\u0000other"), number("-7.5"), ok(), null(), list(), object()} {
			changed := v.clone()
			changed.set(m.name, other)
			all = append(all, changed)
		}
		if m.value.isObject() {
			for _, inner := range variantsOf(m.value) {
				changed := v.clone()
				changed.set(m.name, inner)
				all = append(all, changed)
			}
		}
	}
	return all
}

// judge validates arguments against schemas. It compiles each schema once.
type judge map[string]*validate.Schema

func (j judge) accepts(t *testing.T, s []byte, arguments *value) bool {
	t.Helper()
	compiled := j[string(s)]
	if compiled == nil {
		var err error
		if compiled, err = validate.Compile(s); err != nil {
			t.Fatalf("%v: %s", err, s)
		}
		j[string(s)] = compiled
	}
	return len(compiled.Validate(arguments.encode(nil))) == 0
}

// outsideOnly lists tools of odd.ndjson whose schemas refer to other documents, so that they cannot
// be compiled.
var outsideOnly = []string{"outside"}

func TestToolsRoundTripThroughEveryProvider(t *testing.T) {
	tools := recorded(t)
	d := directoryOf(tools)
	samples, refusals, j := 0, 0, judge{}
	for _, f := range []Format{OpenAI, Responses, Anthropic, Gemini} {
		for _, tool := range tools {
			got := f.Tool(Name(string(tool.Server), tool.Name), tool, false)
			back, err := f.Definitions(f.Wrap([]Tool{got}))
			if err != nil || len(back) != 1 {
				t.Fatalf("%s: %d tools, %v", f, len(back), err)
			}
			var def struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
			}
			if err := json.Unmarshal(back[0], &def); err != nil {
				t.Fatal(err)
			}
			if ref, err := resolve(d, def.Name); err != nil || ref != (Ref{string(tool.Server), tool.Name}) {
				t.Errorf("%s: %s of %s comes back as %v, %v", f, tool.Name, tool.Server, ref, err)
			}
			if slices.Contains(outsideOnly, tool.Name) {
				continue
			}
			s, r := j.sameMeaning(t, f, tool, def.InputSchema, len(got.Loosened) == 0)
			samples, refusals = samples+s, refusals+r
		}
	}
	if samples < 300 || refusals < 300 {
		t.Errorf("only %d samples and %d refusals were compared", samples, refusals)
	}
}

// sameMeaning compares two schemas by example. Arguments that the tool's schema accepts must be
// accepted by the provider's schema and restored unchanged. Arguments that the tool's schema rejects
// must be rejected by the provider's, unless a loosening is listed.
func (j judge) sameMeaning(t *testing.T, f Format, tool *schema.Tool, back []byte, exact bool) (samples, refusals int) {
	t.Helper()
	root, err := read(tool.Input)
	if err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true} {
		v := sample(root, root, full, 0)
		if v == nil || !v.isObject() || !j.accepts(t, tool.Input, v) {
			continue
		}
		for i, arguments := range append([]*value{v}, variantsOf(v)...) {
			wants := j.accepts(t, tool.Input, arguments)
			shown := shownAs(f.propertyNames(root), root, arguments)
			takes := j.accepts(t, back, shown)
			switch {
			case wants && !takes:
				t.Errorf("%s: %s takes %s, and the provider's schema does not take %s:\n%s", f, tool.Name, arguments.encode(nil), shown.encode(nil), back)
			case !wants && takes && exact:
				t.Errorf("%s: %s does not take %s, the provider's schema takes %s, and nothing was said:\n%s", f, tool.Name, arguments.encode(nil), shown.encode(nil), back)
			}
			if wants {
				samples++
				if restored := f.Restore(tool.Input, shown.encode(nil)); !j.accepts(t, tool.Input, must(read(restored))) {
					t.Errorf("%s: %s comes back as %s", f, shown.encode(nil), restored)
				}
			} else if i > 0 {
				refusals++
			}
		}
	}
	return samples, refusals
}

func must(v *value, err error) *value {
	if err != nil {
		panic(err)
	}
	return v
}

// shownAs returns the arguments with the property names of the provider's schema.
func shownAs(names map[string]string, s, v *value) *value {
	if !v.isObject() || !s.isObject() {
		return v
	}
	out := object()
	for _, m := range v.members {
		name := m.name
		if to, ok := names[name]; ok && s.get("properties").get(name) != nil {
			name = to
		}
		out.set(name, shownAs(names, s.get("properties").get(m.name), m.value))
	}
	return out
}

func TestStrictModeArgumentsAreRestoredForTheTool(t *testing.T) {
	tried, j := 0, judge{}
	for _, tool := range recorded(t) {
		shape := OpenAI.Schema(tool.Input, true)
		if !shape.Strict || len(shape.Loosened) > 0 {
			continue
		}
		root := must(read(shape.Schema))
		own := must(read(tool.Input))
		if minimal := sample(own, own, false, 0); minimal == nil || !j.accepts(t, tool.Input, minimal) {
			continue
		}
		// Set all nullable properties to null, like a model that omits them.
		v := sample(root, root, true, 0)
		absent(root, v)
		if !j.accepts(t, shape.Schema, v) {
			t.Errorf("%s: the strict schema does not take %s:\n%s", tool.Name, v.encode(nil), shape.Schema)
			continue
		}
		tried++
		restored := OpenAI.Restore(tool.Input, v.encode(nil))
		if !j.accepts(t, tool.Input, must(read(restored))) {
			t.Errorf("%s: the tool does not take %s, restored from %s", tool.Name, restored, v.encode(nil))
		}
	}
	if tried < 10 {
		t.Errorf("only %d tools were tried", tried)
	}
}

func absent(s, v *value) {
	for i, m := range v.members {
		p := s.get("properties").get(m.name)
		if slices.Contains(types(orEmpty(p)), "null") || p.get("anyOf").isList() && slices.ContainsFunc(p.get("anyOf").items, func(b *value) bool { return slices.Contains(types(b), "null") }) {
			v.members[i].value = null()
		} else if p.isObject() && m.value.isObject() {
			absent(p, m.value)
		}
	}
}

func TestToolsOfAServerInEveryFormat(t *testing.T) {
	for _, server := range []schema.ServerID{"everything", "odd"} {
		for _, f := range []Format{OpenAI, Responses, Anthropic, Gemini} {
			var all []Tool
			for _, tool := range recorded(t) {
				if tool.Server == server {
					all = append(all, f.Tool(Name(string(tool.Server), tool.Name), tool, f == Responses))
				}
			}
			golden(t, "tools-"+string(server)+"."+string(f)+".json", f.Wrap(all))
		}
	}
}

func TestArgumentsAreRestoredAndKeepTheirOtherBytes(t *testing.T) {
	const keys = `{"type":"object","properties":{"filter[id]":{"type":"string"},"a b":{"type":"object","properties":{"c d":{"type":"integer"},"n":{"type":["integer","null"]}},"required":["c d"]},
		"opt":{"type":"string"},"must":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y y":{}}}}},"required":["must"]}`
	for _, c := range []struct {
		format        Format
		written, want string
	}{
		{Anthropic, `{ "filter_id_" : "x" ,"big":9007199254740993}`, `{ "filter[id]" : "x" ,"big":9007199254740993}`},
		{Anthropic, `{"a_b":{"c_d": 1,"n":null}, "must":null}`, `{"a b":{"c d": 1,"n":null}, "must":null}`},
		{OpenAI, `{"opt":null,"must":"\u00e9"}`, `{"must":"\u00e9"}`},
		{OpenAI, `{"must":"x", "opt":null}`, `{"must":"x"}`},
		{OpenAI, `{"opt":null , "filter[id]":null}`, `{}`},
		{OpenAI, `{"opt":null,"must":"x","filter[id]":null,"other":null}`, `{"must":"x","other":null}`},
		{OpenAI, `{"list":[{"x":null},{"x":1,"y y":null}]}`, `{"list":[{},{"x":1,"y y":null}]}`},
		{Gemini, `{"list":[{"x":null,"y_y":[ 1.50 ]}]}`, `{"list":[{"y y":[ 1.50 ]}]}`},
		{Gemini, `{"filter_id_":null,"must":"x"}`, `{"must":"x"}`},
		{MCP, `{"opt":null}`, `{"opt":null}`},
		{OpenAI, `{"opt":null`, `{"opt":null`},
		{OpenAI, `{"opt":"","must":[null]}`, `{"opt":"","must":[null]}`},
	} {
		if got := string(c.format.Restore([]byte(keys), []byte(c.written))); got != c.want {
			t.Errorf("%s: %s becomes %s, want %s", c.format, c.written, got, c.want)
		}
	}
}

func TestRequiredPropertiesHaveTheirNamesOfAnotherPart(t *testing.T) {
	input := []byte(`{"type":"object","properties":{"x":{"required":["a b"],"allOf":[{"properties":{"a b":{}}}]}}}`)
	if x := must(read(Anthropic.Schema(input, false).Schema)).get("properties").get("x"); !slices.Equal(x.get("required").texts(), []string{"a_b"}) {
		t.Errorf("got %s", x.encode(nil))
	}
}

func TestNamesOfPropertiesInPartsOfASchemaAreRestored(t *testing.T) {
	choice := `{"type":"object","anyOf":[{"properties":{"名前":{"type":"string"}}},{"properties":{"住所":{"type":"string"}}}]}`
	joined := `{"allOf":[{"properties":{"a-b":{"type":"string"}}},{"properties":{"a.b":{"type":"string"}}}]}`
	for _, c := range []struct {
		format      Format
		schema      string
		inside, own string // the value of x in the provider's and in the tool's names
	}{
		{Gemini, joined, `{"a_b":1,"a_b_2e7336dc8e":2}`, `{"a-b":1,"a.b":2}`},
		{Anthropic, `{"type":"object","patternProperties":{"^y":{"properties":{"p q":{}}}}}`, `{"yes":{"p_q":1}}`, `{"yes":{"p q":1}}`},
		{Anthropic, `{"type":"array","items":[{"properties":{"p q":{}}}],"additionalItems":{"properties":{"r s":{}}}}`, `[{"p_q":1},{"r_s":2}]`, `[{"p q":1},{"r s":2}]`},
	} {
		input := []byte(`{"type":"object","properties":{"x":` + c.schema + `}}`)
		if got := string(c.format.Restore(input, []byte(`{"x":`+c.inside+`}`))); got != `{"x":`+c.own+`}` {
			t.Errorf("%s: %s", c.format, got)
		}
	}
	for _, f := range []Format{Anthropic, Gemini} {
		nested := []byte(`{"type":"object","properties":{"x":` + choice + `}}`)
		for _, branch := range must(read(f.Schema(nested, false).Schema)).get("properties").get("x").get("anyOf").items {
			p := branch.get("properties").members[0]
			got := string(f.Restore(nested, []byte(`{"x":{`+string(quote(p.name))+`:"x"}}`)))
			if name := must(read([]byte(got))).get("x").members[0].name; !strings.Contains(p.value.get("description").text(), string(quote(name))) {
				t.Errorf("%s: %s in a branch, described as %s, is restored as %s", f, p.name, p.value.get("description").text(), got)
			}
		}
		// The names that the provider sees, with the descriptions that say what they stand for.
		properties := must(read(f.Schema([]byte(choice), false).Schema)).get("properties")
		for _, p := range properties.members {
			got := string(f.Restore([]byte(choice), []byte(`{`+string(quote(p.name))+`:"x"}`)))
			if name := must(read([]byte(got))).members[0].name; !strings.Contains(p.value.get("description").text(), string(quote(name))) {
				t.Errorf("%s: %s, described as %s, is restored as %s", f, p.name, p.value.get("description").text(), got)
			}
		}
	}
}
