package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestThePublishedFiguresAreRead(t *testing.T) {
	figures, err := readPublished(publishedText)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range registryKinds() {
		if figures["registry/"+kind].Value == 0 {
			t.Errorf("there is no published figure for %s", kind)
		}
	}
	for _, wrong := range []string{`[]`, `{"a": {"value": 0, "source": "x"}}`, `{"a": {"value": 1}}`} {
		if _, err := readPublished([]byte(wrong)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestComparisonRowIsAheadOrMissed(t *testing.T) {
	for _, c := range []struct {
		row       comparison
		published float64
		text      string
		holds     bool
	}{
		{comparison{ours: 1, theirs: 2}, 0, "ahead", true},
		{comparison{ours: 3, theirs: 2}, 9, "MISSED", false}, // the peer measured in the same run takes precedence
		{comparison{ours: 3, theirs: 2, more: true}, 9, "ahead", true},
		{comparison{ours: 1, theirs: 2, more: true}, 0, "MISSED", false},
		{comparison{ours: 0.9, theirs: 1, share: 0.8}, 0, "MISSED: at most 0.8 of it", false},
		{comparison{ours: 0.8, theirs: 1, share: 0.8}, 0, "ahead", true},
		{comparison{ours: 3}, 2, "MISSED", false},
		{comparison{ours: 2}, 2, "equal to the published", true},
		{comparison{ours: 2, theirs: 2}, 3, "equal", true},
		{comparison{ours: 1}, 2, "ahead of the published", true},
		{comparison{ours: 3, most: 2.5}, 3.6, "MISSED: at most 2.50", false},
		{comparison{ours: 2, most: 2.5}, 3.6, "ahead of the published", true},
		{comparison{ours: 2, most: 2.5}, 0, "holds", true},
		{comparison{ours: 3, theirs: 2, shown: true}, 0, "", true},
		{comparison{note: "nothing is there"}, 5, "not measured: nothing is there", true},
		{comparison{ours: 3}, 0, "", true},
	} {
		if text, holds := c.row.verdict(c.published); text != c.text || holds != c.holds {
			t.Errorf("%+v, published %v: %q, %v; want %q, %v", c.row, c.published, text, holds, c.text, c.holds)
		}
	}
}

func TestTableOfPublishedBenchmarkIsWritten(t *testing.T) {
	figures := publishedFigures{}
	if err := json.Unmarshal([]byte(`{"a": {"value": 3.6, "source": "a paper"}}`), &figures); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err := writeComparisons(&b, []comparison{
		{key: "a", part: "risk", what: "medium", unit: "ms", ours: 1.25, most: 2.5},
		{part: "load", what: "c=1", unit: "calls/s", more: true, against: "peer", theirs: 1000, ours: 900},
	}, figures)
	if err == nil || err.Error() != "not ahead: load, c=1" {
		t.Errorf("the error is %v", err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	want := [][]string{
		{"part", "what", "unit", "published", "measured", "with", "it", "ours", "ours", "÷", "that"},
		{"risk", "medium", "ms", "3.60", "–", "1.25", "–", "ahead", "of", "the", "published"},
		{},
		{"load", "c=1", "calls/s", "–", "peer", "1000", "900", "0.90", "MISSED"},
	}
	for i, fields := range want {
		if got := strings.Fields(lines[2+i]); strings.Join(got, " ") != strings.Join(fields, " ") {
			t.Errorf("line %d is %q, want %q", i, got, fields)
		}
	}
}

func TestTheRatesOfToolRegistryAreRead(t *testing.T) {
	best, err := parseRegistry([]byte("a line of a library\n" + `{"thread": {"native": 3, "class": 8, "openapi": 2, "mcp": 1}, "process": {"native": 1, "openapi": 4}}` + "\n"))
	if err != nil || best["native"] != 3 || best["class"] != 8 || best["openapi"] != 4 || best["mcp"] != 1 {
		t.Errorf("the rates are %v (%v)", best, err)
	}
	for _, wrong := range []string{"", "no JSON", `{"thread": {"native": 3}}`} {
		if _, err := parseRegistry([]byte(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestHeldCallAnswerLeadsToConfirmationPath(t *testing.T) {
	for body, want := range map[string]string{
		`{"requires_confirmation":true,"confirmation_id":"cyt_1"}`: "/confirmations/cyt_1",
		`{"content":[]}`:              "",
		`{"confirmation_id":"../x"}`:  "",
		`not JSON`:                    "",
		`{"confirmation_id":"a\r\n"}`: "",
	} {
		if path, err := confirmationPath(answer{status: 202, body: []byte(body)}); path != want || (err == nil) != (want != "") {
			t.Errorf("%s leads to %q (%v), want %q", body, path, err, want)
		}
	}
	if _, err := confirmationPath(answer{status: 500, body: []byte(`{"confirmation_id":"a"}`)}); err == nil {
		t.Error("a failure is taken for a held call")
	}
}

func TestLinesAreCounted(t *testing.T) {
	if n := countLines("// a\npackage main\n\nimport (\n\t\"fmt\"\n)\n\nfunc main() {\n\tfmt.Println()\n}\n# b\n{}\n"); n != 2 {
		t.Errorf("%d lines are counted, want 2", n)
	}
	for kind, files := range exampleFiles() {
		for _, name := range files {
			text, err := examples.ReadFile("lines/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".json") && !json.Valid(text) {
				t.Errorf("%s of %s is not JSON", name, kind)
			}
		}
	}
}

// The only part without external requirements: functions and methods, 100 concurrent calls.
func TestNativeFunctionsAreCalledConcurrently(t *testing.T) {
	rates, err := nativeRates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"native", "class"} {
		if rates[kind] <= 0 {
			t.Errorf("the rate of %s is %v", kind, rates[kind])
		}
	}
}
