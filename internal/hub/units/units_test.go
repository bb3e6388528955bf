package units

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch/native"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func call(t *testing.T, tool string, arguments map[string]any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range Tools() {
		if one.Name == tool {
			r, err := one.Call(t.Context(), &native.Call{Arguments: raw})
			if err != nil {
				return "", err
			}
			var body struct{ Content []struct{ Text string } }
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			return body.Content[0].Text, nil
		}
	}
	t.Fatalf("no tool %s", tool)
	return "", nil
}

// TestConversionsAgreeWithTheReference compares with the output of testdata/golden.py.
func TestConversionsAgreeWithTheReference(t *testing.T) {
	raw, err := os.ReadFile("../testdata/conversions.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][4]any
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range cases {
		name, v, area, want := c[0].(string), c[1].(float64), c[2].(float64), c[3].(float64)
		in := convertArguments{Value: v, Conversion: name}
		if area != 0 {
			in.Area = &area
		}
		got, err := convert(t.Context(), nil, in)
		if err != nil || math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s of %v, area %v: %v, %v; the reference has %v", name, v, area, got, err, want)
		}
		seen[name]++
	}
	if len(seen) != 41 || len(conversions()) != 41 {
		t.Errorf("the reference has %d conversions and the table %d, want 41", len(seen), len(conversions()))
	}
}

func TestErrorsNameTheFault(t *testing.T) {
	for want, arguments := range map[string]map[string]any{
		"there is no conversion":      {"value": 1, "conversion": "a_to_b"},
		"needs the area":              {"value": 1, "conversion": "lux_to_lumen"},
		"has no area":                 {"value": 1, "conversion": "bits_to_bytes", "area": 2},
		"must be above 0":             {"value": 1, "conversion": "lumen_to_lux", "area": 0},
		"too large":                   {"value": 1e308, "conversion": "tesla_to_gauss"},
		"arguments do not fit":        {"value": "1", "conversion": "bits_to_bytes"},
		`unknown field "conversions"`: {"conversions": "x"},
	} {
		if _, err := call(t, "convert", arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}

func TestEveryConversionIsListedInOneCategoryAndDescribed(t *testing.T) {
	total := 0
	for _, category := range categories() {
		text, err := call(t, "list_conversions", map[string]any{"category": category})
		var names []string
		if err != nil || json.Unmarshal([]byte(text), &names) != nil || len(names) == 0 {
			t.Errorf("%s: %q, %v", category, text, err)
		}
		total += len(names)
	}
	if total != 41 {
		t.Errorf("the categories have %d conversions", total)
	}
	all, err := call(t, "help", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	described, err := call(t, "list_conversions", map[string]any{"with_help": true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conversions() {
		one, err := call(t, "help", map[string]any{"fn_name": c.name})
		if err != nil || !strings.Contains(one, c.doc) || !strings.Contains(all, c.doc) || !strings.Contains(described, c.doc) {
			t.Errorf("%s: %q, %v", c.name, one, err)
		}
	}
	if _, err := call(t, "list_conversions", map[string]any{"category": "x"}); err == nil {
		t.Error("a category that is not there is listed")
	}
	if text, err := call(t, "convert", map[string]any{"value": 100, "conversion": "celsius_to_fahrenheit"}); err != nil || text != `{"result":212}` {
		t.Error(text, err)
	}
}
