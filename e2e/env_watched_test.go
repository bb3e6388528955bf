package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/telemetry/tracetest"
)

const tracedEpisode = `
internal episode notes @callyard-env
  internal step @callyard-env
    internal admit @callyard-env
    producer send calculator @callyard-env
      consumer process calculator @callyard-env
        client tools/call evaluate @callyard-env
  internal step @callyard-env
`

// TestEpisodeIsASpanWithStepsAsChildren checks the spans of episodes with each kind of end.
func TestEpisodeIsASpanWithStepsAsChildren(t *testing.T) {
	r := collector(t)
	e := startEnv(t, "", notesFiles, "CALLYARD_TRACES_ENDPOINT="+r.URL(), soonSent)
	solve := func(session string) {
		e.step(t, session, "evaluate", map[string]any{"expression": "40 + 2"})
		e.step(t, session, "finish", map[string]any{"answer": secretText})
		e.post(t, "/reset", map[string]any{"session_id": session}) // which closes the episode
	}
	solve(e.post(t, "/reset", map[string]any{"index": 2}).Metadata.SessionID)
	whole := endedSpan(t, r, "done")
	spans := r.Of(whole.Trace)
	if got := tracetest.Tree(spans); got != strings.TrimLeft(tracedEpisode, "\n") {
		t.Errorf("the trace is\n%swant%s", got, tracedEpisode)
	}
	for key, want := range map[string]string{"callyard.environment": "notes", "callyard.episode.task": "train-2", "callyard.episode.steps": "2"} {
		if whole.Attributes[key] != want {
			t.Errorf("%s is %q, want %q", key, whole.Attributes[key], want)
		}
	}
	for _, s := range spans {
		if text := fmt.Sprint(s); strings.Contains(text, secretText) || strings.Contains(text, "40 + 2") {
			t.Errorf("the span %s has arguments", s.Name)
		}
	}

	// A step in another trace is linked; its calls are still below the episode.
	const asked = "0af7651916cd43dd8448eb211c80319c"
	session := e.post(t, "/reset", map[string]any{"index": 1}).Metadata.SessionID
	a, err := send(client(t), e.url, http.MethodPost, "/step", `{"session_id":"`+session+`","action":{"tool_name":"nothing"}}`, "traceparent: 00-"+asked+"-b7ad6b7169203331-01")
	if err != nil || a.status != http.StatusOK {
		t.Fatal(err, a.status)
	}
	e.post(t, "/reset", map[string]any{"session_id": session})
	whole = endedSpan(t, r, "closed")
	step := named(t, r.Of(whole.Trace), "step")
	if !slices.Equal(step.Links, []string{asked}) || !step.Failed || step.Attributes["error.type"] != "tool_not_found" {
		t.Errorf("the step is %+v", step)
	}
}

// endedSpan waits for an episode with the outcome.
func endedSpan(t *testing.T, r *tracetest.Receiver, outcome string) (found tracetest.Span) {
	t.Helper()
	eventually(t, soon, "the span of the episode", func() error {
		for _, s := range r.Spans() {
			if s.Attributes["callyard.episode.outcome"] == outcome {
				found = s
				return nil
			}
		}
		return fmt.Errorf("no span has the outcome %s", outcome)
	})
	return found
}

