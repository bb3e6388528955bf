package format

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// convertible returns the tools and calls of testdata/convert in the format.
func convertible(t testing.TB, f Format) (tools, calls []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "convert", string(f)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var in struct{ Tools, Calls json.RawMessage }
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	return in.Tools, in.Calls
}

// unlisted returns the pointers of input values that are not in the output and have no note on
// themselves, on a parent or on a child.
func unlisted(t testing.TB, member string, input []byte, output []byte, notes []Note) (lost []string) {
	t.Helper()
	root, err := read(input)
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool) // strings and numbers in the output, including those inside strings
	var gather func(v *value, depth int)
	gather = func(v *value, depth int) {
		for _, m := range v.members {
			there[m.name] = true
			gather(m.value, depth)
		}
		for _, item := range v.items {
			gather(item, depth)
		}
		switch {
		case v.isString():
			there[v.text()] = true
			if inner, err := read([]byte(v.text())); err == nil && depth < 3 {
				gather(inner, depth+1)
			}
		case !v.isObject() && !v.isList():
			there[string(v.raw)] = true
		}
	}
	if out, err := read(output); err == nil {
		gather(out, 0)
	}
	said := func(at string) bool {
		return slices.ContainsFunc(notes, func(n Note) bool { return at == n.Pointer || strings.HasPrefix(at, n.Pointer+"/") })
	}
	var walk func(v *value, path []string)
	walk = func(v *value, path []string) {
		switch {
		case v.isObject():
			for _, m := range v.members {
				if !isEnvelope(m.name) && !(m.name == "strict" && m.value.kind == 'f') { // false is the default
					walk(m.value, append(slices.Clone(path), m.name))
				}
			}
		case v.isList():
			for i, item := range v.items {
				walk(item, append(slices.Clone(path), strconv.Itoa(i)))
			}
		case !hasContent(v), v.isString() && there[v.text()], !v.isString() && there[string(v.raw)], said(pointer(path)):
		default:
			if v.isString() { // arguments as OpenAI has them
				inner, err := read([]byte(v.text()))
				if err == nil && inner.isObject() && len(unlisted(t, member, []byte(v.text()), output, notes)) == 0 {
					return
				}
			}
			lost = append(lost, pointer(path)+" "+v.brief())
		}
	}
	walk(root, []string{member})
	return lost
}

func TestEveryFormatIsConvertedToEveryOther(t *testing.T) {
	for _, from := range formats() {
		tools, calls := convertible(t, from)
		for _, to := range formats() {
			got, err := Convert(from, to, tools, calls)
			if err != nil {
				t.Fatal(from, to, err)
			}
			if from == to {
				continue
			}
			whole, err := json.Marshal(map[string]any{"tools": got.Tools, "calls": got.Calls, "notes": got.Notes})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "convert-"+string(from)+"."+string(to)+".json", whole)
			output := slices.Concat([]byte(`[`), got.Tools, []byte(`,`), got.Calls, []byte(`]`))
			for member, input := range map[string][]byte{"tools": tools, "calls": calls} {
				if lost := unlisted(t, member, input, output, got.Notes); len(lost) > 0 {
					t.Errorf("%s to %s: without a note: %q", from, to, lost)
				}
			}
			for _, n := range got.Notes {
				if n.Pointer == "" || n.Message == "" || n.Kind == "" {
					t.Errorf("%s to %s: %+v", from, to, n)
				}
			}
		}
	}
}

func TestConversionToTheSameFormatChangesNothing(t *testing.T) {
	for _, f := range formats() {
		tools, calls := convertible(t, f)
		got, err := Convert(f, f, tools, calls)
		if err != nil {
			t.Fatal(f, err)
		}
		var items []json.RawMessage
		if err := json.Unmarshal(got.Tools, &items); err != nil || len(items) < 2 {
			t.Fatalf("%s: %v: %s", f, err, got.Tools)
		}
		for _, item := range items {
			if !bytes.Contains(tools, item) {
				t.Errorf("%s: a tool has changed: %s", f, item)
			}
		}
		if err := json.Unmarshal(got.Calls, &items); err != nil || len(items) < 3 {
			t.Fatalf("%s: %v: %s", f, err, got.Calls)
		}
		for _, item := range items {
			if !bytes.Contains(calls, item) {
				t.Errorf("%s: a call has changed: %s", f, item)
			}
		}
	}
}

func TestConvertedToolsAndCallsAreValidForTheProvider(t *testing.T) {
	for _, from := range formats() {
		tools, calls := convertible(t, from)
		for _, to := range formats() {
			if from == to {
				continue
			}
			got, err := Convert(from, to, tools, calls)
			if err != nil {
				t.Fatal(err)
			}
			acceptable(t, from, to, got, true)
			// The target's reader finds every converted call, with the same arguments except for
			// renamed properties.
			read, err := to.Calls(got.Calls)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range read {
				if c.Err != nil || c.Name == "" || to != Gemini && c.ID == "" || !json.Valid(c.Arguments) {
					t.Errorf("%s to %s: the call %+v", from, to, c)
				}
			}
			if len(read) == 0 {
				t.Errorf("%s to %s: no calls: %s", from, to, got.Calls)
			}
		}
	}
}

