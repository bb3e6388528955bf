package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// Instructions. Their text is part of the digest of a request.
const (
	systemCalls = "Answer the question by calling tools. Call all tools that are needed in one answer; call none if no tool helps."
	systemText  = `Answer the question by calling tools. Write each call as a block:
<tool_call>
{"name": "tool_name", "arguments": {…}}
</tool_call>
Call all tools that are needed in one answer; call none if no tool helps.

The tools, one a line:
`
	systemTurns = `Do what the user asks by calling tools. Write each call as a block:
<tool_call>
{"name": "tool_name", "arguments": {…}}
</tool_call>
The next message has the result of each call in a <tool_response> block. When no more calls are needed, answer without a block.

The tools, one a line:
`
)

// prepare creates the request of a question. Instructions and answers in a conversation of a data
// set are left out, because they belong to another model.
func (o *Options) prepare(q *question) (err error) {
	if q.sample.Converses() {
		return o.prepareTurns(q)
	}
	if q.sample.Question == "" {
		return errors.New("it has no question in plain text")
	}
	q.request = &model.Request{System: systemCalls, Messages: []json.RawMessage{o.Wire.User(q.sample.Question)}, MaxOutput: o.MaxOutput}
	if o.Text {
		q.request.System = systemText + toolLines(q.sample.Tools)
	} else if q.request.Tools, q.names, err = o.tools(q.sample.Tools); err != nil {
		return err
	}
	q.digest, err = o.digest(q.request)
	return err
}

// digest returns the digest of a request and of the model that it is for.
func (o *Options) digest(request any) (string, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("writing the request: %w", err)
	}
	return eval.Digest([]byte(o.Name), []byte(o.Wire.Format()), raw), nil
}

// tools returns the tools in the format of the API, and a map from the name of each there to its
// name in the sample.
func (o *Options) tools(tools []eval.Tool) (json.RawMessage, map[string]string, error) {
	f := o.Wire.Format()
	names := make(map[string]string, len(tools))
	list := make([]format.Tool, 0, len(tools))
	for i := range tools {
		t := &tools[i]
		input := t.Schema
		if len(input) == 0 {
			input = json.RawMessage(`{"type":"object"}`)
		}
		raw, err := json.Marshal(map[string]any{"name": t.Name, "description": t.Description, "inputSchema": input})
		if err != nil {
			return nil, nil, fmt.Errorf("writing the tool %s: %w", t.Name, err)
		}
		name := uniqueName(t, names)
		names[name] = t.Name
		list = append(list, f.Tool(name, &schema.Tool{Name: t.Name, Input: input, Raw: raw}, false))
	}
	if most := f.MaxTools(); most > 0 && len(list) > most {
		return nil, nil, fmt.Errorf("it has %d tools, and the API takes %d", len(list), most)
	}
	if len(list) == 0 {
		return nil, names, nil
	}
	return f.Wrap(list), names, nil
}

// uniqueName returns the name of a tool if all APIs accept it and no other tool has it. Otherwise it
// creates one from the server and the name.
func uniqueName(t *eval.Tool, taken map[string]string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if name := t.Name; len(name) > 0 && len(name) <= 64 && strings.ContainsRune(letters, rune(name[0])) && strings.Trim(name, letters+"0123456789-") == "" {
		if _, twice := taken[name]; !twice {
			return name
		}
	}
	return format.Name(t.Server, t.Name)
}

// toolLines describes the tools for a model that does not get them from its API.
func toolLines(tools []eval.Tool) string {
	var b strings.Builder
	for i := range tools {
		line, err := json.Marshal(&tools[i])
		if err != nil {
			continue // it was parsed as JSON before
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}
