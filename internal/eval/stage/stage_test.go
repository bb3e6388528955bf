package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/eval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func settings(t testing.TB, missing Missing) Settings {
	t.Helper()
	reward, err := eval.RewardPreset(eval.DefaultReward)
	if err != nil {
		t.Fatal(err)
	}
	return Settings{Reward: reward, Missing: missing}
}

func digested(samples []eval.Sample) ([]Sample, error) {
	out, _, err := encoded(samples)
	return out, err
}

func samples(t testing.TB, n int) []Sample {
	t.Helper()
	all := make([]eval.Sample, n)
	for i := range all {
		all[i] = eval.Sample{ID: fmt.Sprint("s", i), Category: fmt.Sprint("c", i%3), Tools: []eval.Tool{{Name: "a"}, {Name: "b"}}, Expected: []string{"a"}}
	}
	out, err := digested(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func block(name string) string { return `<tool_call>{"name":"` + name + `"}</tool_call>` }

func responses(t testing.TB, n, trials int) []Response {
	t.Helper()
	var b strings.Builder
	for i := range n {
		for trial := range trials {
			fmt.Fprintf(&b, "{\"id\":\"s%d\",\"trial\":%d,\"text\":%q}\n", i, trial, block([]string{"a", "b"}[(i+trial)%2]))
		}
	}
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := ReadResponses(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUnchangedAnswersAreNotRescored(t *testing.T) {
	s, r := samples(t, 300), responses(t, 300, 2)
	one, err := Run(t.Context(), s, r, nil, settings(t, MissingError), nil)
	if err != nil || one.Computed != 600 || len(one.Scores) != 600 {
		t.Fatal(one, err)
	}
	path := filepath.Join(t.TempDir(), ScoresFile)
	if err := WriteLines(path, one.Scores); err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadScores(path)
	if err != nil || !reflect.DeepEqual(read, one.Scores) {
		t.Fatal(err)
	}
	two, err := Run(t.Context(), s, r, nil, settings(t, MissingError), read)
	if err != nil || two.Computed != 0 || !reflect.DeepEqual(two.Scores, one.Scores) {
		t.Errorf("computed %d, %v", two.Computed, err)
	}
	if err := WriteLines(path, two.Scores); err != nil {
		t.Error(err)
	}
	if second, err := os.Stat(path); err != nil || !os.SameFile(first, second) {
		t.Error("the same scores are written again", err)
	}
	r[7].Digest = "other"
	if three, err := Run(t.Context(), s, r, nil, settings(t, MissingError), read); err != nil || three.Computed != 1 {
		t.Errorf("one response changed: computed %d, %v", three.Computed, err)
	}
	other := settings(t, MissingError)
	reward := *other.Reward
	reward.Format.Good = 2
	other.Reward = &reward
	if four, err := Run(t.Context(), s, r, nil, other, read); err != nil || four.Computed != 600 {
		t.Errorf("another reward: computed %d, %v", four.Computed, err)
	}
}

func TestSamplesWithoutAResponse(t *testing.T) {
	s, r := samples(t, 4), responses(t, 5, 1)[1:]
	s[3].Expected = nil // a missing answer is wrong even if no tool is expected
	r[2].Error, r[2].Text = "timeout", ""
	if _, err := Run(t.Context(), s, r, nil, settings(t, MissingError), nil); err == nil || !strings.Contains(err.Error(), `2 samples have no response, such as "s0"`) {
		t.Error(err)
	}
	got, err := Run(t.Context(), s, r, nil, settings(t, MissingSkip), nil)
	if err != nil || len(got.Scores) != 2 || !slices.Equal(got.Skipped, []string{"s0", "s3"}) || !slices.Equal(got.Unknown, []string{"s4"}) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = Run(t.Context(), s, r, nil, settings(t, MissingZero), nil)
	if err != nil || len(got.Scores) != 4 {
		t.Fatal(got, err)
	}
	for _, i := range []int{0, 3} {
		if c := got.Scores[i]; !c.Unanswered || c.Published.Accuracy != 0 || c.Published.Type != eval.TypeNone || c.Reward.Total != -2.5 {
			t.Errorf("%+v", c)
		}
	}
	if _, err := Run(t.Context(), s, r[3:], nil, settings(t, MissingZero), nil); err == nil || !strings.Contains(err.Error(), "no sample has a response") {
		t.Error(err)
	}
	failed := []Response{{Response: eval.Response{ID: "s1", Error: "timeout"}}}
	if got, err = Run(t.Context(), s, failed, nil, settings(t, MissingZero), nil); err != nil || len(got.Scores) != 4 {
		t.Errorf("errors alone count as wrong: %+v, %v", got, err)
	}
	if _, err = Run(t.Context(), s, failed, nil, settings(t, MissingSkip), nil); err == nil || !strings.Contains(err.Error(), "every response has an error") {
		t.Errorf("errors alone are left out: %v", err)
	}
}

func TestALineOfResponsesHasAnAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	for line, want := range map[string]string{
		`{"id":"7","text":""}`: "", `{"id":7,"text":"x"}`: "", `{"id":"7","error":"timeout"}`: "", `{"id":"7","request":"sha256:0"}`: "", `{"id":"7","turns":[]}`: "",
		`{"id":"7","message":{"role":"assistant","content":"no"}}`: "", `{"id":"7","text":null,"message":[]}`: "",
		`{"id":"7","txt":"x"}`: "the answer is missing", `{"id":"7","text":null}`: "the answer is missing", `{"id":"7","message":null}`: "the answer is missing",
		`{"id":"7","message":"x"}`: "is not the message of an API", `{"id":[7],"text":"x"}`: "neither a text nor a number", `{"id":null,"text":"x"}`: "the member id is missing",
		`{"id":"7","text":[]}`: "the member text has a value of a wrong type: array", `[]`: "it must be a JSON object",
	} {
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadResponses(path)
		switch {
		case want == "" && (err != nil || len(got) != 1 || got[0].ID != "7"):
			t.Errorf("%s: %+v, %v", line, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ")):
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestBFCLCheckerIsUsed(t *testing.T) {
	s, err := digested([]eval.Sample{{
		ID: "p", Tools: []eval.Tool{{Name: "f"}}, Expected: []string{"f"},
		Check: &eval.Check{Kind: "bfcl", Category: "simple_python", Functions: []byte(`[{"name":"f","parameters":{"properties":{"x":{"type":"integer"}}}}]`), Answers: []byte(`[{"f":{"x":[1]}}]`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]eval.Verdict{
		`<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>`: {Valid: true},
		`<tool_call>{"name":"f","arguments":{"x":2}}</tool_call>`: {Error: "value_error:others"},
		`<tool_call>{"name":"f"}</tool_call>`:                     {Error: "simple_function_checker:missing_optional"},
	} {
		got, err := Run(t.Context(), s, []Response{{Response: eval.Response{ID: "p", Text: text}}}, nil, settings(t, MissingError), nil)
		if err != nil || *got.Scores[0].Check != want || got.Scores[0].Published.Accuracy != 1 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	s[0].Check.Functions = []byte("{}")
	if _, err := Run(t.Context(), s, []Response{{Response: eval.Response{ID: "p"}}}, nil, settings(t, MissingError), nil); err == nil || !strings.Contains(err.Error(), "sample p: reading the functions") {
		t.Error(err)
	}
}

func TestByteOrderMarkIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	for text, check := range map[string]func() bool{
		`{"id":"a","text":""}`: func() bool { got, err := ReadResponses(path); return err == nil && len(got) == 1 },
		`{"type":"session","session":"s"}` + "\n" + `{"type":"answer","text":"x"}` + "\n": func() bool {
			_, _, err := Transcripts(path, nil)
			return err == nil && IsTranscript(path)
		},
	} {
		if err := os.WriteFile(path, []byte("\xef\xbb\xbf"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if !check() {
			t.Errorf("%s is not read", text)
		}
	}
}

func TestFileErrorsContainTheirPosition(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	for text, says := range map[string]string{
		"{\"id\":\"a\",\"text\":\"\"}\n\n{\"id\": x}": ":3:8: invalid character 'x'", `{"text":"x"}`: ":1:1: the member id is missing", `{"id":"a","text":"","trial":-1}`: "trial is negative",
		"{\"id\":\"a\",\"text\":\"\"}\n{\"id\":\"a\",\"text\":\"x\"}": `sample "a" has two responses of trial 0`, `{"text":3}`: ":1:9: the member text",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadResponses(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.WriteFile(path, []byte("{\"id\":\"a\"}\n{\"id\":\"a\"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSamples(path); err == nil {
		t.Error("two samples have one id")
	}
}

func FuzzResponsesAreReadOrErrorHasAPosition(f *testing.F) {
	f.Add("{\"id\":\"a\",\"text\":\"x\"}\n{\"id\":\"a\",\"trial\":1}")
	f.Add("{\"id\":")
	path := filepath.Join(f.TempDir(), "r.jsonl")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := ReadResponses(path)
		if err != nil && !strings.HasPrefix(err.Error(), path+":") {
			t.Errorf("%v", err)
		}
		for _, r := range all {
			if r.ID == "" || r.Trial < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
