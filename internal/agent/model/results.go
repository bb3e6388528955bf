package model

import (
	"encoding/json"
	"fmt"
)

// Result implements [Wire].
func (chat) Result(c Call, text string, _ bool) json.RawMessage {
	return json.RawMessage(`{"role":"tool","tool_call_id":` + string(textOf(c.ID)) + `,"content":` + string(textOf(text)) + `}`)
}

// Join implements [Wire]. The messages remain separate.
func (chat) Join(results []json.RawMessage) []json.RawMessage { return results }

// Split implements [Wire].
func (chat) Split(tools json.RawMessage) ([]Definition, error) {
	return split(tools, func(raw json.RawMessage) (string, error) {
		var d struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		return d.Function.Name, json.Unmarshal(raw, &d)
	})
}

// Tools implements [Wire].
func (chat) Tools(definitions []Definition) json.RawMessage { return listOf(definitions) }

// Result implements [Wire].
func (responses) Result(c Call, text string, _ bool) json.RawMessage {
	return json.RawMessage(`{"type":"function_call_output","call_id":` + string(textOf(c.ID)) + `,"output":` + string(textOf(text)) + `}`)
}

// Join implements [Wire]. The items remain separate.
func (responses) Join(results []json.RawMessage) []json.RawMessage { return results }

// Split implements [Wire].
func (responses) Split(tools json.RawMessage) ([]Definition, error) { return split(tools, nameMember) }

// Tools implements [Wire].
func (responses) Tools(definitions []Definition) json.RawMessage { return listOf(definitions) }

// Result implements [Wire].
func (anthropic) Result(c Call, text string, failed bool) json.RawMessage {
	mark := ""
	if failed {
		mark = `,"is_error":true`
	}
	return json.RawMessage(`{"role":"user","content":[{"type":"tool_result","tool_use_id":` + string(textOf(c.ID)) + `,"content":` + string(textOf(text)) + mark + `}]}`)
}

// Join implements [Wire]. One message must have all results of an answer.
func (anthropic) Join(results []json.RawMessage) []json.RawMessage { return joined(results, "content") }

// Split implements [Wire].
func (anthropic) Split(tools json.RawMessage) ([]Definition, error) { return split(tools, nameMember) }

// Tools implements [Wire].
func (anthropic) Tools(definitions []Definition) json.RawMessage { return listOf(definitions) }

// Result implements [Wire].
func (gemini) Result(c Call, text string, failed bool) json.RawMessage {
	member, id := "output", ""
	if failed {
		member = "error"
	}
	if c.ID != "" {
		id = `"id":` + string(textOf(c.ID)) + `,`
	}
	return json.RawMessage(`{"role":"user","parts":[{"functionResponse":{` + id + `"name":` + string(textOf(c.Name)) + `,"response":{"` + member + `":` + string(textOf(text)) + `}}}]}`)
}

// Join implements [Wire]. One content must have all results of an answer.
func (gemini) Join(results []json.RawMessage) []json.RawMessage { return joined(results, "parts") }

// geminiTools is an element of the value of tools.
type geminiTools struct {
	Declarations []json.RawMessage `json:"functionDeclarations"`
}

// Split implements [Wire].
func (gemini) Split(tools json.RawMessage) (all []Definition, err error) {
	if len(tools) == 0 {
		return nil, nil
	}
	var groups []geminiTools
	if err := json.Unmarshal(tools, &groups); err != nil {
		return nil, fmt.Errorf("reading the tools: %w", err)
	}
	for _, g := range groups {
		some, err := named(g.Declarations, nameMember)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Tools implements [Wire].
func (gemini) Tools(definitions []Definition) json.RawMessage {
	if len(definitions) == 0 {
		return nil
	}
	return json.RawMessage(`[{"functionDeclarations":` + string(listOf(definitions)) + `}]`)
}

func nameMember(raw json.RawMessage) (string, error) {
	var d struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(raw, &d)
	return d.Name, err
}

func split(tools json.RawMessage, name func(json.RawMessage) (string, error)) ([]Definition, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(tools, &list); err != nil {
		return nil, fmt.Errorf("reading the tools: %w", err)
	}
	return named(list, name)
}

// named returns definitions with their names.
func named(list []json.RawMessage, name func(json.RawMessage) (string, error)) ([]Definition, error) {
	all := make([]Definition, 0, len(list))
	for _, raw := range list {
		n, err := name(raw)
		if err != nil {
			return nil, fmt.Errorf("reading a tool: %w", err)
		}
		all = append(all, Definition{n, raw})
	}
	return all, nil
}

func listOf(definitions []Definition) json.RawMessage {
	if len(definitions) == 0 {
		return nil
	}
	list := make([]json.RawMessage, len(definitions))
	for i, d := range definitions {
		list[i] = d.Raw
	}
	return arrayOf(list)
}

// joined merges user messages into one message. Messages of other shapes follow it unchanged.
func joined(results []json.RawMessage, member string) []json.RawMessage {
	var list, rest []json.RawMessage
	for _, m := range results {
		var members map[string]json.RawMessage
		var parts []json.RawMessage
		var text string
		switch {
		case json.Unmarshal(m, &members) != nil || string(members["role"]) != `"user"`:
			rest = append(rest, m)
		case json.Unmarshal(members[member], &parts) == nil:
			list = append(list, parts...)
		case json.Unmarshal(members[member], &text) == nil:
			list = append(list, json.RawMessage(`{"type":"text","text":`+string(textOf(text))+`}`))
		default:
			rest = append(rest, m)
		}
	}
	if len(list) == 0 {
		return rest
	}
	return append([]json.RawMessage{json.RawMessage(`{"role":"user","` + member + `":` + string(arrayOf(list)) + `}`)}, rest...)
}
