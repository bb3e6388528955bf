package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/eval"
)

// Files of an execution. The calls are a file that `callyard batch` could run, so its lines
// have no digest; the execution has that of the file.
const (
	CallsFile     = "calls.jsonl"
	ResultsFile   = "results.jsonl"
	ExecutionFile = "execution.json"
)

// maxCustomID is the number of bytes that the front door takes.
const maxCustomID = 256

// ExecCall is a line of calls.jsonl.
type ExecCall struct {
	CustomID  string          `json:"custom_id"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// CustomID names call n of a trial of a sample.
func CustomID(sample string, trial, n int) string {
	return sample + "#" + strconv.Itoa(trial) + "#" + strconv.Itoa(n)
}

// SampleOf is the sample of a custom id; ok is false for one that [CustomID] does not give.
func SampleOf(customID string) (sample string, ok bool) {
	at := len(customID)
	for range 2 {
		at = strings.LastIndexByte(customID[:at], '#')
		if at < 0 {
			return "", false
		}
	}
	return customID[:at], true
}

// LabelledCalls returns the labelled calls of samples, for a fleet. servers gives the id of a
// server at Callyard for its name in the data set, "" for calls that name none. A name without an
// entry is the id itself. It is an error if no sample has a labelled call, if a call has no
// server, or if an id is too long.
func LabelledCalls(samples []Sample, servers map[string]string) ([]ExecCall, error) {
	var calls []ExecCall
	for i := range samples {
		s := &samples[i]
		for n, label := range s.Labels {
			call := ExecCall{CustomID: CustomID(s.ID, 0, n), Server: label.Server, Tool: label.Name, Arguments: label.Arguments}
			if call.Server == "" {
				call.Server = serverOfTool(s.Tools, label.Name)
			}
			if id, ok := servers[call.Server]; ok {
				call.Server = id
			}
			if trimmed := bytes.TrimSpace(call.Arguments); len(trimmed) == 0 || string(trimmed) == "null" {
				call.Arguments = json.RawMessage("{}")
			}
			switch {
			case call.Server == "":
				return nil, fmt.Errorf("the labelled call of %s in sample %q names no server: choose one with --server ID", label.Name, s.ID)
			case len(call.CustomID) > maxCustomID:
				return nil, fmt.Errorf("the id of sample %q is too long for a batch: at most %d bytes with the numbers of trial and call", s.ID, maxCustomID)
			}
			calls = append(calls, call)
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("no sample has a labelled call with arguments")
	}
	return calls, nil
}

func serverOfTool(tools []eval.Tool, name string) string {
	for i := range tools {
		if tools[i].Name == name {
			return tools[i].Server
		}
	}
	return ""
}

// Execution sums up the results of calls.
type Execution struct {
	// Inputs is the digest of the calls.
	Inputs string `json:"inputs"`
	Tally
	Categories map[string]*Tally `json:"categories"`
	Tools      map[string]*Tally `json:"tools"`
	// Failures are calls without a result, with the title of their problem.
	Failures map[string]int `json:"failures,omitempty"`
}

// Tally counts calls by their end.
type Tally struct {
	Calls int `json:"calls"`
	// Reached are those that the tool answered, ToolErrors those of them that it answered
	// with an error.
	Reached    int `json:"reached"`
	ToolErrors int `json:"tool_errors"`
	// Denied and Unknown are those that were not approved, and those that may have run.
	Denied  int `json:"denied"`
	Unknown int `json:"unknown"`
	// Missing have no result yet.
	Missing int `json:"missing"`
}

func (t *Tally) add(r *resultLine) {
	switch {
	case r == nil:
		t.Missing++
	case r.State == "succeeded":
		t.Reached++
		if r.Result.IsError {
			t.ToolErrors++
		}
	case r.State == "denied":
		t.Denied++
	case r.State == "unknown":
		t.Unknown++
	}
	t.Calls++
}

// resultLine is a line of results.jsonl, as far as it is read.
type resultLine struct {
	CustomID string `json:"custom_id"`
	State    string `json:"state"`
	Result   struct {
		IsError bool `json:"isError"`
	} `json:"result"`
	Problem struct {
		Title string `json:"title"`
	} `json:"problem"`
}

// Executed sums up the results in a file.
func Executed(samples []Sample, calls []ExecCall, callsDigest, results string) (*Execution, error) {
	lines, err := readLines(results, func(*resultLine, []byte) error { return nil })
	if err != nil {
		return nil, err
	}
	of := make(map[string]*resultLine, len(lines))
	for i := range lines {
		of[lines[i].CustomID] = &lines[i]
	}
	categories := make(map[string]string, len(samples))
	for i := range samples {
		categories[samples[i].ID] = samples[i].Category
	}
	out := &Execution{Inputs: callsDigest, Categories: map[string]*Tally{}, Tools: map[string]*Tally{}, Failures: map[string]int{}}
	for i := range calls {
		call := &calls[i]
		r := of[call.CustomID]
		sample, _ := SampleOf(call.CustomID)
		category := categories[sample]
		if category == "" {
			category = "all"
		}
		for _, tally := range []*Tally{&out.Tally, tallyOf(out.Categories, category), tallyOf(out.Tools, call.Server+"/"+call.Tool)} {
			tally.add(r)
		}
		if r != nil && r.State != "succeeded" {
			title := r.Problem.Title
			if title == "" {
				title = r.State
			}
			out.Failures[title]++
		}
	}
	return out, nil
}

func tallyOf(all map[string]*Tally, name string) *Tally {
	if all[name] == nil {
		all[name] = &Tally{}
	}
	return all[name]
}
