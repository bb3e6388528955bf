package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/eval"
)

// Outcomes holds the results of the labelled calls and of the calls of the answers.
type Outcomes struct {
	labels, answers map[AnswerKey]*outcome
}

// outcome is the result of the calls of one answer, or of the labelled calls of one sample.
type outcome struct {
	calls   []ExecCall // without the calls that reset and read the state
	results []*resultLine
	reset   *resultLine // nil if there was no such call
	// ends is the number of calls before each read of the state, and states the states, in order.
	ends   []int
	states []*resultLine
	lines  [][]byte // digests of all lines
}

// ReadOutcomes reads the executions in the folder of a run. A folder without any is not an error.
func ReadOutcomes(dir string) (*Outcomes, error) {
	labels, err := readOutcomes(filepath.Join(dir, LabelsFolder))
	if err != nil {
		return nil, err
	}
	answers, err := readOutcomes(filepath.Join(dir, AnswersFolder))
	return &Outcomes{labels, answers}, err
}

// finished reports whether the execution in a folder belongs to the calls there. Results of earlier
// calls would have the same ids.
func finished(dir string) bool {
	calls, err := os.ReadFile(filepath.Join(dir, CallsFile))
	if err != nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(dir, ExecutionFile))
	var e Execution
	return err == nil && json.Unmarshal(text, &e) == nil && e.Inputs == eval.Digest(calls)
}

