package toy

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestThePageHasEveryCurve(t *testing.T) {
	r := &Report{Version: "test", Settings: Defaults(), Seeds: 5}
	for _, method := range Methods() {
		for _, reward := range Rewards() {
			for seed := range 5 {
				low, high := wilson(80, 100)
				r.Curves = append(r.Curves, &Curve{Method: method, Reward: reward, Seed: uint64(seed), Points: []Point{{Step: 0, Right: 2, Of: 100, High: 0.07}, {Step: 500, Right: 80, Of: 100, Low: low, High: high}}})
			}
		}
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "<polyline"); n != 60 {
		t.Errorf("the page has %d curves", n)
	}
	if n := strings.Count(text, "5 of 5"); n != 12 {
		t.Errorf("the page has %d rows with all seeds apart", n)
	}
	for _, bad := range []string{"<script", "http://", "https://", "NaN", "ZgotmplZ"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	r.Curves[0].Points[1].Right = 70
	if r.Check() == nil {
		t.Error("a run that did not learn passes")
	}
}

func TestIntervalsAreWilsonIntervals(t *testing.T) {
	// From the table of Newcombe (1998): 81 of 263 is 0.2553 to 0.3662, 0 of 20 is 0 to 0.1611.
	for _, c := range []struct {
		right, of int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {0, 20, 0, 0.1611}} {
		if low, high := wilson(c.right, c.of); math.Abs(low-c.low) > 1e-4 || math.Abs(high-c.high) > 1e-4 {
			t.Errorf("%d of %d: %.4f to %.4f", c.right, c.of, low, high)
		}
	}
}

func TestTaskSplitsAreDisjointAndReproducible(t *testing.T) {
	all, again := Tasks(80), Tasks(80)
	split := make(map[string]string)
	for i := range all {
		if known, found := split[all[i].Question]; found && known != all[i].Split {
			t.Errorf("%q is in two splits", all[i].Question)
		}
		split[all[i].Question] = all[i].Split
		if all[i].Question != again[i].Question {
			t.Fatalf("%q was %q before", again[i].Question, all[i].Question)
		}
	}
	if train, held := splitOf(all, "train"), splitOf(all, "held-out"); len(held) < len(all)/6 || len(train)+len(held) != len(all) {
		t.Errorf("%d questions for training and %d held out", len(train), len(held))
	}
}

// TestEachMethodRaisesProbabilityOfRewardedChoices lets each method learn from rewards that are computed here.
func TestEachMethodRaisesProbabilityOfRewardedChoices(t *testing.T) {
	for _, method := range Methods() {
		p := newPolicy(3)
		f := featuresOf("which tool is meant")
		for range 100 {
			g := &group{features: f}
			for _, c := range []choice{{formTagged, 0}, {formTagged, 1}, {formNone, 0}, {formFenced, 1}} {
				s := sample{choice: c, old: p.probabilities(f, c)}
				if c.form == formTagged {
					s.reward += 0.5
				}
				if c.form != formNone && c.tool == 1 {
					s.reward += 0.5
				}
				g.samples = append(g.samples, s)
			}
			g.samples = append(g.samples, sample{choice: choice{formMalformed, 2}, old: []float64{1, 1}, reward: 100, masked: true})
			p.learn(method, []*group{g}, 2, 2)
		}
		got := p.probabilities(f, choice{formTagged, 1})
		if got[0]*got[1] < 0.8 {
			t.Errorf("%s: the right answer has the probabilities %v", method, got)
		}
	}
}

func TestMaskedEpisodesAreNotCounted(t *testing.T) {
	p, lost := pointOf(3, []bool{true, false, false, true}, []bool{false, false, true, false})
	if p.Step != 3 || p.Right != 2 || p.Of != 3 || lost != 1 {
		t.Errorf("%+v, %d lost", p, lost)
	}
	of := func(rewards ...float64) *group {
		g := &group{}
		for _, r := range rewards {
			g.samples = append(g.samples, sample{reward: r, masked: r < 0})
		}
		return g
	}
	groups := []*group{of(0.2, 0.4), of(0.6, 0.8), of(0.5, 0.6)}
	if got, want := betaOf(append(groups, of(-1, -1))), betaOf(groups); got != want || got == (beta{1, 1}) {
		t.Errorf("with a masked group %v, without it %v", got, want)
	}
}
