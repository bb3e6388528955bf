package form_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/callyard/callyard/internal/console/form"
)

// reference returns the input schemas of the tools of the reference servers and of ours.
func reference(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// filled sets a value for every field, and returns the resulting document. round varies the
// values.
func filled(schema json.RawMessage, round int) (form.Values, json.RawMessage) {
	values := form.Values{}
	for range form.MaxDepth + 2 { // a selection adds further fields
		f := form.New(schema, values)
		if f.Root == nil {
			return values, json.RawMessage("{}")
		}
		var walk func(*form.Field)
		walk = func(f *form.Field) {
			if f.Nullable && round%4 == 3 {
				values[f.Name+".z"] = "1"
			}
			switch f.Kind {
			case form.Text:
				values[f.Name] = []string{"x", "two\nlines \"\\ <&>", " ", "\u202e\U0001f600"}[round%4]
			case form.Number:
				values[f.Name] = []string{"7", "-1.50", "12345678901234567890", "1e3"}[round%4]
			case form.Boolean:
				values[f.Name] = []string{"true", "false"}[round%2]
			case form.Choice, form.Variant:
				if len(f.Options) > 0 {
					values[f.Name] = strconv.Itoa(round % len(f.Options))
				}
			case form.JSON:
				values[f.Name] = []string{`{"a":[1,null]}`, `[]`, `"text"`, `12.0`}[round%4]
			case form.Array:
				values[f.Name+".n"] = strconv.Itoa(1 + round%2)
			}
			for _, inner := range f.Fields {
				walk(inner)
			}
		}
		walk(f.Root)
	}
	document, _ := form.New(schema, values).JSON()
	return values, document
}

// check verifies the guarantees of a form for any schema, and reports whether there is one. A schema
// that causes unbounded work makes the test binary time out.
func check(t *testing.T, schema json.RawMessage) bool {
	t.Helper()
	f := form.New(schema, nil)
	if (f.Root == nil) == (f.Why == "") {
		t.Errorf("a form and a reason against it: %+v", f)
	}
	documents := []json.RawMessage{}
	first, _ := f.JSON()
	documents = append(documents, first)
	for round := range 4 {
		_, document := filled(schema, round)
		documents = append(documents, document)
	}
	for _, document := range documents {
		if !json.Valid(document) {
			t.Fatalf("no JSON: %.300s", document)
		}
		values, whole := form.Fill(schema, document)
		if f.Root == nil || !whole {
			continue
		}
		again, faults := form.New(schema, values).JSON()
		if len(faults) > 0 || string(again) != string(document) {
			t.Errorf("%.300s\nwent through the form as\n%.300s %v", document, again, faults)
		}
	}
	return f.Root != nil
}

// asDocuments returns the number of documents that the form holds completely.
func asDocuments(schema json.RawMessage) (whole int) {
	for round := range 3 {
		_, document := filled(schema, round)
		if _, ok := form.Fill(schema, document); ok {
			whole++
		}
	}
	return whole
}

func TestFormsOfReferenceToolsRoundTripArguments(t *testing.T) {
	all := reference(t)
	if len(all) < 50 {
		t.Fatalf("there are %d tools", len(all))
	}
	for name, schema := range all {
		if !check(t, schema) {
			t.Errorf("%s has no form: %s", name, form.New(schema, nil).Why)
		}
		if n := asDocuments(schema); n != 3 {
			t.Errorf("%s: the form holds %d of 3 documents whole", name, n)
		}
	}
}

func TestAHostileSchemaHasAFormOrAnEditor(t *testing.T) {
	if len(hostile) < 60 {
		t.Fatalf("there are %d schemas", len(hostile))
	}
	var without []int
	for i, schema := range hostile {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) {
			if !check(t, json.RawMessage(schema)) {
				without = append(without, i+1)
			}
		})
	}
	// These have only an editor: roots other than objects, infinite recursion, and too many fields.
	if want := []int{2, 3, 4, 5, 6, 7, 8, 9, 17, 21, 24, 25, 26, 28, 29, 30, 35, 39, 67, 68, 69, 70, 72}; !slices.Equal(without, want) {
		t.Errorf("without a form are %v", without)
	}
}

func TestFormOutputKeepsSchemaOrderAndDigits(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["z","o","l"],"properties":{"z":{"type":"string"},"n":{"type":"number"},"b":{"type":"boolean"},"e":{"enum":["x",7]},` +
		`"o":{"type":"object","properties":{"i":{"type":"integer"}}},"l":{"type":"array","items":{"type":"string"}},"v":{"anyOf":[{"type":"string"},{"type":"object","title":"T","properties":{"q":{"type":"string"}},"required":["q"]}]},"u":{"type":["string","null"]}}}`)
	got, faults := form.New(schema, form.Values{"a.1": " 1.10 ", "a.2": "false", "a.3": "1", "a.5.n": "2", "a.5.0": "p", "a.6": "1", "a.6.v1.0": "w", "a.7.z": "1"}).JSON()
	const want = `{"z":"","n":1.10,"b":false,"e":7,"o":{},"l":["p",""],"v":{"q":"w"},"u":null}`
	var compact []byte
	for _, c := range got {
		if c != ' ' && c != '\n' {
			compact = append(compact, c)
		}
	}
	if string(compact) != want || len(faults) > 0 {
		t.Errorf("it is %s %v", compact, faults)
	}
	if _, faults = form.New(schema, form.Values{"a.1": "one"}).JSON(); len(faults) != 1 || faults[0].Label != "n" {
		t.Errorf("a number that is none: %v", faults)
	}
}

func TestFormReportsDocumentsItCannotRepresent(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}}}`)
	for document, want := range map[string]bool{
		`{"a":"x","n":1}`: true, `{"n":1, "a":"x"}`: true, `{"a":"x","other":1}`: false, `{"a":1}`: false, `[]`: false, `{`: false, `{"a":""}`: false, `{"n":1.0}`: true,
		`{"a":"x\ny"}`: true, `{"a":"x\r\ny"}`: false, `{"a":"x\ry"}`: false, `{"a":"\u0000"}`: false, `{"a":"\ud800"}`: false,
	} {
		if _, whole := form.Fill(schema, json.RawMessage(document)); whole != want {
			t.Errorf("%s is held whole: %v", document, whole)
		}
	}
}

func FuzzAFormOfAnySchemaIsBounded(f *testing.F) {
	for _, schema := range hostile {
		if len(schema) < 4096 {
			f.Add([]byte(schema), []byte(`{"a":"x"}`))
		}
	}
	f.Fuzz(func(t *testing.T, schema, document []byte) {
		got := form.New(schema, nil)
		first, _ := got.JSON()
		if !json.Valid(first) {
			t.Fatalf("no JSON: %q", first)
		}
		values, whole := form.Fill(schema, document)
		again, _ := form.New(schema, values).JSON()
		if !json.Valid(again) {
			t.Fatalf("no JSON: %q", again)
		}
		if whole && got.Root == nil && string(again) != "{}" {
			t.Fatalf("%q has no form and holds %q", schema, document)
		}
	})
}
