package agent

import (
	"encoding/json"
	"strings"
)

// plainProtocol instructs a model without tool calls how to make calls, like MCP Bridge's agent.
const plainProtocol = `

Answer always with one JSON object and nothing else. To call a tool:
{"tool_call": {"server_id": "…", "tool_name": "…", "parameters": {…}}, "response": "what you are doing"}
To answer without a tool:
{"tool_call": null, "response": "your answer"}
Call one tool at a time. Its result is in the next message.

The tools:
`

// plainSystem returns the system prompt with the tools, one per line.
func (a *Agent) plainSystem() string {
	var b strings.Builder
	b.WriteString(a.System + plainProtocol)
	for _, d := range a.Tools.list {
		n := a.Tools.known[d.Name]
		line, err := json.Marshal(struct {
			Server     string          `json:"server_id"`
			Tool       string          `json:"tool_name"`
			Definition json.RawMessage `json:"definition"`
		}{n.Server, n.Tool, d.Raw})
		if err != nil {
			continue // cannot happen: the definition was decoded from JSON
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// plainResponse returns the member "response" of an answer, or the text if there is none.
func plainResponse(text string) string {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	var answer struct {
		Response *string `json:"response"`
	}
	if from < 0 || to < from || json.Unmarshal([]byte(text[from:to+1]), &answer) != nil || answer.Response == nil {
		return text
	}
	return *answer.Response
}
