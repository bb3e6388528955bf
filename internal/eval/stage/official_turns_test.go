package stage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/bfcl/bfcltest"
	"github.com/callyard/callyard/internal/eval/dataset"
)

// madeConversations is the number of conversations that are compared with the official checker.
// CALLYARD_EVAL_TURNS overrides it.
const madeConversations = 400

// TestTheOfficialCheckerOfConversationsAgrees generates conversations from the labels of BFCL, damages
// most of them, runs their calls at the server in e2e/servers/bfcl.py without Callyard, and compares
// the verdicts with those of the official checker. CALLYARD_TEST_BFCL is the path of a Python with
// bfcl-eval, which includes the data; scripts/test.sh installs it.
func TestTheOfficialCheckerOfConversationsAgrees(t *testing.T) {
	python, data := bfcltest.Official(t)
	read, err := dataset.Read(data, dataset.Options{Sets: dataset.BFCLTurnSets()})
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 800 {
		t.Fatalf("%d samples", len(read))
	}
	n := madeConversations
	if text := os.Getenv("CALLYARD_EVAL_TURNS"); text != "" {
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	samples, err := digested(read)
	if err != nil {
		t.Fatal(err)
	}
	d := damager{rand.New(rand.NewPCG(3407, 800)), samples}
	rest, dir := n, t.TempDir()
	faults, byDamage := map[string]int{}, map[string][2]int{}
	for trial := 0; rest > 0; trial++ {
		order := d.Perm(len(samples))
		some := make([]Sample, min(rest, len(samples)))
		for i := range some {
			some[i] = samples[order[i]]
		}
		rest -= len(some)
		made := make([]conversation, len(some))
		for i := range some {
			made[i] = d.make(&some[i])
		}
		official := officialVerdicts(t, python, made)
		scores := scoredAtTheServer(t, python, filepath.Join(dir, strconv.Itoa(trial)), some, made)
		for i := range made {
			ours := scores[i].Check
			if ours == nil || *ours != official[i] {
				text, _ := json.Marshal(made[i])
				t.Errorf("official: %+v, ours %+v, damage %s: %s", official[i], ours, made[i].damage, text)
			}
			count := byDamage[made[i].damage]
			count[0]++
			if official[i].Valid {
				count[1]++
			}
			byDamage[made[i].damage] = count
			faults[official[i].Error]++
		}
	}
	t.Logf("%d conversations; faults %v; by damage (all, valid): %v", n, faults, byDamage)
	if len(faults) != 5 || faults[""] < n/10 || faults[""] > n*9/10 {
		t.Error("the conversations are not varied enough")
	}
}

// conversation is an answer in the format of the script in testdata.
type conversation struct {
	ID    string                           `json:"id"`
	Turns [][][]map[string]json.RawMessage `json:"turns"`

	damage string
}

// response returns the conversation in the format of a model's API.
func (c *conversation) response(t *testing.T) Response {
	t.Helper()
	r := Response{Response: eval.Response{ID: c.ID, Turns: make([][]eval.Step, len(c.Turns))}}
	for i, steps := range c.Turns {
		for _, step := range steps {
			calls := []map[string]any{}
			for _, call := range step {
				for name, arguments := range call {
					calls = append(calls, map[string]any{"id": "c", "type": "function", "function": map[string]string{"name": name, "arguments": string(arguments)}})
				}
			}
			message, err := json.Marshal(map[string]any{"role": "assistant", "tool_calls": calls})
			if err != nil {
				t.Fatal(err)
			}
			r.Turns[i] = append(r.Turns[i], eval.Step{Message: message})
		}
		r.Turns[i] = append(r.Turns[i], eval.Step{Text: "It is done."})
	}
	return r
}

func officialVerdicts(t *testing.T, python string, made []conversation) []eval.Verdict {
	t.Helper()
	var input bytes.Buffer
	encoder := json.NewEncoder(&input)
	for i := range made {
		if err := encoder.Encode(&made[i]); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/official_turns.py")
	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []eval.Verdict
	for line := range bytes.Lines(out) {
		var v struct {
			Valid bool   `json:"valid"`
			Error string `json:"error_type"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, eval.Verdict{Valid: v.Valid, Error: v.Error})
	}
	if len(verdicts) != len(made) {
		t.Fatalf("%d verdicts for %d conversations", len(verdicts), len(made))
	}
	return verdicts
}

// scoredAtTheServer runs the labelled calls and those of the answers, and scores the answers.
func scoredAtTheServer(t *testing.T, python, dir string, samples []Sample, made []conversation) []Score {
	t.Helper()
	responses := make([]Response, len(made))
	for i := range made {
		responses[i] = made[i].response(t)
		responses[i].Digest = strconv.Itoa(i)
	}
	to := Target{Servers: map[string]string{"": "bfcl"}, Reset: "bfcl/reset", State: "bfcl/state"}
	labels, err := LabelledCalls(samples, to)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := AnswerCalls(samples, responses, to)
	if err != nil {
		t.Fatal(err)
	}
	for folder, calls := range map[string][]ExecCall{LabelsFolder: labels, AnswersFolder: answers} {
		runAtTheServer(t, python, filepath.Join(dir, folder), samples, calls)
	}
	outcomes, err := ReadOutcomes(dir)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Run(t.Context(), samples, responses, outcomes, settings(t, MissingError), nil)
	if err != nil {
		t.Fatal(err)
	}
	return done.Scores
}

// runAtTheServer writes the files of an execution, as a batch at Callyard does.
func runAtTheServer(t *testing.T, python, dir string, samples []Sample, calls []ExecCall) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	digest, err := WriteCalls(filepath.Join(dir, CallsFile), calls)
	if err != nil {
		t.Fatal(err)
	}
	var input bytes.Buffer
	for i := range calls {
		arguments := calls[i].Arguments
		fmt.Fprintf(&input, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", i, calls[i].Tool, arguments)
	}
	cmd := exec.CommandContext(t.Context(), python, "../../../e2e/servers/bfcl.py")
	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	results := make([]map[string]any, 0, len(calls))
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var reply struct {
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &reply); err != nil || reply.Error != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		results = append(results, map[string]any{"custom_id": calls[len(results)].CustomID, "state": "succeeded", "result": reply.Result})
	}
	if len(results) != len(calls) {
		t.Fatalf("%d results of %d calls", len(results), len(calls))
	}
	path := filepath.Join(dir, ResultsFile)
	if err := WriteLines(path, results); err != nil {
		t.Fatal(err)
	}
	ran, err := Executed(samples, calls, digest, path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(ran)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, ExecutionFile), text); err != nil {
		t.Fatal(err)
	}
}