// acceptable fails for tools that the target rejects. If rules is set, schemas are checked too.
func acceptable(t testing.TB, from, to Format, got Conversion, rules bool) {
	t.Helper()
	root, err := read(got.Tools)
	if err != nil || !root.isList() {
		t.Fatalf("%s to %s: %v: %s", from, to, err, got.Tools)
	}
	again := newConverter(to, from, root)
	each(root, func(item *value) {
		for _, p := range again.toolsOf(item) {
			if to.toolName(p.name.text()) != p.name.text() {
				t.Errorf("%s to %s: the name %s", from, to, p.name.brief())
			}
			if to == MCP {
				if p.schema.get("type").text() != "object" {
					t.Errorf("%s to MCP: the schema %s", from, p.schema.brief())
				}
			} else if p.schema != nil && rules {
				var f faults
				provider(to)(p.schema, &f)
				if len(f) > 0 {
					t.Errorf("%s to %s: %s: %q", from, to, p.name.brief(), f)
				}
			}
		}
	})
	if len(again.noted) > 0 {
		t.Errorf("%s to %s: what was made has no tool in it: %v", from, to, again.noted)
	}
}

func TestCallsGetTheNamesOfTheConvertedSchemas(t *testing.T) {
	tools := []byte(`[{"name":"t","inputSchema":{"type":"object","properties":{"user id":{"type":"string"},"deep":{"type":"array","items":{"type":"object","properties":{"a-b":{"type":"integer"}}}}}}}]`)
	calls := []byte(`[{"name":"t","arguments":{"user id":"u","deep":[{"a-b":1.0}],"other":null}}]`)
	got, err := Convert(MCP, Gemini, tools, calls)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"functionCall":{"name":"t","args":{"user_id":"u","deep":[{"a_b":1.0}],"other":null}}}]`; string(got.Calls) != want {
		t.Errorf("%s", got.Calls)
	}
	back := Gemini.Restore([]byte(`{"type":"object","properties":{"user id":{"type":"string"},"deep":{"type":"array","items":{"type":"object","properties":{"a-b":{"type":"integer"}}}}}}`), []byte(`{"user_id":"u","deep":[{"a_b":1.0}]}`))
	if string(back) != `{"user id":"u","deep":[{"a-b":1.0}]}` {
		t.Errorf("back it is %s", back)
	}
}

func TestNotesAreBounded(t *testing.T) {
	many := `[` + strings.Repeat(`{"type":"x"},`, maxNotes+10) + `{"type":"x"}]`
	got, err := Convert(Anthropic, MCP, []byte(many), nil)
	if err != nil || len(got.Notes) != maxNotes+1 || !strings.HasPrefix(got.Notes[maxNotes].Message, "11 more") || string(got.Tools) != "[]" || got.Calls != nil {
		t.Errorf("%v: %d notes, the last %+v", err, len(got.Notes), got.Notes[len(got.Notes)-1])
	}
	long := `{"` + strings.Repeat("n", 100_000) + `":{"` + strings.Repeat("m", 100_000) + `":1},"tools":[{"name":"a"}]}`
	got, err = Convert(Anthropic, MCP, []byte(long), nil)
	if err != nil || len(got.Notes) != 1 || len(got.Notes[0].Pointer) > 300 {
		t.Errorf("%v %d notes", err, len(got.Notes))
	}
}

func FuzzConvert(f *testing.F) {
	for i, from := range formats() {
		tools, calls := convertible(f, from)
		f.Add(uint8(i), uint8(i+1), tools, calls)
		f.Add(uint8(i+2), uint8(i), tools, calls)
	}
	f.Add(uint8(0), uint8(0), []byte(`[1652, null, {"name":"a"}]`), []byte(`[7]`))
	f.Add(uint8(4), uint8(4), []byte(`[1652, [{}]]`), []byte(`{"a":[1]}`))
	f.Fuzz(func(t *testing.T, a, b uint8, tools, calls []byte) {
		from, to := formats()[int(a)%len(formats())], formats()[int(b)%len(formats())]
		got, err := Convert(from, to, tools, calls)
		if err != nil {
			return
		}
		if got.Tools != nil && !json.Valid(got.Tools) || got.Calls != nil && !json.Valid(got.Calls) {
			t.Fatalf("not JSON: %s %s", got.Tools, got.Calls)
		}
		for _, raw := range [][]byte{got.Tools, got.Calls} {
			var items []map[string]json.RawMessage
			if raw != nil && json.Unmarshal(raw, &items) != nil {
				t.Fatalf("%s to %s: no list of objects: %s", from, to, raw)
			}
		}
		if from == to {
			return
		}
		if got.Tools != nil {
			acceptable(t, from, to, got, false) // an invalid schema remains invalid
		}
		if len(got.Notes) <= maxNotes {
			output := slices.Concat([]byte(`[`), orNull(got.Tools), []byte(`,`), orNull(got.Calls), []byte(`]`))
			for member, input := range map[string][]byte{"tools": tools, "calls": calls} {
				if lost := unlisted(t, member, orNull(input), output, got.Notes); len(lost) > 0 {
					t.Fatalf("%s to %s: without a note: %q", from, to, lost)
				}
			}
		}
	})
}

func orNull(raw []byte) []byte {
	if raw == nil {
		return []byte("null")
	}
	return raw
}
