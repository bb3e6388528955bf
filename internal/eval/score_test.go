package eval

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func scoreAnswer(sample *Sample, response *Response, reward *Reward) Score {
	return Prepare(sample).Score(response, reward)
}

func block(name string) string {
	return `<tool_call>` + "\n" + `{"name": "` + name + `", "arguments": {"x": 1}}` + "\n</tool_call>"
}

// answers are texts with what they score, for the tools a, b and c of which a and b are expected.
var answers = []struct {
	name, text                 string
	strict, published, lenient Type
	f1                         float64 // at the published level
	selection, format          float64
}{
	{"both", block("a") + block("b"), TypeCorrect, TypeCorrect, TypeCorrect, 1, 2, 1},
	{"other order, twice", "Sure.\n" + block("B") + block("a") + block("a"), TypeCorrect, TypeCorrect, TypeCorrect, 1, 2, 1},
	{"one missing", block("a"), TypePartial, TypePartial, TypePartial, 2.0 / 3, 2.0 / 3, 1},
	{"one too many", block("a") + block("b") + block("c"), TypePartial, TypePartial, TypePartial, 0.8, 0.8, 1},
	{"wrong", block("c"), TypeWrong, TypeWrong, TypeWrong, 0, -1, 1},
	{"no such tool", block("z"), TypeWrong, TypeWrong, TypeWrong, 0, -1, 1},
	{"nothing", "I cannot help.", TypeNone, TypeNone, TypeNone, 0, -1.5, -1},
	{"empty", "", TypeNone, TypeNone, TypeNone, 0, -1.5, -1},
	{"no tags", `{"name":"a","arguments":{}} {"name":"b","arguments":{}}`, TypeNone, TypeFormat, TypeCorrect, 0, 2, -0.25},
	{"repaired", `<tool_call>{'name':'a','arguments':{}}</tool_call><tool_call>{'name':'b','arguments':{}}</tool_call>`, TypeNone, TypeFormat, TypeCorrect, 0, 2, -0.5},
	{"one repaired", block("a") + `<tool_call>{'name':'b','arguments':{}}</tool_call>`, TypePartial, TypePartial, TypeCorrect, 2.0 / 3, 2, 0.25},
	{"no name", `<tool_call>{"arguments":{}}</tool_call>`, TypeNone, TypeNone, TypeNone, 0, -1.5, -0.5},
	{"name is no text", `<tool_call>{"name":["a"]}</tool_call>`, TypeNone, TypeNone, TypeNone, 0, -1.5, -0.5},
	{"not closed", `<tool_call>{"name":"a","arguments":{"x":`, TypeNone, TypeNone, TypeNone, 0, -1.5, -0.5},
}

func TestAnswersAreScored(t *testing.T) {
	sample := &Sample{ID: "1", Tools: toolsNamed("a", "b", "c"), Expected: []string{"a", "b"}}
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			s := scoreAnswer(sample, &Response{ID: "1", Text: a.text}, preset(t, DefaultReward))
			if s.Strict.Type != a.strict || s.Published.Type != a.published || s.Lenient.Type != a.lenient {
				t.Errorf("types %s, %s, %s", s.Strict.Type, s.Published.Type, s.Lenient.Type)
			}
			if math.Abs(s.Published.F1-a.f1) > 1e-12 || s.Published.Accuracy != map[bool]float64{true: 1}[a.published == TypeCorrect] {
				t.Errorf("%+v", s.Published)
			}
			if math.Abs(s.Reward.Selection-a.selection) > 1e-12 || math.Abs(s.Reward.Format-a.format) > 1e-12 || math.Abs(s.Reward.Total-a.selection-a.format) > 1e-12 {
				t.Errorf("reward %+v", s.Reward)
			}
		})
	}
}

func TestCallsOfProvidersCountAtAllLevels(t *testing.T) {
	sample := &Sample{ID: "1", Tools: toolsNamed("a", "b"), Expected: []string{"a"}}
	for _, message := range []string{
		`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"a","input":{}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}}}]}}]}`,
	} {
		s := scoreAnswer(sample, &Response{ID: "1", Message: json.RawMessage(message)}, preset(t, DefaultReward))
		if s.Strict.Type != TypeCorrect || s.Published.Type != TypeCorrect || s.Lenient.Type != TypeCorrect || s.Reward.Total != 3 {
			t.Errorf("%s: %+v", message, s)
		}
	}
	s := scoreAnswer(sample, &Response{ID: "1", Message: json.RawMessage(`{"role":"assistant","content":"no"}`)}, preset(t, DefaultReward))
	if s.Published.Type != TypeNone {
		t.Errorf("%+v", s)
	}
}

