package eval

import (
	"math"
	"testing"

	"github.com/callyard/callyard/internal/eval/stats"
)

// published is what the paper on MCP Bridge (arXiv, version 3) prints for its two base
// models: the failure counts of Table 7, the means of Table 6 and the intervals of Table 10.
// Of 300 samples, partial answers name one tool too many.
var published = []struct {
	model                     string
	correct, partial, failed  int
	precision, recall         float64
	f1, f1Low, f1High         float64
	accuracy, accLow, accHigh float64
	rescued                   int // some of the failed ones, "Fmt. heuristic": 6.3 %
	f1OfMeans                 float64
}{
	{"4B base", 186, 3, 111, 62.5, 63.0, 62.7, 57.2, 68.0, 62.0, 56.3, 67.3, 19, 62.7},
	{"8B base", 206, 13, 81, 70.8, 73.0, 71.6, 66.6, 76.4, 68.7, 63.3, 74.0, 19, 71.9},
}

func TestThePublishedTablesFollowFromThePublishedCounts(t *testing.T) {
	sample := &Sample{Tools: toolsNamed("a", "b"), Expected: []string{"a"}}
	prepared, reward := Prepare(sample), preset(t, DefaultReward)
	for _, p := range published {
		t.Run(p.model, func(t *testing.T) {
			columns := make([][]float64, 4)
			add := func(n int, text string, want Type) {
				s := prepared.Score(&Response{Text: text}, reward)
				if s.Published.Type != want {
					t.Fatalf("%s is %s, want %s", text, s.Published.Type, want)
				}
				for range n {
					for k, v := range []float64{s.Published.Precision, s.Published.Recall, s.Published.F1, s.Published.Accuracy} {
						columns[k] = append(columns[k], v)
					}
				}
			}
			add(p.correct, block("a"), TypeCorrect)
			add(p.partial, block("a")+block("b"), TypePartial)
			add(p.rescued, `{"name":"a","arguments":{}}`, TypeFormat) // right, but rescued: it counts as 0
			add(p.failed-p.rescued, "None fits.", TypeNone)
			got, err := stats.Bootstrap(t.Context(), columns, stats.Options{})
			if err != nil {
				t.Fatal(err)
			}
			within := func(what string, got, want, by float64) {
				if math.Abs(100*got-want) > by {
					t.Errorf("%s is %.2f, published %.1f", what, 100*got, want)
				}
			}
			const rounded = 0.05 + 1e-9
			within("precision", got[0].Mean, p.precision, rounded)
			within("recall", got[1].Mean, p.recall, rounded)
			within("F1", got[2].Mean, p.f1, rounded)
			within("accuracy", got[3].Mean, p.accuracy, rounded)
			within("low end of F1", got[2].Low, p.f1Low, 0.5)
			within("high end of F1", got[2].High, p.f1High, 0.5)
			within("low end of accuracy", got[3].Low, p.accLow, 0.5)
			within("high end of accuracy", got[3].High, p.accHigh, 0.5)

			// The test would notice another definition: F1 of the mean precision and recall.
			ofMeans := 2 * got[0].Mean * got[1].Mean / (got[0].Mean + got[1].Mean)
			if math.Abs(100*ofMeans-p.f1OfMeans) > rounded {
				t.Errorf("F1 of the means is %.2f", 100*ofMeans)
			}
		})
	}
	if p := published[1]; math.Abs(p.f1OfMeans-p.f1) < 0.1 {
		t.Error("the F1 of means passes for the published one")
	}
}
