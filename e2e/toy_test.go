package e2e

import (
	"testing"

	"github.com/callyard/callyard/e2e/toy"
)

// startToy starts the environments of the toy.
func startToy(t *testing.T, tasks []toy.Task) *environments {
	t.Helper()
	text, err := toy.TasksFile(tasks)
	if err != nil {
		t.Fatal(err)
	}
	return startEnv(t, "", map[string]string{"env.yaml": toy.EnvironmentsFile, toy.TasksName: string(text)})
}

// TestToolCallsAreLearnedOnlyWithTheFullReward is a short make train-toy: with the whole reward, a
// policy learns the tools and the form of calls; with half of it, it does not.
func TestToolCallsAreLearnedOnlyWithTheFullReward(t *testing.T) {
	tasks := toy.Tasks(80)
	e := startToy(t, tasks)
	set := toy.Defaults()
	set.Steps, set.EvaluateEvery = 200, 200
	for _, c := range []struct {
		reward      string
		least, most float64
	}{{toy.Full, 0.5, 1}, {toy.Selection, 0, 0.4}, {toy.Format, 0, 0.3}} {
		set.Reward = c.reward
		curve, err := toy.Train(t.Context(), e.url, tasks, set)
		if err != nil {
			t.Fatal(err)
		}
		first, last := curve.First(), curve.Last()
		t.Logf("%s: from %.3f to %.3f of %d questions", c.reward, first.Accuracy(), last.Accuracy(), last.Of)
		if first.Accuracy() > 0.05 || last.Accuracy() < c.least || last.Accuracy() > c.most || curve.Masked > 0 {
			t.Errorf("%s: %+v", c.reward, curve)
		}
		if c.reward == toy.Full && last.Low <= first.High {
			t.Errorf("the intervals of %+v and %+v overlap", first, last)
		}
	}
}