func TestNoToolExpected(t *testing.T) {
	sample := &Sample{ID: "1", Tools: toolsNamed("a")}
	for text, want := range map[string]struct {
		published, lenient float64
		reward             Rewarded
	}{
		"It is 4.":                       {1, 1, Rewarded{Selection: 2, Total: 2}},
		block("a"):                       {0, 0, Rewarded{Selection: -1, Format: 1}},
		`{"name": "a", "arguments": {}}`: {0, 0, Rewarded{Selection: -1, Format: -0.25, Total: -1.25}},
	} {
		s := scoreAnswer(sample, &Response{Text: text}, preset(t, DefaultReward))
		if s.Published.F1 != want.published || s.Lenient.Accuracy != want.lenient || s.Reward != want.reward {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

func TestCountsOfAnAnswer(t *testing.T) {
	sample := &Sample{Tools: toolsNamed("a", "b", "c"), Expected: []string{"a", "b", "A"}}
	s := scoreAnswer(sample, &Response{Text: block("a") + block("c") + block("a") + block("a")}, preset(t, DefaultReward))
	if s.Published.Extra != 1 || s.Published.Missing != 1 || s.Published.Repeated != 2 || !slices.Equal(s.Called, []string{"a", "c"}) || !slices.Equal(s.Expected, []string{"a", "b"}) {
		t.Errorf("%+v", s)
	}
}

func TestTheRewardsOfPresetsStayInTheirRange(t *testing.T) {
	if got := RewardNames(); !slices.Equal(got, []string{"default-1", "execution-1", "format-1", "selection-1"}) {
		t.Fatal(got)
	}
	sample := &Sample{Tools: toolsNamed("a", "b", "c"), Expected: []string{"a", "b"}}
	for _, a := range answers {
		full := scoreAnswer(sample, &Response{Text: a.text}, preset(t, "default-1")).Reward
		if full.Total < -2.5 || full.Total > 3 {
			t.Errorf("%s: %v", a.name, full)
		}
		if sel := scoreAnswer(sample, &Response{Text: a.text}, preset(t, "selection-1")).Reward; sel.Total != full.Selection {
			t.Errorf("%s: selection alone is %v", a.name, sel)
		}
		if form := scoreAnswer(sample, &Response{Text: a.text}, preset(t, "format-1")).Reward; form.Total != full.Format {
			t.Errorf("%s: format alone is %v", a.name, form)
		}
	}
}

func TestAFaultyRewardIsAnError(t *testing.T) {
	for _, text := range []string{"", "{", `{"name":"x","near":1}`, `{"name":"x","selection":{"extraction":"other"}}`, `{"selection":{"extraction":"strict"}}`} {
		if _, err := ParseReward([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	if _, err := RewardPreset("../default-1"); err == nil || !strings.Contains(err.Error(), "default-1, execution-1, format-1, selection-1") {
		t.Error(err)
	}
}

func FuzzAnyAnswerHasAScore(f *testing.F) {
	for _, a := range answers {
		f.Add(a.text, "")
	}
	f.Add("", `{"tool_calls":[{"function":{"name":"a","arguments":"{"}}]}`)
	sample := &Sample{ID: "1", Tools: toolsNamed("a", "b", "c"), Expected: []string{"a", "b"}}
	f.Fuzz(func(t *testing.T, text, message string) {
		s := scoreAnswer(sample, &Response{Text: text, Message: json.RawMessage(message)}, preset(t, DefaultReward))
		for _, level := range Levels() {
			at := s.At(level)
			for _, v := range []float64{at.Precision, at.Recall, at.F1, at.Accuracy} {
				if !(v >= 0 && v <= 1) {
					t.Errorf("%s: %+v", level, at)
				}
			}
			if at.Extra < 0 || at.Missing < 0 || at.Repeated < 0 || (at.Accuracy == 1) != (at.Type == TypeCorrect) {
				t.Errorf("%s: %+v", level, at)
			}
		}
		if s.Lenient.Recall < s.Strict.Recall && len(text) < 1<<20 {
			t.Errorf("lenient reading finds less: %+v", s)
		}
		if s.Reward.Total < -2.5 || s.Reward.Total > 3 {
			t.Errorf("reward %v", s.Reward)
		}
	})
}

// One core must score 5,000 samples a second.
func BenchmarkScore(b *testing.B) {
	var tools []Tool
	for i := range 40 {
		tools = append(tools, Tool{Name: fmt.Sprint("tool_", i), Server: fmt.Sprint("server", i%4), Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`)})
	}
	sample := &Sample{ID: "1", Tools: tools, Expected: []string{"tool_3"}}
	response := &Response{Text: strings.Repeat("I think about which of the tools fits the question. ", 20) + block("tool_3")}
	reward := preset(b, DefaultReward)
	for b.Loop() {
		scoreAnswer(sample, response, reward)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

func TestAnyOfTheExpectedTools(t *testing.T) {
	sample := &Sample{Tools: toolsNamed("a", "b", "c"), Expected: []string{"a", "b"}, AnyExpected: true}
	for text, want := range map[string]Type{block("a"): TypeCorrect, block("b") + block("a"): TypeCorrect, block("a") + block("c"): TypePartial, block("c"): TypeWrong, "no": TypeNone} {
		if s := scoreAnswer(sample, &Response{Text: text}, preset(t, DefaultReward)); s.Published.Type != want {
			t.Errorf("%s: %+v", text, s.Published)
		}
	}
}

func TestSimilarToolsAreScoredSeparately(t *testing.T) {
	sample := &Sample{
		Tools: toolsNamed("playwright_click", "puppeteer_click", "other"), Expected: []string{"playwright_click", "other"},
		Labels: []LabelledCall{{Name: "playwright_click", Similar: []string{"puppeteer_click"}}, {Name: "other"}},
	}
	for text, want := range map[string][2]float64{
		block("playwright_click") + block("other"): {1, 1}, block("puppeteer_click") + block("other"): {0, 1}, block("puppeteer_click"): {0, 0},
		block("puppeteer_click") + block("other") + block("z"): {0, 0}, "": {0, 0},
		`{"name":"puppeteer_click","arguments":{}} {"name":"other","arguments":{}}`: {0, 0}, // not well-formed
	} {
		s := scoreAnswer(sample, &Response{Text: text}, preset(t, DefaultReward))
		if s.Published.Accuracy != want[0] || s.Similar == nil || *s.Similar != want[1] {
			t.Errorf("%s: %v, %v", text, s.Published.Accuracy, s.Similar)
		}
	}
	sample.Labels[0].Similar = nil
	if s := scoreAnswer(sample, &Response{}, preset(t, DefaultReward)); s.Similar != nil {
		t.Error("nothing is similar")
	}
}
