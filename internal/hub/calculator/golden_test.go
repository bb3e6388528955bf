package calculator

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestExpressionsAgreeWithTheReference compares with the output of testdata/golden.py.
func TestExpressionsAgreeWithTheReference(t *testing.T) {
	f, err := os.Open("../testdata/expressions.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]*string
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 2000 {
		t.Fatalf("only %d cases", len(cases))
	}
	worst, failures := 0.0, 0
	for _, c := range cases {
		got, err := evaluate(*c[0])
		if c[1] == nil {
			failures++
			if err == nil {
				t.Errorf("%s = %s; the reference fails", *c[0], format(got))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v; the reference has %s", *c[0], err, *c[1])
			continue
		}
		off, same := differ(t, got, *c[1])
		if !same || off > 1e-12 {
			t.Errorf("%s = %s; the reference has %s", *c[0], format(got), *c[1])
		}
		worst = math.Max(worst, off)
	}
	t.Logf("%d expressions, %d fail in both, largest relative difference %g", len(cases), failures, worst)
}

// differ compares the type and returns the relative difference of floats.
func differ(t *testing.T, got value, want string) (float64, bool) {
	kind, text, _ := strings.Cut(want, " ")
	switch kind {
	case "list":
		parts := strings.Split(text, "; ")
		list, ok := got.([]value)
		if !ok || len(list) != len(parts) {
			return 0, false
		}
		worst := 0.0
		for i, part := range parts {
			off, same := differ(t, list[i], part)
			if !same {
				return 0, false
			}
			worst = math.Max(worst, off)
		}
		return worst, true
	case "bool":
		return 0, got == (text == "True")
	case "int", "hex":
		base := map[string]int{"int": 10, "hex": 16}[kind]
		n, ok := new(big.Int).SetString(text, base)
		if !ok {
			t.Fatal(want)
		}
		i, ok := got.(*big.Int)
		return 0, ok && i.Cmp(n) == 0
	}
	w, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	g, ok := got.(float64)
	switch {
	case !ok:
		return 0, false
	case math.IsNaN(w) || math.IsInf(w, 0) || w == 0:
		return 0, g == w && math.Signbit(g) == math.Signbit(w) || math.IsNaN(g) && math.IsNaN(w)
	}
	return math.Abs(g-w) / math.Abs(w), true
}
