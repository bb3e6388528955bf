package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/eval/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const data = `{"id":"1","category":"x","question":"q","tools":["a","b"],"target_tools":"a"}
{"id":"2","category":"y","question":"q","tools":["a","b"],"target_tools":"b"}
`

const answered = `{"id":"1","text":"<tool_call>{\"name\":\"a\"}</tool_call>"}
{"id":"2","text":"<tool_call>{\"name\":\"a\"}</tool_call>"}
`

func TestSecondRunReusesExistingScores(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := Options{Dir: dir, Data: "jsonl:" + write(t, "d.jsonl", data), Responses: write(t, "r.jsonl", answered), Scoring: stage.Settings{Missing: stage.MissingError}, Version: "v1"}
	one, err := Score(t.Context(), o)
	if err != nil || one.Computed != 2 || one.Reused || one.Report.Levels[1].Micro.Accuracy.Mean != 0.5 {
		t.Fatalf("%+v, %v", one, err)
	}
	files := func() (all string) {
		for _, name := range []string{stage.SamplesFile, stage.ResponsesFile, stage.ScoresFile, stage.ReportFile} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all += name + info.ModTime().String()
		}
		return all
	}
	before := files()
	o.Data, o.Responses = "", ""
	two, err := Score(t.Context(), o)
	if err != nil || two.Computed != 0 || two.Kept != 2 || !two.Reused || two.Report.Inputs != one.Report.Inputs || files() != before {
		t.Fatalf("%+v, %v", two, err)
	}
	o.Report.Seed = 7
	if three, err := Score(t.Context(), o); err != nil || three.Computed != 0 || three.Reused {
		t.Errorf("another seed: %+v, %v", three, err)
	}
	o.Reward = write(t, "reward.json", `{"name":"mine","selection":{"weight":1,"extraction":"strict","near_perfect_f1":1,"near_perfect":9}}`)
	if four, err := Score(t.Context(), o); err != nil || four.Computed != 2 || four.Report.Rewards[0].Mean.Mean != 4.5 {
		t.Errorf("another reward: %+v, %v", four, err)
	}
	if scores, r, err := Load(dir); err != nil || len(scores) != 2 || r.Scoring.Reward.Name != "mine" {
		t.Error(err)
	}
}

func TestExpectedToolThatASampleDoesNotOfferIsNamed(t *testing.T) {
	data := data + `{"id":"3","question":"q","tools":[{"name":"read","server":"fs"}],"target_tools":"fs_read,raed"}
{"id":"4","question":"q","target_tools":"any"}
`
	answered := answered + `{"id":"3","text":""}
{"id":"4","text":""}
`
	done, err := Score(t.Context(), Options{Dir: t.TempDir(), Data: "jsonl:" + write(t, "d.jsonl", data), Responses: write(t, "r.jsonl", answered)})
	if err != nil || len(done.Unoffered) != 1 || done.Unoffered[0] != (Unoffered{"3", "raed"}) {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestResponsesAreNeverReplaced(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Data: "jsonl:" + write(t, "d.jsonl", data), Responses: write(t, "r.jsonl", answered)}
	if _, err := Score(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Responses = write(t, "r.jsonl", strings.ReplaceAll(answered, "a\\", "b\\"))
	if _, err := Score(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has other responses") {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, stage.ResponsesFile)); err != nil || string(text) != answered {
		t.Errorf("%s, %v", text, err)
	}
	o.Responses = filepath.Join(dir, stage.ResponsesFile)
	if _, err := Score(t.Context(), o); err != nil {
		t.Error(err)
	}
}

func TestMissingInputsAreReported(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{Dir: dir}, "name a data set with --data"},
		{Options{Dir: dir, Data: "jsonl:" + write(t, "d.jsonl", data)}, "name a file of responses with --responses"},
		{Options{Dir: dir, Reward: "other"}, "the rewards are"},
		{Options{Dir: dir, Reward: "other.json"}, "no such file"},
	} {
		if _, err := Score(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if _, _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "callyard eval score") {
		t.Error(err)
	}
}
