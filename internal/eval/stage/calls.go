package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Files of an execution, in one folder for the labelled calls and one for those of the answers. The
// file of calls is valid input for `callyard batch`, so its lines have no digest; the execution has
// the digest of the whole file.
const (
	LabelsFolder  = "labels"
	AnswersFolder = "answers"
	CallsFile     = "calls.jsonl"
	ResultsFile   = "results.jsonl"
	ExecutionFile = "execution.json"
)

// maxCustomID is the maximum length of a custom id in bytes at the front door.
const maxCustomID = 256

// Last parts of custom ids of calls that do not belong to a sample.
const (
	resetPart = "reset"
	statePart = "state"
)

// ExecCall is a line of calls.jsonl.
type ExecCall struct {
	CustomID  string          `json:"custom_id"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Target specifies the servers that receive the calls.
type Target struct {
	// Servers maps the name of a server in the data set to its id at Callyard. The name "" is used
	// for calls without a server. A name without an entry is used as the id.
	Servers map[string]string
	// Reset is a tool that resets the state before the calls of each sample, and State one whose
	// result is the state after them. Both have the form SERVER/TOOL; "" means none. The servers
	// must run one call at a time, in order.
	Reset, State string
}

// customID returns the custom id of a call of a trial of a sample. part is the number of the call, or
// one of the parts above.
func customID(sample string, trial int, part string) string {
	return sample + "#" + strconv.Itoa(trial) + "#" + part
}

// splitID returns the arguments of [customID]. ok is false if it cannot have made the id.
func splitID(customID string) (key AnswerKey, part string, ok bool) {
	at := strings.LastIndexByte(customID, '#')
	if at < 0 {
		return key, "", false
	}
	part = customID[at+1:]
	before := strings.LastIndexByte(customID[:at], '#')
	if before < 0 {
		return key, "", false
	}
	trial, err := strconv.Atoi(customID[before+1 : at])
	return AnswerKey{customID[:before], trial}, part, err == nil
}

// LabelledCalls returns the labelled calls of samples, for a fleet. It returns an error if no sample
// has a labelled call, if a call has no server, or if an id is too long.
func LabelledCalls(samples []Sample, to Target) ([]ExecCall, error) {
	var calls []ExecCall
	labelled := false
	for i := range samples {
		s := &samples[i]
		own := to.labelCalls(&s.Sample)
		labelled = labelled || len(own.calls) > 0
		var err error
		if calls, err = to.add(calls, s, 0, own); err != nil {
			return nil, err
		}
	}
	if !labelled {
		return nil, fmt.Errorf("no sample has a labelled call with arguments")
	}
	return calls, nil
}

// AnswerCalls returns the calls of answers, for a fleet: the calls found by lenient extraction of
// tools that the sample offers. It returns an error if no answer has such a call, if a call has no
// server, or if an id is too long.
func AnswerCalls(samples []Sample, responses []Response, to Target) ([]ExecCall, error) {
	of := make(map[string][]*Response, len(samples))
	for i := range responses {
		if responses[i].Error == "" {
			of[responses[i].ID] = append(of[responses[i].ID], &responses[i])
		}
	}
	var calls []ExecCall
	found := false
	for i := range samples {
		s := &samples[i]
		names := eval.NewNames(s.Tools)
		for _, r := range of[s.ID] {
			x := eval.Extract(&r.Response, s.Tools, names)
			own := to.answer(&s.Sample, &r.Response, names, x.Rescued)
			found = found || len(own.calls) > 0
			var err error
			if calls, err = to.add(calls, s, r.Trial, own); err != nil {
				return nil, err
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("no answer has a call of a tool that its sample offers")
	}
	return calls, nil
}

// answer returns the calls of an answer that can run. Calls of tools that the sample does not offer
// are refused, so that an evaluation never runs other tools. Calls whose arguments are not an object
// are refused too. In a conversation of several turns, names must be exact, and functions that the
// sample hides may run, as in the official checker.
func (to Target) answer(s *eval.Sample, r *eval.Response, names *eval.Names, found []eval.Call) ownCalls {
	own := ownCalls{turns: turnsOf(s, r)}
	for i := range found {
		name, known := found[i].Name, true
		if len(s.Tools) > 0 {
			name, known = names.Known(name)
		}
		if own.turns > 0 {
			name, known = found[i].Name, Offers(s, found[i])
		}
		call := to.call(s, "", name, found[i].Arguments)
		if !known || name == "" || call.Arguments[0] != '{' {
			own.refused++
			continue
		}
		own.add(call, found[i].Turn)
	}
	return own
}

// Offers reports whether a call of a conversation may run: it has the exact name of a tool that the
// sample offers or hides, and its arguments are a JSON object or missing.
func Offers(s *eval.Sample, c eval.Call) bool {
	named := slices.ContainsFunc(s.Tools, func(t eval.Tool) bool { return t.Name == c.Name }) || s.Check != nil && slices.Contains(s.Check.Hidden, c.Name)
	arguments := bytes.TrimSpace(c.Arguments)
	return named && (len(arguments) == 0 || string(arguments) == "null" || rawjson.IsObject(arguments))
}

// Call returns a call of a sample without an id, in the form for Callyard.
func (to Target) Call(s *eval.Sample, c eval.Call) ExecCall {
	return to.call(s, "", c.Name, c.Arguments)
}

// call returns a call without an id.
func (to Target) call(s *eval.Sample, server, tool string, arguments json.RawMessage) ExecCall {
	if server == "" {
		server = serverOfTool(s, tool)
	}
	if id, ok := to.Servers[server]; ok {
		server = id
	}
	arguments = bytes.TrimSpace(arguments)
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	return ExecCall{Server: server, Tool: tool, Arguments: arguments}
}

// serverOfTool returns the server of a tool or of a labelled call of the sample.
func serverOfTool(s *eval.Sample, name string) string {
	for i := range s.Tools {
		if s.Tools[i].Name == name && s.Tools[i].Server != "" {
			return s.Tools[i].Server
		}
	}
	for i := range s.Labels {
		if s.Labels[i].Name == name {
			return s.Labels[i].Server
		}
	}
	return ""
}

// add assigns ids to the calls of one answer and surrounds them with the calls that reset and read
// the state.
func (to Target) add(calls []ExecCall, s *Sample, trial int, own ownCalls) ([]ExecCall, error) {
	if to.Reset != "" {
		reset := to.ResetCall(&s.Sample)
		reset.CustomID = customID(s.ID, trial, resetPart)
		calls = append(calls, reset)
	}
	n := 0
	for turn, end := range own.ends() {
		for ; n < end; n++ {
			call := &own.calls[n]
			call.CustomID = customID(s.ID, trial, strconv.Itoa(n))
			if call.Server == "" {
				return nil, fmt.Errorf("the call of %s in sample %q names no server: choose one with --server ID", call.Tool, s.ID)
			}
			calls = append(calls, *call)
		}
		if to.State != "" {
			state := stateCall(to.State, nil)
			state.CustomID = customID(s.ID, trial, stateAfter(turn, own.turns))
			calls = append(calls, state)
		}
	}
	if len(customID(s.ID, trial, stateAfter(own.turns, own.turns))) > maxCustomID { // "reset" is not longer
		return nil, fmt.Errorf("the id of sample %q is too long for a batch: at most %d bytes with the numbers of trial and call", s.ID, maxCustomID)
	}
	return calls, nil
}

// ResetCall returns the call that begins a sample, without an id.
func (to Target) ResetCall(s *eval.Sample) ExecCall { return stateCall(to.Reset, s.State) }

// stateCall returns a call of [Target.Reset] or [Target.State], without an id.
func stateCall(tool string, arguments json.RawMessage) ExecCall {
	server, name, _ := strings.Cut(tool, "/")
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return ExecCall{Server: server, Tool: name, Arguments: arguments}
}
