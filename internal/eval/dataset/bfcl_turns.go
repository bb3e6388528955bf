package dataset

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// BFCLTurnSets returns the sets of BFCL version 4 whose samples are conversations of several turns.
// Their calls must be run to be checked, so these sets are read only on request.
func BFCLTurnSets() []string {
	return []string{"multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context"}
}

// bfclClasses are the files that describe the functions of the classes.
var bfclClasses = map[string]string{
	"GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api", "TwitterAPI": "posting_api",
	"TicketAPI": "ticket_api", "TradingBot": "trading_bot", "TravelAPI": "travel_booking", "VehicleControlAPI": "vehicle_control",
}

// conversation is a line of such a set.
type conversation struct {
	ID       string                     `json:"id"`
	Question json.RawMessage            `json:"question"`
	Config   map[string]json.RawMessage `json:"initial_config"`
	Classes  []string                   `json:"involved_classes"`
	Excluded []string                   `json:"excluded_function"`
	Missed   map[string][]string        `json:"missed_function"`
}

// bfclTurns reads one set with its functions and labels from the folder of the data set.
func bfclTurns(path, set string, limit int) ([]eval.Sample, error) {
	questions, err := load(filepath.Join(path, bfclPrefix+set+".json"))
	if err != nil {
		return nil, err
	}
	answers, err := load(filepath.Join(path, "possible_answer", bfclPrefix+set+".json"))
	if err != nil {
		return nil, err
	}
	functions := make(map[string]*source, len(bfclClasses))
	for class, name := range bfclClasses {
		if functions[class], err = load(filepath.Join(path, "multi_turn_func_doc", name+".json")); err != nil {
			return nil, err
		}
	}
	return turnsSet(set, questions, answers, functions, limit)
}

// turnsSet reads one set; functions are the files of the classes.
func turnsSet(set string, questions, answers *source, functions map[string]*source, limit int) ([]eval.Sample, error) {
	tools, err := classTools(functions)
	if err != nil {
		return nil, err
	}
	labels, err := turnLabels(answers)
	if err != nil {
		return nil, err
	}
	return samplesOf(questions.lines(), limit, func(_ int, line *element) (s eval.Sample, err error) {
		var c conversation
		if err := line.decode(&c); err != nil {
			return s, err
		}
		if c.ID == "" {
			return s, line.fault("the member id is missing")
		}
		label, ok := labels[c.ID]
		if !ok {
			return s, line.fault("%s has no possible answer", c.ID)
		}
		s = eval.Sample{ID: c.ID, Category: set, Check: &eval.Check{Kind: "bfcl", Category: set, Turns: len(label.turns)}}
		s.Question, s.Messages = question(c.Question)
		var parameters map[string][]string
		if s.Tools, s.Check.Hidden, parameters, err = c.tools(tools); err != nil {
			return s, line.fault("%w", err)
		}
		if s.Check.Later, err = c.functionsAddedLater(); err != nil {
			return s, line.fault("missed_function: %w", err)
		}
		if s.Labels, err = calls(label.turns, parameters); err != nil {
			return s, label.line.fault("%s: %w", c.ID, err)
		}
		for i := range s.Labels {
			s.Expect(s.Labels[i].Name)
		}
		s.State, err = c.state(set)
		return s, err
	})
}

// classTool is a tool with its parameters in order.
type classTool struct {
	eval.Tool
	parameters []string
}

// classTools reads the functions of the classes.
func classTools(functions map[string]*source) (map[string][]classTool, error) {
	out := make(map[string][]classTool, len(functions))
	for class, file := range functions {
		for _, line := range file.lines() {
			tool, err := toolOf(line.raw)
			if err != nil {
				return nil, line.fault("%w", err)
			}
			tool.Schema = jsonSchema(tool.Schema, "")
			var d struct {
				Parameters struct {
					Properties json.RawMessage `json:"properties"`
				} `json:"parameters"`
			}
			if err := line.decode(&d); err != nil {
				return nil, err
			}
			one := classTool{tool, []string{}}
			rawjson.Members(d.Parameters.Properties, func(name string, _ []byte) { one.parameters = append(one.parameters, name) })
			out[class] = append(out[class], one)
		}
	}
	return out, nil
}

// labelled are the expected calls of each turn of a conversation, in Python.
type labelled struct {
	line  element
	turns [][]string
}

func turnLabels(answers *source) (map[string]labelled, error) {
	out := map[string]labelled{}
	for _, line := range answers.lines() {
		var a struct {
			ID    string     `json:"id"`
			Truth [][]string `json:"ground_truth"`
		}
		if err := line.decode(&a); err != nil {
			return nil, err
		}
		if len(a.Truth) > 0 {
			out[a.ID] = labelled{line, a.Truth}
		}
	}
	return out, nil
}

// tools returns the tools of the involved classes. hidden are functions of the classes that the
// model is not offered. Functions that the model is offered later count as tools.
func (c *conversation) tools(of map[string][]classTool) (tools []eval.Tool, hidden []string, parameters map[string][]string, err error) {
	parameters = map[string][]string{}
	for _, class := range c.Classes {
		if _, ok := of[class]; !ok {
			return nil, nil, nil, fmt.Errorf("there is no class %q", class)
		}
		for i := range of[class] {
			tool := &of[class][i]
			parameters[tool.Name] = tool.parameters
			if slices.Contains(c.Excluded, tool.Name) {
				hidden = append(hidden, tool.Name)
				continue
			}
			tools = append(tools, tool.Tool)
		}
	}
	return tools, hidden, parameters, nil
}

// functionsAddedLater maps the functions that the model is offered only from a later turn to that turn.
func (c *conversation) functionsAddedLater() (map[string]int, error) {
	later := map[string]int{}
	for turn, names := range c.Missed {
		n, err := strconv.Atoi(turn)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no number of a turn", turn)
		}
		for _, name := range names {
			later[name] = n
		}
	}
	return later, nil
}

// calls parses the labelled calls of all turns.
func calls(turns [][]string, parameters map[string][]string) (all []eval.LabelledCall, err error) {
	for turn, texts := range turns {
		for _, text := range texts {
			name, arguments, err := pythonCall(text)
			if err != nil {
				return nil, err
			}
			if parameters[name] == nil {
				return nil, fmt.Errorf("no involved class has the function %q", name)
			}
			call := eval.LabelledCall{Name: name, Turn: turn}
			if call.Arguments, err = asObject(arguments, parameters[name]); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
			all = append(all, call)
		}
	}
	return all, nil
}

// state returns the argument of the tool that starts the conversation at the server of the classes.
func (c *conversation) state(set string) (json.RawMessage, error) {
	config := make(map[string]json.RawMessage, len(c.Classes))
	for _, class := range c.Classes {
		if raw, ok := c.Config[class]; ok {
			config[class] = raw
		}
	}
	raw, err := json.Marshal(map[string]any{
		"id": c.ID, "initial_config": config, "involved_classes": c.Classes, "long_context": set == "multi_turn_long_context",
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the state of %s: %w", c.ID, err)
	}
	return raw, nil
}
