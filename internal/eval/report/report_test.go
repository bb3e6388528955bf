package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run scores answers to n samples in three categories of different sizes. right says whether
// trial t of sample i calls the expected tool.
func run(t testing.TB, n, trials int, right func(i, trial int) bool) []stage.Score {
	t.Helper()
	reward, err := eval.RewardPreset(eval.DefaultReward)
	if err != nil {
		t.Fatal(err)
	}
	var samples []eval.Sample
	var responses []stage.Response
	for i := range n {
		category := []string{"map", "<b>pay</b>", "web"}[min(i%4, 2)]
		samples = append(samples, eval.Sample{ID: fmt.Sprint("s", i), Category: category, Tools: []eval.Tool{{Name: "a"}, {Name: "b"}}, Expected: []string{"a"}})
		for trial := range trials {
			name := "b"
			if right(i, trial) {
				name = "a"
			}
			text := `<tool_call>{"name":"` + name + `"}</tool_call>`
			responses = append(responses, stage.Response{Response: eval.Response{ID: fmt.Sprint("s", i), Trial: trial, Text: text}, Digest: text})
		}
	}
	digested, err := stage.WriteSamples(filepath.Join(t.TempDir(), "samples.jsonl"), samples)
	if err != nil {
		t.Fatal(err)
	}
	out, err := stage.Run(t.Context(), digested, responses, nil, stage.Settings{Reward: reward, Missing: stage.MissingError}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.Scores
}

func made(t testing.TB, scores []stage.Score, settings Settings) *Report {
	t.Helper()
	reward, err := eval.RewardPreset(eval.DefaultReward)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Make(t.Context(), scores, About{Version: "v1", Data: "jsonl:x", Scoring: stage.Settings{Reward: reward}}, settings)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func close(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestMicroAndMacroMeans(t *testing.T) {
	// Half of the samples are "web". Only they are right.
	r := made(t, run(t, 40, 1, func(i, _ int) bool { return i%4 >= 2 }), Settings{})
	l := r.At(eval.Published)
	if !close(l.Micro.Accuracy.Mean, 0.5) || !close(l.Macro.Accuracy.Mean, 1.0/3) {
		t.Errorf("micro %v, macro %v", l.Micro.Accuracy, l.Macro.Accuracy)
	}
	if l.Macro.Accuracy.Low != l.Macro.Accuracy.High || l.Micro.Accuracy.Low == l.Micro.Accuracy.High {
		t.Errorf("no category varies, the whole does: %v, %v", l.Macro.Accuracy, l.Micro.Accuracy)
	}
	if s := made(t, run(t, 40, 1, func(i, _ int) bool { return i%4 >= 2 }), Settings{Stratify: true}).At(eval.Published); s.Micro.Accuracy.Low != 0.5 {
		t.Errorf("within categories nothing varies: %v", s.Micro.Accuracy)
	}
	if len(l.Categories) != 3 || l.Categories[2].Name != "web" || l.Categories[2].Samples != 20 || l.Categories[2].Metrics.F1.Mean != 1 || l.Types[eval.TypeCorrect] != 20 || l.Types[eval.TypeWrong] != 20 {
		t.Errorf("%+v", l)
	}
	if len(r.Rewards) != 3 || !close(r.Rewards[0].Mean.Mean, 1.5) || !close(r.Rewards[1].Mean.Mean, 0.5) || !close(r.Rewards[2].Mean.Mean, 1) {
		t.Errorf("%+v", r.Rewards)
	}
}

func TestTrialsAreAveragedBeforeSamplesAreDrawn(t *testing.T) {
	// Each sample is right in one of two trials: between samples nothing varies.
	r := made(t, run(t, 20, 2, func(i, trial int) bool { return (i+trial)%2 == 0 }), Settings{})
	if a := r.At(eval.Published).Micro.Accuracy; a.Mean != 0.5 || a.Low != 0.5 || a.High != 0.5 {
		t.Errorf("%v", a)
	}
	if len(r.Pass) != 2 || r.Pass[0].AtLeastOne.Mean != 0.5 || r.Pass[1].AtLeastOne.Mean != 1 || r.Pass[1].All.Mean != 0 {
		t.Errorf("%+v", r.Pass)
	}
}

func TestAReportIsTheSameForTheSameInputs(t *testing.T) {
	scores := run(t, 60, 1, func(i, _ int) bool { return i%3 == 0 })
	one, two := made(t, scores, Settings{}), made(t, scores, Settings{})
	if !reflect.DeepEqual(one, two) {
		t.Error("two reports of the same scores differ")
	}
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, one) {
		t.Errorf("%v", err)
	}
	if other := made(t, scores, Settings{Seed: 1}); other.Inputs == one.Inputs {
		t.Error("another seed has the same digest")
	}
	scores[3].Inputs = "x"
	if other := made(t, scores, Settings{}); other.Inputs == one.Inputs {
		t.Error("another score has the same digest")
	}
	if _, err := Make(t.Context(), nil, About{}, Settings{}); err == nil {
		t.Error("a report of nothing")
	}
}

func TestEqualRunsHaveNoDifference(t *testing.T) {
	scores := run(t, 40, 1, func(i, _ int) bool { return i%2 == 0 })
	c, err := Compare(t.Context(), scores, scores, eval.Published, 0.02, Settings{})
	if err != nil || *c.McNemar != 1 || len(c.Gained)+len(c.Lost) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, d := range append(c.Metrics, c.Categories...) {
		if d.P != 1 || d.Adjusted != 1 || d.Mean != 0 || d.Name != "reward" && !d.Equivalent.Equivalent {
			t.Errorf("%+v", d)
		}
	}
}

func TestRunsAreComparedSampleBySample(t *testing.T) {
	a := run(t, 80, 1, func(i, _ int) bool { return i%2 == 0 })
	b := run(t, 90, 1, func(i, _ int) bool { return i%2 == 0 && i != 4 || i%5 == 1 })
	c, err := Compare(t.Context(), a[2:], b, eval.Published, 0, Settings{})
	if err != nil || c.Samples != 78 || c.OnlyA != 0 || c.OnlyB != 12 || len(c.Gained) != 7 || len(c.Lost) != 1 || c.Lost[0] != "s4" {
		t.Fatalf("%+v, %v", c, err)
	}
	if d := c.Metrics[3]; d.Name != "accuracy" || !close(d.Mean, 6.0/78) || !d.Exact || !close(d.P, *c.McNemar) || d.Adjusted < d.P {
		t.Errorf("%+v, McNemar %v", d, *c.McNemar)
	}
	a[5].Sample = "other"
	if _, err := Compare(t.Context(), a, b, eval.Published, 0, Settings{}); err == nil || !strings.Contains(err.Error(), `"s5" differs`) {
		t.Error(err)
	}
	if _, err := Compare(t.Context(), a[:1], b[1:], eval.Published, 0, Settings{}); err == nil {
		t.Error("nothing in common")
	}
}

func TestReportPageIsCompleteAndEscaped(t *testing.T) {
	a := run(t, 40, 2, func(i, _ int) bool { return i%2 == 0 })
	b := run(t, 40, 2, func(i, _ int) bool { return i%3 == 0 })
	a[2].Called = []string{`<script>alert(1)</script>`}
	c, err := Compare(t.Context(), a, b, eval.Published, 0, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Page{
		{Title: "<i>run</i>", Report: made(t, a, Settings{}), Scores: a, Level: eval.Published},
		{Title: "<i>run</i>", Report: made(t, a, Settings{}), Scores: a, Level: eval.Lenient, Other: b, OtherTitle: "other", Comparison: c},
	} {
		var out bytes.Buffer
		if err := p.Write(&out); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, never := range []string{"<script", "<i>run", "<b>pay", "http:", "https:", "ZgotmplZ", "%!", "NaN"} {
			if strings.Contains(text, never) {
				t.Errorf("the page has %q", never)
			}
		}
		for _, want := range []string{"&lt;script&gt;", "&lt;b&gt;pay", "<svg", "polygon", "pass^k", "McNemar", "hsl(", p.Report.Inputs} {
			if want == "McNemar" && p.Comparison == nil || want == "pass^k" && p.Report.Pass == nil {
				continue
			}
			if want == "McNemar" {
				want = "Samples that differ in the first trial" // with two trials there is no McNemar's test
			}
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}
}

func TestAccuracyWithSimilarTools(t *testing.T) {
	scores := run(t, 40, 1, func(i, _ int) bool { return i%2 == 0 })
	if r := made(t, scores, Settings{}); r.Similar != nil {
		t.Errorf("no tool is similar: %v", r.Similar)
	}
	one := 1.0
	for i := range 10 {
		scores[i].Similar = &one
	}
	r := made(t, scores, Settings{})
	if r.Similar == nil || !close(r.Similar.Mean, 25.0/40) {
		t.Errorf("%v", r.Similar)
	}
	var out bytes.Buffer
	if err := (&Page{Report: r, Scores: scores, Level: eval.Published}).Write(&out); err != nil || !strings.Contains(out.String(), "similar are accepted: 62.5 %") {
		t.Errorf("%v", err)
	}
}

func TestPassAtKIsGivenForFewSizes(t *testing.T) {
	for trials, want := range map[int]string{2: "[1 2]", 17: "[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17]", 100: "[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 32 64 100]"} {
		if got := fmt.Sprint(passSizes(trials)); got != want {
			t.Errorf("%d trials: %s, want %s", trials, got, want)
		}
	}
}
