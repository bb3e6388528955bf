package bfcl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/bfcl/bfcltest"
	"github.com/callyard/callyard/internal/eval/dataset"
)

// madeAnswers is the number of answers that are compared with the official checker.
const madeAnswers = 20_000

// made is one answer, as the script of testdata reads it.
type made struct {
	Category  string                       `json:"category"`
	Functions json.RawMessage              `json:"functions"`
	Answers   json.RawMessage              `json:"answers"`
	Calls     []map[string]json.RawMessage `json:"calls"`

	damage string
}

// TestTheOfficialCheckerAgrees makes answers from the possible answers of BFCL, damages most of
// them, and compares our verdicts with the official ones. CALLYARD_TEST_BFCL names a Python with
// bfcl-eval, which has the data too; scripts/test.sh installs it.
func TestTheOfficialCheckerAgrees(t *testing.T) {
	python, data := bfcltest.Official(t)
	samples, err := dataset.Read(data, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var checked []eval.Sample
	for _, s := range samples {
		if s.Check.Answers != nil {
			checked = append(checked, s)
		}
	}
	if len(samples) != 3641 || len(checked) != 2501 {
		t.Errorf("%d samples, %d with possible answers", len(samples), len(checked))
	}
	m := maker{rand.New(rand.NewPCG(3407, 20_000))}
	answers := madeAnswers
	if testing.Short() {
		answers /= 10
	}
	cases, input := make([]made, 0, answers), &bytes.Buffer{}
	for len(cases) < answers {
		c := m.answer(t, &checked[len(cases)%len(checked)])
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
		cases = append(cases, c)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/official.py")
	cmd.Stdin, cmd.Stderr = input, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	verdicts := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(verdicts) != len(cases) {
		t.Fatalf("%d verdicts for %d answers", len(verdicts), len(cases))
	}
	judge(t, cases, verdicts)
}

func judge(t *testing.T, cases []made, verdicts [][]byte) {
	t.Helper()
	valid, stopped, different, byDamage := 0, 0, 0, map[string][2]int{}
	for i, c := range cases {
		var official struct {
			Valid bool   `json:"valid"`
			Error string `json:"error_type"`
		}
		if err := json.Unmarshal(verdicts[i], &official); err != nil {
			t.Fatal(err)
		}
		var calls []Call
		for _, call := range c.Calls {
			for name, arguments := range call {
				calls = append(calls, Call{name, arguments})
			}
		}
		fault, err := Check(c.Category, c.Functions, c.Answers, calls, Options{})
		if err != nil {
			t.Fatal(err)
		}
		count := byDamage[c.damage]
		count[0]++
		if official.Valid {
			valid++
			count[1]++
		}
		byDamage[c.damage] = count
		if official.Error == "exception" {
			stopped++
		}
		// The type of the fault must be equal too. That of a valid answer means nothing.
		if official.Valid != (fault == "") || !official.Valid && official.Error != string(fault) {
			if different++; different <= 10 {
				text, _ := json.Marshal(c)
				t.Errorf("official: %v %q, ours %q, damage %s: %s", official.Valid, official.Error, fault, c.damage, text)
			}
		}
	}
	t.Logf("%d answers, %d valid, %d with an exception, %d differ; by damage (all, valid): %v", len(cases), valid, stopped, different, byDamage)
	if valid < len(cases)/10 || valid > len(cases)*9/10 || len(byDamage) < 12 {
		t.Error("the answers are not varied enough")
	}
}

// maker makes answers.
type maker struct{ *rand.Rand }

// answer is one for the sample: a right one with one kind of damage, or none.
func (m maker) answer(t *testing.T, s *eval.Sample) made {
	t.Helper()
	v, err := read(s.Check.Answers)
	if err != nil {
		t.Fatal(err)
	}
	functions, err := read(s.Check.Functions)
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	for _, item := range v.([]any) {
		answer := item.(*dict)
		name := answer.keys[0]
		arguments := &dict{}
		possible := answer.values[name].(*dict)
		for _, key := range possible.keys {
			if value, given := m.pick(possible.values[key].([]any)); given {
				arguments.set(key, value)
			}
		}
		calls = append(calls, call{name, arguments})
	}
	damages := m.damages(functions.([]any))
	kind := damages[m.IntN(len(damages))]
	if m.IntN(8) == 0 {
		kind = damages[0]
	}
	calls = kind.do(calls)
	out := made{Category: s.Check.Category, Functions: s.Check.Functions, Answers: s.Check.Answers, Calls: []map[string]json.RawMessage{}, damage: kind.name}
	for _, c := range calls {
		if l := languageOf(s.Check.Category); l != python {
			m.spell(l, functions.([]any), c.parameters)
		}
		out.Calls = append(out.Calls, map[string]json.RawMessage{c.name: encode(c.parameters)})
	}
	return out
}

// pick chooses a possible value; given is false for one that is left out.
func (m maker) pick(possible []any) (value any, given bool) {
	if len(possible) == 0 {
		return "", true
	}
	value = possible[m.IntN(len(possible))]
	if value == "" {
		return nil, m.IntN(20) == 0 && len(possible) > 1
	}
	return m.concrete(value), true
}

// concrete chooses the members of objects, for which the possible answers have lists.
func (m maker) concrete(v any) any {
	switch v := v.(type) {
	case *dict:
		out := &dict{}
		for _, key := range v.keys {
			list, ok := v.values[key].([]any)
			if !ok {
				out.set(key, v.values[key])
			} else if value, given := m.pick(list); given {
				out.set(key, value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.concrete(v[i])
		}
		return out
	}
	return v
}

func encode(v any) json.RawMessage {
	switch v := v.(type) {
	case *dict:
		parts := make([]string, len(v.keys))
		for i, key := range v.keys {
			name, _ := json.Marshal(key)
			parts[i] = string(name) + ":" + string(encode(v.values[key]))
		}
		return json.RawMessage("{" + strings.Join(parts, ",") + "}")
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = string(encode(v[i]))
		}
		return json.RawMessage("[" + strings.Join(parts, ",") + "]")
	case *big.Int:
		return json.RawMessage(v.String())
	case float64:
		text := fmt.Sprint(v)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.RawMessage(text)
	}
	text, _ := json.Marshal(v)
	return text
}
