package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/stage"
)

// asked is a prompt and the model's answers.
type asked struct {
	prompt string
	script modeltest.Script
}

// session runs a conversation with callyard agent and returns the path of its transcript in folder.
func (y *testFabric) session(t *testing.T, folder, name string, conversation []asked, args ...string) string {
	t.Helper()
	path := filepath.Join(folder, name+".jsonl")
	for i, a := range conversation {
		where := []string{"--transcript", path}
		if i > 0 {
			where = []string{"--transcript", "", "--resume", path} // the last flag applies
		}
		if _, notes, code, _ := y.agentRun(t, a.script, append(append(where, args...), "-p", a.prompt)...); code != 0 && code != exitRefused {
			t.Fatalf("%s, %q: exit %d, %s", name, a.prompt, code, notes)
		}
	}
	return path
}

func TestAgentCallsAreScoredByTurn(t *testing.T) {
	plainEnvironment(t)
	y := openTestFabric(t)
	folder := t.TempDir()
	end := modeltest.Turn{Text: "It is done."}
	both := func(first, second modeltest.Turn) []asked {
		return []asked{{"Read a.", modeltest.Script{first, end}}, {"Delete it.", modeltest.Script{second, end}}}
	}
	text := func(tool string) modeltest.Turn {
		return modeltest.Turn{Text: `<tool_call>{"name":"notes__` + tool + `","arguments":{"text":"a"}}</tool_call>`}
	}
	y.session(t, folder, "1", both(calls("read a"), calls("delete a")))
	y.session(t, folder, "2", both(calls("delete a", "read a"), calls("read a")))
	y.session(t, folder, "3", both(text("read"), text("delete")), "--model", "ollama:test") // its server does not parse the call format
	plain := func(tool string) modeltest.Turn {
		return modeltest.Turn{Text: `{"tool_call": {"server_id": "notes", "tool_name": "` + tool + `", "parameters": {"text": "a"}}, "response": "I do."}`}
	}
	y.session(t, folder, "4", []asked{{"Read it.", modeltest.Script{plain("read"), {Text: `{"tool_call": null, "response": "Done."}`}}}}, "--plain")

	dir := t.TempDir()
	data, run := filepath.Join(dir, "data.jsonl"), filepath.Join(dir, "run")
	const tools = `"tools":[{"name":"read","server":"notes"},{"name":"delete","server":"notes"}]`
	samples := `{"id":"both",` + tools + `,"turns":[{"question":"Read a.","target_tools":"read"},{"question":"Delete it.","target_tools":"delete"}]}
{"id":"one",` + tools + `,"question":"Read it.","target_tools":"read"}
`
	if err := os.WriteFile(data, []byte(samples), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := evaluate(t, "score", run, "--data", "jsonl:"+data, "--responses", folder, "--json")
	if code != exitOK || stderr != "" {
		t.Fatalf("code %d, %s", code, stderr)
	}
	scores, err := stage.ReadScores(filepath.Join(run, stage.ScoresFile))
	if err != nil || len(scores) != 4 {
		t.Fatalf("%+v, %v", scores, err)
	}
	for i, want := range []struct {
		id                 string
		published, lenient eval.Type
		turns              string
	}{
		{"both", eval.TypeCorrect, eval.TypeCorrect, "read:correct delete:correct"},
		{"both", eval.TypePartial, eval.TypePartial, "delete,read:partial read:wrong"},
		{"both", eval.TypeCorrect, eval.TypeCorrect, "read:correct delete:correct"},
		{"one", eval.TypeFormat, eval.TypeCorrect, ""},
	} {
		s := &scores[i]
		var turns []string
		for _, turn := range s.Turns {
			turns = append(turns, strings.Join(turn.Called, ",")+":"+string(turn.Published))
		}
		if got := strings.Join(turns, " "); s.ID != want.id || s.Published.Type != want.published || s.Lenient.Type != want.lenient || got != want.turns {
			t.Errorf("%s, trial %d: %s, lenient %s, turns %q; want %+v", s.ID, s.Trial, s.Published.Type, s.Lenient.Type, got, want)
		}
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Turns) != 2 || r.Turns[0].Samples != 1 || r.Turns[0].Types[eval.TypeCorrect] != 2 || r.Turns[1].Types[eval.TypeWrong] != 1 {
		t.Errorf("%v: the turns %+v", err, r.Turns)
	}
	if stdout, _, code = evaluate(t, "score", run); code != exitOK || !strings.Contains(stdout, "Turn 2, accuracy, published: 66.7 ") || !strings.Contains(stdout, "4 answers: 0 scored, 4 unchanged") {
		t.Errorf("code %d, %s", code, stdout)
	}
}

func TestTranscriptIsUsableAsAResponseFile(t *testing.T) {
	plainEnvironment(t)
	y := openTestFabric(t)
	path := y.session(t, t.TempDir(), "s", []asked{{"Read a.", modeltest.Script{calls("read a"), {Text: "It is done."}}}})
	dir := t.TempDir()
	data, run := filepath.Join(dir, "data.jsonl"), filepath.Join(dir, "run")
	if err := os.WriteFile(data, []byte(`{"id":"1","tools":[{"name":"read","server":"notes"}],"question":"Read a.","target_tools":"read"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := evaluate(t, "score", run, "--data", "jsonl:"+data, "--responses", path); code != exitOK {
		t.Fatalf("code %d, %s", code, stderr)
	}
	scores, err := stage.ReadScores(filepath.Join(run, stage.ScoresFile))
	if err != nil || len(scores) != 1 || scores[0].Published.Accuracy != 1 || !slices.Equal(scores[0].Called, []string{"read"}) || scores[0].Turns != nil {
		t.Errorf("%+v, %v", scores, err)
	}
}

// TestRefusedCallsOfAConversationAreNotPrinted refuses a call of the model: only the report is output.
func TestRefusedCallsOfAConversationAreNotPrinted(t *testing.T) {
	d := openDoor(t, map[string]answer{"POST /servers/files/tools/read": problemAnswer(403, `{"status":403,"detail":"The policy denies it."}`)})
	var out, note strings.Builder
	c := clientOf(t, d, &out, &note)
	c.out.format = formatJSON
	f := evalFabric{c, stage.Target{}}
	text, failed, err := f.run(t.Context(), stage.ExecCall{Server: "files", Tool: "read", Arguments: []byte("{}")})
	if err != nil || !failed || !strings.Contains(text, "The policy denies it.") || out.Len() > 0 {
		t.Errorf("%q %v %v, printed %q", text, failed, err, out.String())
	}
}
