package stage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval"
)

// promptedBy returns a sample with the prompts and one expected tool for each.
func promptedBy(id string, prompts ...string) Sample {
	s := Sample{Sample: eval.Sample{ID: id, Question: prompts[0], Tools: []eval.Tool{{Name: "add", Server: "demo"}, {Name: "echo", Server: "demo"}}}}
	for _, p := range prompts {
		s.Turns = append(s.Turns, eval.Turn{Question: p, Expected: []string{"add"}})
	}
	return s
}

func TestTranscriptIsMatchedToConversationByPrompts(t *testing.T) {
	official := Sample{Sample: eval.Sample{ID: "bfcl", Question: "Go.", Check: &eval.Check{Kind: "bfcl", Turns: 2}, Messages: json.RawMessage(`[[{"role":"user","content":"Go."}],[{"role":"user","content":"On."}]]`)}}
	samples := []Sample{promptedBy("ab", "A?", "B?"), promptedBy("abc", "A?", "B?", "C?"), promptedBy("ad", "A?", "D?"), official, promptedBy("agent_1", "E?")}
	known := newSampleFinder(samples)
	for prompts, want := range map[string]string{
		"A?": "ab", "A?|B?": "ab", "A?| B? |C?": "abc", "A?|B?|X?|Y?": "abc", "A?|D?": "ad", "B?": "", "Go.|On.": "bfcl", "A?|D?|x": "ad", "": "",
	} {
		steps := []step{{Type: "session", Session: "s"}}
		for p := range strings.SplitSeq(prompts, "|") {
			steps = append(steps, step{Type: "user", Text: p}, step{Type: "answer"})
		}
		got := ""
		if s := known.of(&steps[0], steps); s != nil {
			got = s.ID
		}
		if got != want {
			t.Errorf("%q answers %q, want %q", prompts, got, want)
		}
	}
	if s := known.of(&step{Session: "agent_1"}, []step{{Type: "user", Text: "A?"}}); s == nil || s.ID != "agent_1" {
		t.Errorf("a sample with the id of the session: %+v", s)
	}
}

func TestATranscriptOfAConversationHasTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent_1.jsonl")
	text := `{"type":"session","session":"agent_1"}
{"type":"user","text":"A?"}
{"type":"answer","text":"I add.","calls":[{"ID":"1","Name":"other_add","Arguments":{"a":1}},{"ID":"2","Name":"find_tools"}]}
{"type":"results","results":[{"id":"1","name":"other_add","server":"demo","tool":"add"}]}
{"type":"answer","text":"It is 1."}
{"type":"end"}
{"type":"user","text":"B?"}
{"type":"answer","calls":[{"ID":"1","Name":"far_echo"}]}
{"type":"results","results":[{"id":"1","name":"far_echo","server":"far","tool":"echo"}]}
{"type":"answer","te`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, leftOut, err := Transcripts(path, []Sample{promptedBy("ab", "A?", "B?")})
	// The tool of the server demo gets its name in the sample; that of the other server is unchanged.
	want := `{"id":"ab","turns":[[{"text":"I add.","message":{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"add"},"id":"call_0","type":"function"}]}},{"text":"It is 1."}],[{"message":{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"far_echo"},"id":"call_0","type":"function"}]}}]]}
`
	if err != nil || leftOut != 0 || string(out) != want {
		t.Errorf("%d left out, %v:\n%swant\n%s", leftOut, err, out, want)
	}
	if !IsTranscript(path) {
		t.Error("the file is not taken for a transcript")
	}
	responses := filepath.Join(t.TempDir(), "responses.jsonl")
	if err := os.WriteFile(responses, out, 0o600); err != nil {
		t.Fatal(err)
	}
	if IsTranscript(responses) || IsTranscript(responses+"x") {
		t.Error("a file of responses is taken for a transcript")
	}
}