func readOutcomes(dir string) (map[AnswerKey]*outcome, error) {
	calls, err := readLines[ExecCall](filepath.Join(dir, CallsFile), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !finished(dir) {
		return nil, err
	}
	lines, err := readLines(filepath.Join(dir, ResultsFile), func(r *resultLine, line []byte) error {
		r.digest = []byte(eval.Digest(line))
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	at := make(map[string]int, len(lines)) // the last line of a call counts
	for i := range lines {
		at[lines[i].CustomID] = i
	}
	all := make(map[AnswerKey]*outcome)
	for i := range calls {
		call := &calls[i]
		key, part, ok := splitID(call.CustomID)
		if !ok {
			continue
		}
		o := all[key]
		if o == nil {
			o = &outcome{}
			all[key] = o
		}
		r := &resultLine{}
		if n, ok := at[call.CustomID]; ok {
			r = &lines[n]
			o.lines = append(o.lines, r.digest)
		}
		switch {
		case part == resetPart:
			o.reset = r
		case isStatePart(part):
			o.ends, o.states = append(o.ends, len(o.calls)), append(o.states, r)
		default:
			o.calls, o.results = append(o.calls, *call), append(o.results, r)
		}
	}
	return all, nil
}

// stateful reports whether the state after labelled calls is known.
func (o *Outcomes) stateful() bool {
	if o != nil {
		for _, label := range o.labels {
			return label.stateful()
		}
	}
	return false
}

// digest returns the digest of the inputs of an answer's execution, or "" if it was not run.
func (o *Outcomes) digest(sample string, trial int) string {
	if o == nil || len(o.answers) == 0 {
		return ""
	}
	if o.answers[AnswerKey{sample, trial}] == nil {
		return "no call"
	}
	parts := o.answers[AnswerKey{sample, trial}].lines
	if labels := o.labels[AnswerKey{sample, 0}]; labels != nil {
		parts = append(append(slices.Clone(parts), nil), labels.lines...)
	}
	return eval.Digest(parts...)
}

// of returns the execution of an answer's calls. It returns nil if they were not run, or if the
// answer, the sample or its labels have changed since.
func (o *Outcomes) of(sample *eval.Sample, r *eval.Response, names *eval.Names, found []eval.Call) *eval.Execution {
	if o == nil {
		return nil
	}
	answer := o.answers[AnswerKey{sample.ID, r.Trial}]
	own := Target{}.answer(sample, r, names, found)
	if answer == nil && (len(o.answers) == 0 || len(own.calls) > 0) {
		return nil
	}
	if answer == nil {
		answer = &outcome{} // all answers were run, and this one has no calls
	}
	if !answer.ranExactly(&own) {
		return nil
	}
	e := &eval.Execution{Calls: len(own.calls) + own.refused, Refused: own.refused}
	for _, r := range answer.results {
		switch {
		case r.State == "succeeded" && !r.Result.IsError:
			e.OK++
		case r.State == "denied":
			e.Denied++
		}
	}
	if e.Masked = answer.masked(); e.Masked != "" {
		return e
	}
	if e.Calls > 0 {
		e.Run = part(e.OK, e.Calls)
	}
	o.compare(e, sample, answer)
	return e
}

// compare compares an answer's results and state with those of the labelled calls.
func (o *Outcomes) compare(e *eval.Execution, sample *eval.Sample, answer *outcome) {
	labels := o.labels[AnswerKey{sample.ID, 0}]
	own := Target{}.labelCalls(sample)
	if labels == nil || labels.masked() != "" || !labels.ranExactly(&own) {
		return
	}
	if len(labels.results) > 0 {
		have, hits := answer.contents(), 0
		want := labels.contents()
		for _, content := range want {
			if at := slices.Index(have, content); at >= 0 {
				have = slices.Delete(have, at, at+1)
				hits++
			}
		}
		e.Results = part(hits, len(labels.results))
	}
	if labels.stateful() && answer.stateful() {
		equal := 0
		if labels.lastState().content() == answer.lastState().content() {
			equal = 1
		}
		e.State = part(equal, 1)
	}
}

// stateful reports whether the state was read.
func (o *outcome) stateful() bool { return len(o.states) > 0 }

// lastState returns the last state that was read.
func (o *outcome) lastState() *resultLine { return o.states[len(o.states)-1] }

// ranExactly reports whether exactly these calls were run, in these turns. Their servers are ignored.
func (o *outcome) ranExactly(own *ownCalls) bool {
	if own.turns > 0 && o.stateful() && !slices.Equal(o.ends, own.ends()) {
		return false
	}
	return slices.EqualFunc(o.calls, own.calls, func(a, b ExecCall) bool {
		return a.Tool == b.Tool && bytes.Equal(compact(a.Arguments), compact(b.Arguments))
	})
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// answersFault lists the kinds of failure that are the caller's fault.
var answersFault = []string{"invalid-arguments", "invalid-request", "not-found", "protocol", "disabled", "forbidden", "too-large"}

// masked returns the reason why the results are not meaningful, or "" if they are.
func (o *outcome) masked() string {
	worker := ""
	for _, r := range slices.Concat([]*resultLine{o.reset}, o.states, o.results) {
		if r == nil {
			continue
		}
		kind := r.Problem.Type[strings.LastIndexByte(r.Problem.Type, '/')+1:]
		switch housekeeping := r == o.reset || slices.Contains(o.states, r); {
		case r.State == "":
			return "a call has no result"
		case housekeeping && (r.State != "succeeded" || r.Result.IsError):
			return "the state could not be reset or read"
		case r.State == "succeeded" || r.State == "denied" || r.State == "failed" && slices.Contains(answersFault, kind):
		case kind != "":
			return r.State + ": " + kind
		default:
			return r.State
		}
		if r.Worker == "" {
			continue // it never ran
		}
		if o.stateful() && worker != "" && worker != r.Worker {
			return "another worker took over, and the state was lost"
		}
		worker = r.Worker
	}
	return ""
}

// contents returns the results in a form in which equal results are equal strings.
func (o *outcome) contents() []string {
	all := make([]string, 0, len(o.results))
	for _, r := range o.results {
		if text := r.content(); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// content returns a result without the parts that are specific to this call, or "" if the call has
// no result.
func (r *resultLine) content() string {
	if r.State != "succeeded" {
		return ""
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(r.Result.raw))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return string(r.Result.raw)
	}
	delete(members, "_meta")
	text, err := json.Marshal(members)
	if err != nil {
		return string(r.Result.raw)
	}
	return string(text)
}

func part(n, all int) *float64 {
	share := float64(n) / float64(all)
	return &share
}
