package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/notnull"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// record is a line of the published format, with the spellings that occur in such files.
type record struct {
	ID          json.RawMessage `json:"id"`
	UUID        json.RawMessage `json:"uuid"`
	Category    string          `json:"category"`
	Question    json.RawMessage `json:"question"`
	Tools       json.RawMessage `json:"tools"`
	TargetTools json.RawMessage `json:"target_tools"`
	Turns       []struct {
		Question    string          `json:"question"`
		TargetTools json.RawMessage `json:"target_tools"`
	} `json:"turns"`
}

// linesOf reads JSON Lines with question, tools and target_tools.
func linesOf(file *source, o Options) ([]eval.Sample, error) {
	return samplesOf(file.lines(), o.Limit, lineSample)
}

func lineSample(i int, line *element) (sample eval.Sample, err error) {
	var r record
	if err := line.decode(&r); err != nil {
		return sample, err
	}
	sample = eval.Sample{ID: cmp.Or(asText(r.ID), asText(r.UUID), strconv.Itoa(i+1)), Category: r.Category}
	if sample.Tools, err = toolsOf(r.Tools); err != nil {
		return sample, line.fault("tools: %w", err)
	}
	if len(r.Turns) > 0 {
		if err := r.turns(&sample); err != nil {
			return sample, line.fault("turns: %w", err)
		}
		return sample, nil
	}
	if isNull(r.Question) {
		return sample, line.fault("the member question is missing")
	}
	sample.Question, sample.Messages = question(r.Question)
	if sample.Expected, err = targets(r.TargetTools); err != nil {
		return sample, line.fault("target_tools: %w", err)
	}
	return sample, nil
}

// turns reads a conversation whose calls are expected turn by turn.
func (r *record) turns(sample *eval.Sample) error {
	if !isNull(r.Question) || !isNull(r.TargetTools) {
		return errors.New("a conversation has its questions and target_tools in its turns")
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages [][]message
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.Question == "" {
			return fmt.Errorf("turn %d has no question", i+1)
		}
		expected, err := targets(t.TargetTools)
		if err != nil {
			return fmt.Errorf("target_tools of turn %d: %w", i+1, err)
		}
		sample.Turns = append(sample.Turns, eval.Turn{Question: t.Question, Expected: expected})
		messages = append(messages, []message{{"user", t.Question}})
		for _, name := range expected {
			sample.Expect(name)
		}
	}
	sample.Question, sample.Expected = r.Turns[0].Question, notnull.List(sample.Expected)
	raw, err := json.Marshal(messages)
	if err != nil {
		return fmt.Errorf("encoding the questions: %w", err)
	}
	sample.Messages = raw
	return nil
}

// question returns a text, or a conversation with its last user message as the question.
func question(raw json.RawMessage) (text string, messages json.RawMessage) {
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var all []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	var turns []json.RawMessage
	_ = json.Unmarshal(raw, &turns) // a value that is not a list has no messages
	for _, turn := range append(turns, raw) {
		if json.Unmarshal(turn, &all) != nil {
			continue
		}
		for _, m := range all {
			if m.Role == "user" {
				text = asText(m.Content)
			}
		}
		if text != "" {
			break // the first turn
		}
	}
	return text, raw
}

// targets parses tools separated by commas, or in a list.
func targets(raw json.RawMessage) (names []string, err error) {
	if isNull(raw) {
		return nil, errors.New("it is missing; a question that needs no tool has an empty text")
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		names = strings.Split(text, ",")
	} else if text != "" {
		raw = []byte(text)
	}
	if names == nil {
		if err := json.Unmarshal(raw, &names); err != nil {
			return nil, errors.New("it is neither a text nor a list of texts")
		}
	}
	out := make([]string, 0, len(names))
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out, nil
}

// toolsOf parses a list of tools, or a string that contains one: names, or definitions in the
// format of MCP or OpenAI, or with parameters.
func toolsOf(raw json.RawMessage) ([]eval.Tool, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	if isNull(raw) {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, errors.New("they are not a list")
	}
	tools := make([]eval.Tool, 0, len(items))
	for _, item := range items {
		tool, err := toolOf(item)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

func toolOf(raw json.RawMessage) (eval.Tool, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil && name != "" {
		return eval.Tool{Name: name}, nil
	}
	var d struct {
		Name        string          `json:"name"`
		Server      string          `json:"server"`
		ServerName  string          `json:"server_name"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"input_schema"`
		MCP         json.RawMessage `json:"inputSchema"`
		Parameters  json.RawMessage `json:"parameters"`
		Function    json.RawMessage `json:"function"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return eval.Tool{}, errors.New("a tool is neither a name nor a definition")
	}
	if d.Name == "" && rawjson.IsObject(d.Function) {
		return toolOf(d.Function)
	}
	if d.Name == "" {
		return eval.Tool{}, errors.New("a tool has no name")
	}
	tool := eval.Tool{Name: d.Name, Server: cmp.Or(d.Server, d.ServerName), Description: d.Description}
	for _, schema := range []json.RawMessage{d.Input, d.MCP, d.Parameters} {
		if !isNull(schema) {
			tool.Schema = schema
			break
		}
	}
	return tool, nil
}