// TestAMaskedEpisodeIsCountedWithItsReason kills the process of an episode: its span and the
// metrics name the reason.
func TestAMaskedEpisodeIsCountedWithItsReason(t *testing.T) {
	r := collector(t)
	e := startEnv(t, serversFile(t, map[string]entry{"files": trusted(fromNPM("filesystem", "{EPISODE_DIR}"))}), filesFiles("process"), "CALLYARD_TRACES_ENDPOINT="+r.URL(), soonSent)
	session := e.post(t, "/reset", map[string]any{}).Metadata.SessionID
	if n := e.metric(t, `callyard_episodes{environment="files"}`); n != 1 {
		t.Errorf("%v episodes are in progress, want 1", n)
	}
	e.step(t, session, "write_file", map[string]any{"path": "lost.txt", "content": "x"})
	written, err := filepath.Glob(filepath.Join(e.data, "episodes", "*", "episode-*", "lost.txt"))
	if err != nil || len(written) != 1 || killProcessesIn(t, filepath.Dir(written[0])) == 0 {
		t.Fatalf("no process was killed: %v (%v)", written, err)
	}
	lost := e.step(t, session, "read_text_file", map[string]any{"path": "lost.txt"})
	if !lost.Metadata.Masked {
		t.Fatalf("the episode ended with %+v", lost)
	}
	reason := lost.Metadata.FailureKind
	e.post(t, "/reset", map[string]any{"session_id": session})
	whole := endedSpan(t, r, "masked")
	if whole.Attributes["callyard.episode.masked"] != reason || !whole.Failed || whole.Attributes["error.type"] != reason {
		t.Errorf("the span is %+v, and the reason %s", whole, reason)
	}
	if n := e.metric(t, `callyard_episodes_ended_total{environment="files",outcome="masked",reason="`+reason+`"}`); n != 1 {
		t.Errorf("%v masked episodes are counted, want 1", n)
	}
	if n := e.metric(t, `callyard_episodes{environment="files"}`); n != 1 {
		t.Errorf("%v episodes are in progress, want the one that began then", n)
	}
}

// TestRolloutsAndSessionsAreScoredAlike scores the transcripts of `callyard env`, of calls
// and of texts, and one of an agent session, with `callyard eval score`.
func TestRolloutsAndSessionsAreScoredAlike(t *testing.T) {
	files := map[string]string{"env.yaml": "transcripts: transcripts\n" + strings.TrimLeft(notesFiles["env.yaml"], "\n"), "tasks.jsonl": notesFiles["tasks.jsonl"]}
	e := startEnv(t, "", files)
	dir := filepath.Dir(e.data)
	begin := func(index int) string {
		return e.post(t, "/reset", map[string]any{"index": index}).Metadata.SessionID
	}
	right, wrong, text := begin(0), begin(0), begin(1)
	e.step(t, right, "evaluate", map[string]any{"expression": "40"})
	e.step(t, right, "finish", map[string]any{"answer": "40"})
	e.step(t, wrong, "update", map[string]any{"todos": []string{"[1] wait (planned)"}})
	e.step(t, wrong, "finish", map[string]any{"answer": "?"})
	e.post(t, "/step", map[string]any{"session_id": text, "action": map[string]any{"type": "message", "text": "<tool_call>\n{\"name\": \"evaluate\", \"arguments\": {\"expression\": \"41\"}}\n</tool_call>"}})
	e.post(t, "/step", map[string]any{"session_id": text, "action": map[string]any{"type": "message", "text": "It is 41."}})
	begin(2) // makes no call, so it has no answer
	e.stop(t)
	folder := filepath.Join(dir, "transcripts", "notes")
	write(t, filepath.Join(folder, "agent_1.jsonl"), `{"type":"session","time":"2026-01-01T00:00:00Z","session":"agent_1","model":"m"}
{"type":"user","time":"2026-01-01T00:00:00Z","text":"What is 40 + 3?"}
{"type":"answer","time":"2026-01-01T00:00:01Z","turn":1,"body":{"id":"x"},"calls":[{"ID":"1","Name":"find_tools","Arguments":{"query":"sum"}},{"ID":"2","Name":"evaluate","Arguments":{"expression":"43"}}],"own":["find_tools"]}
{"type":"results","time":"2026-01-01T00:00:02Z"}
{"type":"answer","time":"2026-01-01T00:00:03Z","turn":2,"text":"43"}
{"type":"en`) // a kill left the last line incomplete
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), "callyard"), "eval", "score", filepath.Join(dir, "run"), "--data", "tasks:"+filepath.Join(dir, "tasks.jsonl"), "--responses", folder, "--missing", "skip", "--json")
	cmd.Env = cleanEnviron()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "1 transcripts have no answer") {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "run", "scores.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(raw)) {
		var s struct {
			ID     string
			Trial  int
			Called []string
			Strict struct {
				F1   float64
				Type string
			}
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d %v %s", s.ID, s.Trial, s.Called, s.Strict.Type))
	}
	want := []string{"train-0 0 [evaluate] correct", "train-0 1 [update] wrong", "train-1 0 [evaluate] correct", "train-3 0 [evaluate] correct"}
	if !slices.Equal(got, want) {
		t.Errorf("the scores are %q, want %q", got, want)
	}
}
