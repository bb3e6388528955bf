package stage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval"
)

func TestTranscriptsBecomeTrials(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl": `{"type":"session","time":"2026-01-02T00:00:00Z","session":"s1","task":"t","finish_tool":"done"}
{"type":"answer","calls":[{"ID":"1","Name":"f","Arguments":{"x":1}},{"ID":"2","Name":"done"}]}
{"type":"answer","text":"it is","calls":[{"ID":"1","Name":"g"}]}
`,
		"b.jsonl": `{"type":"session","time":"2026-01-01T00:00:00Z","session":"s2"}
{"type":"user","text":" Q? "}
{"type":"answer","text":"<tool_call>{\"name\":\"f\"}</tool_call>","body":{"text":"…"},"calls":[{"ID":"1","Name":"f"}]}
`,
		"c.jsonl": `{"type":"session","session":"s3","task":"t"}` + "\n" + `{"type":"answer"}` + "\n" + `{"type":"end","masked":true}` + "\n",
		"d.jsonl": `{"type":"session","session":"s4","task":"t"}` + "\n",
		"f.jsonl": "", // of a process that was killed
		"g.jsonl": `{"type":"sess`,
		"h.jsonl": `{"type":"session","time":"2026-01-03T00:00:00Z","session":"s6","task":"t","finish_tool":"done"}
{"type":"answer","text":"<tool_call>{\"name\":\"f\"}</tool_call> <tool_call>{\"name\":\"done\"}</tool_call>","body":{"text":"…"},"calls":[{"ID":"1","Name":"f"},{"ID":"2","Name":"done"}]}
`,
		"i.jsonl": `{"type":"session","session":"s7","task":"u","finish_tool":"done"}` + "\n" + `{"type":"answer","calls":[{"ID":"1","Name":"done"}]}` + "\n",
		"e.jsonl": `{"type":"session","session":"s5"}` + "\n" + `{"type":"user","text":"Other?"}` + "\n" + `{"type":"answer","text":"x"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, leftOut, err := Transcripts(dir, []Sample{{Sample: eval.Sample{ID: "t", Question: "Q?"}}})
	want := `{"id":"s5","text":"x"}
{"id":"t","text":"<tool_call>{\"name\":\"f\"}</tool_call>"}
{"id":"t","trial":1,"text":"it is","message":{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"x\":1}","name":"f"},"id":"call_0","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"call_1","type":"function"}]}}
{"id":"t","trial":2,"text":"<tool_call>{\"name\":\"f\"}</tool_call> "}
{"id":"u","message":{"role":"assistant","content":""}}
`
	if err != nil || leftOut != 4 || string(text) != want {
		t.Errorf("%d left out, %v:\n%swant\n%s", leftOut, err, text, want)
	}
	path := filepath.Join(dir, "responses.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if responses, err := ReadResponses(path); err != nil || len(responses) != 5 {
		t.Errorf("%d responses are read, %v", len(responses), err)
	}
	if _, _, err := Transcripts(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "has no transcript") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, _, err := Transcripts(filepath.Join(dir, "f.jsonl"), nil); err == nil || !strings.Contains(err.Error(), "is not a transcript") {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzTranscriptGivesOneAnswerOrAnError(f *testing.F) {
	f.Add(`{"type":"session","session":"s","task":"t"}` + "\n" + `{"type":"answer","text":"x","calls":[{"ID":"1","Name":"f","Arguments":{}}]}` + "\n")
	f.Add(`{"type":"session"}` + "\n" + `{"type":"answer","body":{"text":1}}` + "\n{")
	f.Add(`{"type":"session","session":"s"}` + "\n" + `{"type":"user","text":"A?"}` + "\n" + `{"type":"answer","calls":[{"Name":"x"}]}` + "\n" + `{"type":"results","results":[{"name":"x","server":"demo","tool":"add"}]}` + "\n")
	f.Add("{}\n")
	dir := f.TempDir()
	path := filepath.Join(dir, "r.jsonl")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, leftOut, err := Transcripts(dir, []Sample{promptedBy("s", "A?", "B?")})
		if err != nil {
			if !strings.HasPrefix(err.Error(), path) {
				t.Errorf("%v", err)
			}
			return
		}
		into := filepath.Join(dir, "responses")
		if err := os.WriteFile(into, out, 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := ReadResponses(into); err != nil || len(all)+leftOut != 1 {
			t.Errorf("%d answers, %d left out, %v", len(all), leftOut, err)
		}
	})
}
